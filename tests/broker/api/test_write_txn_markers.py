"""WriteTxnMarkers: a coordinator, or an operator by hand, ends a transaction in partitions that are led here."""

import asyncio
import logging
from collections.abc import Sequence

import pytest

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import CLUSTER
from odradek.broker.handling.context import Caller, Context
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.broker.groups import GROUP, NOWHERE, fetch
from tests.broker.support import LISTENER, ask, make_topic, running_broker
from tests.broker.transactions import (
    Denying,
    Place,
    Producer,
    committed,
    lead,
    markers,
    running_transactions,
    stable_end,
)

pytestmark = pytest.mark.virtual_time
FIRST = ("orders", 0)
VERSIONS = pytest.mark.parametrize("version", [1, 2])
OFFSETS = "__consumer_offsets"
COORDINATOR_EPOCH = 9


async def begun(context: Context) -> Producer:
    """One record in the first partition, and nobody who would end it."""
    producer = Producer(context)
    await producer.init()
    assert await producer.send(b"a") is ErrorCode.NONE
    return producer


def marker(
    producer: Producer,
    *places: Place,
    epoch: int | None = None,
    commit: bool = False,
    coordinator_epoch: int = COORDINATOR_EPOCH,
    transaction_version: int = 0,
) -> WritableTxnMarker:
    return WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch if epoch is None else epoch,
        transaction_result=commit,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[index]) for topic, index in places],
        coordinator_epoch=coordinator_epoch,
        transaction_version=transaction_version,
    )


async def written(context: Context, *asked: WritableTxnMarker, version: int = 1) -> Sequence[Sequence[ErrorCode]]:
    """By marker, the codes of its partitions."""
    answer = await ask(context, WriteTxnMarkersRequest(markers=[*asked]), version)
    assert [each.producer_id for each in answer.markers] == [each.producer_id for each in asked]
    return [
        [ErrorCode(partition.error_code) for topic in each.topics for partition in topic.partitions]
        for each in answer.markers
    ]


@VERSIONS
@pytest.mark.parametrize("commit", [True, False])
async def test_a_marker_ends_the_transaction_in_its_partitions(version: int, commit: bool) -> None:
    async with running_transactions() as context:
        producer = await begun(context)
        asked = marker(producer, FIRST, ("orders", 1), commit=commit)
        assert await written(context, asked, version=version) == [[ErrorCode.NONE] * 2]
        assert (await committed(context), await stable_end(context)) == ([b"a"] if commit else [], 2)
        assert await markers(context, 1) == [(producer.producer_id, producer.epoch, not commit)], "nothing came there"


