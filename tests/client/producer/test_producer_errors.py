"""Every error code, answered for each partition, once and for ever, before and after the append: what becomes of the
records follows from the one table in `protocol/errors.py`, and no other record is harmed."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from odradek.client.errors.client_errors import ClientError, DeliveryTimeout, RecordTooLarge
from odradek.protocol.errors import ErrorCode, Reaction
from odradek.protocol.messages.produce import ProduceRequest, ProduceResponse
from tests.client.broker_faults import edited, error
from tests.client.scripted_broker import scripted_cluster
from tests.client.story import TOPIC, Record, Story, tell
from tests.client.virtual_time import run_virtual

CODES = [code for code in ErrorCode if code is not ErrorCode.NONE]
RENUMBERING = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID)
IN_THE_LOG = (ErrorCode.DUPLICATE_SEQUENCE_NUMBER,)
"""From a broker that has not appended the batch, this would be a lie, and loses it."""
NOT_IN_THE_LOG = (ErrorCode.MESSAGE_TOO_LARGE, *RENUMBERING)
"""From a broker that has appended it, these would be lies, and double it."""
FAILING = [code for code in CODES if code.reaction is Reaction.FAIL or code is ErrorCode.INVALID_PRODUCER_EPOCH]
FATAL = [code for code in CODES if code.reaction is Reaction.FATAL]
PASSING = [code for code in CODES if code not in FAILING and code not in FATAL]
SPLITTING = [code for code in CODES if code.reaction is Reaction.SPLIT]
SETTINGS: dict[str, Any] = {"batch_size": 120, "delivery_timeout_ms": 6_000}
ALL = (0, 1, 2)


def told(code: ErrorCode, partitions: Sequence[int], *, times: int | None, appended: bool, more: int = 0) -> Story:
    """The second batch of each of the partitions, or all from there on, are answered with the code.

    A second later, so many records `more` are sent to each partition.
    """

    async def send_more(story: Story) -> None:
        await asyncio.sleep(1)
        await story.send(more, ALL)

    async def main() -> Story:
        with scripted_cluster(brokers=3) as cluster:
            for partition in partitions:
                fault = error(code, TOPIC, partition, appended=appended, message="the broker's own words")
                cluster.on(ProduceRequest, fault, topic=TOPIC, partition=partition, nth=2, times=times)
            story = await tell(cluster, records=10, meanwhile=send_more, **SETTINGS)
            for rule in cluster.rules:
                assert rule.hits
            return story

    return run_virtual(main())


def failed(records: Sequence[Record]) -> list[Record]:
    return [record for record in records if record.error is not None]


def name(code: ErrorCode) -> str:
    return code.name


def test_the_table_has_all_kinds() -> None:
    assert {code.reaction for code in CODES} == set(Reaction)
    assert len(FAILING) + len(FATAL) + len(PASSING) == len(CODES) > 130


@pytest.mark.parametrize("code", [code for code in PASSING if code not in SPLITTING], ids=name)
def test_what_passes_costs_no_record_whether_the_batch_was_appended_or_not(code: ErrorCode) -> None:
    for appended in (False, True):
        if code not in (IN_THE_LOG if not appended else NOT_IN_THE_LOG):
            story = told(code, ALL, times=1, appended=appended)
            assert story.errors == []
            assert len(story.acks) == 30


@pytest.mark.parametrize("code", FAILING, ids=name)
@pytest.mark.parametrize("appended", [False, True])
def test_what_fails_costs_one_batch_of_each_partition(code: ErrorCode, appended: bool) -> None:
    story = told(code, ALL, times=1, appended=appended)
    for partition in ALL:
        records = story.of(partition)
        lost = failed(records)
        assert 0 < len(lost) < len(records)
        assert lost == records[records.index(lost[0]) :][: len(lost)], "they were one batch"
        for record in lost:
            assert isinstance(record.error, ClientError)
            assert record.error.code is code
            assert "the broker's own words" in str(record.error)
            assert not record.error.retriable
        in_log = story.cluster.values(TOPIC, partition)
        assert len(in_log) == len(records) - (0 if appended else len(lost))


@pytest.mark.parametrize("code", FATAL, ids=name)
def test_a_fatal_error_fails_all_unacknowledged_records_and_refuses_new_ones(code: ErrorCode) -> None:
    story = told(code, [1], times=1, appended=False, more=2)
    for record in failed(story.records):
        assert isinstance(record.error, ClientError)
        assert record.error.code is code
    assert 0 < len(failed(story.records[:30])) < 30
    assert all(record.refusal is not None for record in story.records[30:]), "who sends is told at once"


@pytest.mark.parametrize("code", [code for code in PASSING if code not in (*SPLITTING, *IN_THE_LOG)], ids=name)
def test_what_passes_never_passes_ends_by_the_delivery_timeout_and_others_go_on(code: ErrorCode) -> None:
    partition = code % 3
    story = told(code, [partition], times=None, appended=False)
    lost = failed(story.records)
    assert lost == story.of(partition)[-len(lost) :]
    assert 0 < len(lost) < 10
    for record in lost:
        assert isinstance(record.error, DeliveryTimeout)
        assert code.text in str(record.error), "the last error is named"
        assert record.error.retriable


@pytest.mark.parametrize("code", FAILING, ids=name)
def test_what_fails_for_ever_fails_each_batch_of_the_partition_and_no_other(code: ErrorCode) -> None:
    partition = code % 3
    story = told(code, [partition], times=None, appended=False)
    lost = failed(story.records)
    assert lost == story.of(partition)[-len(lost) :]
    assert 0 < len(lost) < 10
    assert all(isinstance(record.error, ClientError) and record.error.code is code for record in lost)


def test_too_large_batches_are_split_and_a_record_that_is_too_large_alone_fails() -> None:
    [code] = SPLITTING
    story = told(code, [1], times=1, appended=False)
    assert story.errors == []
    story = told(code, [1], times=None, appended=False)
    lost = failed(story.records)
    assert lost == story.of(1)[-len(lost) :]
    assert 0 < len(lost) < 10
    assert all(isinstance(record.error, RecordTooLarge) for record in lost)


@pytest.mark.parametrize("number", [134, 999, 32_767, -2, -32_768])
def test_a_code_that_nobody_knows_fails_its_batch(number: int) -> None:
    def set_code(response: ProduceResponse) -> None:
        for topic in response.responses:
            for part in topic.partition_responses:
                part.error_code = number

    async def main() -> Story:
        with scripted_cluster() as cluster:
            cluster.on(ProduceRequest, edited(set_code), nth=2)
            return await tell(cluster, records=10, **SETTINGS)

    story = run_virtual(main())
    assert 0 < len(story.errors) < 30
    assert all(isinstance(why, ClientError) and str(number) in str(why) for why in story.errors)


@pytest.mark.parametrize("code", [code for code in CODES if code.reaction.retriable], ids=name)
def test_without_idempotence_what_passes_costs_no_record_either(code: ErrorCode) -> None:
    async def main() -> Story:
        with scripted_cluster(brokers=3) as cluster:
            cluster.on(ProduceRequest, error(code, appended=False), nth=2, times=2)
            return await tell(cluster, records=10, acks=1, max_in_flight_requests_per_connection=1, **SETTINGS)

    story = run_virtual(main())
    assert story.errors == []
    for partition in ALL:
        assert story.cluster.values(TOPIC, partition) == [record.value for record in story.of(partition)]