async def test_several_markers_are_answered_in_order() -> None:
    async with running_transactions() as context:
        first, second = Producer(context, "a"), Producer(context, "b")
        for producer in (first, second):
            await producer.init()
            await producer.send(producer.transactional_id.encode())
        asked = marker(second, FIRST, commit=True), marker(first, FIRST, ("orders", 7))
        assert await written(context, *asked) == [
            [ErrorCode.NONE],
            [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
        ]
        assert await committed(context) == [b"b"]


@VERSIONS
async def test_an_older_coordinator_or_producer_is_refused(version: int) -> None:
    async with running_transactions() as context:
        producer = await begun(context)
        assert await written(context, marker(producer, FIRST), version=version) == [[ErrorCode.NONE]]
        older = marker(producer, FIRST, coordinator_epoch=COORDINATOR_EPOCH - 1)
        assert await written(context, older, version=version) == [[ErrorCode.TRANSACTION_COORDINATOR_FENCED]]
        await written(context, marker(producer, FIRST, epoch=5), version=version)
        older = marker(producer, FIRST, epoch=4)
        assert await written(context, older, version=version) == [[ErrorCode.INVALID_PRODUCER_EPOCH]]
        assert len(await markers(context)) == 2


async def test_a_repeated_marker_of_version_2_does_not_end_the_next_transaction() -> None:
    async with running_transactions() as context:
        producer = await begun(context)
        await producer.end(commit=True)
        assert await producer.send(b"b") is ErrorCode.NONE
        late = marker(producer, FIRST, commit=True, transaction_version=2)
        assert await written(context, late, version=2) == [[ErrorCode.INVALID_PRODUCER_EPOCH]]
        assert await committed(context) == [b"a"]


@VERSIONS
async def test_partitions_that_are_not_led_here_are_refused(version: int) -> None:
    async with running_transactions() as context:
        await make_topic(context, "away", replicas=(1,), leader=1)
        index = context.groups.index_of(GROUP) or 0
        await lead(context, OFFSETS, index, 1)
        places = [("away", 0), ("nowhere", 0), ("orders", 3), (OFFSETS, index), (OFFSETS, 7)]
        assert await written(context, marker(Producer(context), *places, epoch=0), version=version) == [
            [
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ]
        ]


@VERSIONS
@pytest.mark.parametrize("commit", [True, False])
async def test_the_coordinator_of_groups_hears_of_its_marker_at_once(version: int, commit: bool) -> None:
    async with running_transactions() as context:
        producer = Producer(context)
        await producer.init()
        await producer.commit_offsets({FIRST: 7})
        place = (OFFSETS, context.groups.index_of(GROUP) or 0)
        asked = marker(producer, place, commit=commit)
        assert await written(context, asked, version=version) == [[ErrorCode.NONE]]
        found = await fetch(context, [FIRST])
        assert found[FIRST][0] == 7 if commit else found[FIRST] == NOWHERE


@VERSIONS
async def test_a_marker_by_hand_is_logged_with_who_and_from_where(
    caplog: pytest.LogCaptureFixture, version: int
) -> None:
    async with running_transactions() as context:
        producer = await begun(context)
        request = WriteTxnMarkersRequest(markers=[marker(producer, FIRST, *(("orders", each) for each in range(50)))])
        with caplog.at_level(logging.WARNING):
            await ask(context, request, version, caller=Caller(LISTENER, "10.1.2.3:4", "10.1.2.3"))
        [line] = [each.getMessage() for each in caplog.records if "by hand" in each.getMessage()]
        assert line.startswith(
            f"User:ANONYMOUS from 10.1.2.3 ends a transaction by hand: producer {producer.producer_id} "
            f"epoch {producer.epoch}, abort, in orders-0, "
        )
        assert line.endswith("and 41 more"), "a line stays a line"


@VERSIONS
@pytest.mark.parametrize("denied", [Operation.ALTER, Operation.CLUSTER_ACTION])
async def test_either_of_two_rights_on_the_cluster_is_enough(version: int, denied: Operation) -> None:
    async with running_broker(access=Denying((denied, CLUSTER))) as context:
        await make_topic(context, "orders")
        asked = marker(Producer(context), FIRST, epoch=0)
        assert await written(context, asked, version=version) == [[ErrorCode.NONE]]


@VERSIONS
async def test_without_both_nothing_is_written(version: int) -> None:
    access = Denying((Operation.ALTER, CLUSTER), (Operation.CLUSTER_ACTION, CLUSTER))
    async with running_broker(access=access) as context:
        await make_topic(context, "orders")
        asked = marker(Producer(context), FIRST, ("orders", 7), epoch=0)
        refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert await written(context, asked, version=version) == [[refused] * 2]
        assert context.partitions.leader("orders", 0).log.log_end_offset == 0


async def test_markers_for_many_partitions_leave_the_loop_to_others_meanwhile() -> None:
    async with running_transactions() as context:
        await make_topic(context, "many", 300)
        logs = [context.partitions.find("many", index).log for index in range(300)]
        asked = WritableTxnMarker(
            producer_id=7,
            producer_epoch=0,
            transaction_result=True,
            topics=[WritableTxnMarkerTopic(name="many", partition_indexes=[*range(300)])],
            coordinator_epoch=COORDINATOR_EPOCH,
        )
        writing = asyncio.ensure_future(written(context, asked))
        seen: set[int] = set()
        while not writing.done():
            await asyncio.sleep(0)
            seen.add(sum(log.log_end_offset for log in logs))
        assert await writing == [[ErrorCode.NONE] * 300]
        assert seen >= {99, 199, 299, 300}
