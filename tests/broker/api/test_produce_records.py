"""Produce where the topic cares for what is in a batch: which records are to blame, whose time counts, in which codec.

The rules themselves are shown in tests/broker/log/test_validation.py; here it is what a client is told and reads back.
"""

import pytest

from odradek.broker.handling.context import CloseConnection, Context
from odradek.broker.log.validation import RECORD_ERRORS_MAX
from odradek.protocol.batches.batch import read_header
from odradek.protocol.batches.compression import Codec
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record, iterate_records
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek.protocol.messages.produce import PartitionProduceResponse
from odradek.runtime.environment import Environment
from tests.broker.api.producing import end_of, idempotent, produced, request
from tests.broker.support import ask, ask_if_answered, batch, make_topic, running_broker

COMPACTED = {"cleanup.policy": "compact"}
STAMPED = {"message.timestamp.type": "LogAppendTime"}
TOPIC = 2


def stored(context: Context, offset: int = 0) -> bytes:
    return bytes(context.partitions.leader("orders", 0).reader.fetch(offset, 1 << 20, at_least_one_batch=True).records)


def blamed(answer: PartitionProduceResponse) -> list[int]:
    assert all(error.batch_index_error_message for error in answer.record_errors)
    return [error.batch_index for error in answer.record_errors]


def mixed() -> bytes:
    """The second and the fourth of five records have no key."""
    keys = [b"a", None, b"c", None, b"e"]
    return build_batch([Record(offset, 1_000, key, b"v") for offset, key in enumerate(keys)])


# -- record errors ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(3, 14))
async def test_since_version_8_the_records_are_named_that_are_to_blame(version: int) -> None:
    async with running_broker() as context:
        await make_topic(context, "orders", configs=COMPACTED)
        (refused,) = await produced(context, (0, mixed()), version=version)
        assert end_of(context) == 0
        (taken,) = await produced(context, (0, batch(b"v", key=b"k")), version=version)
    assert (refused.error_code, refused.base_offset) == (ErrorCode.INVALID_RECORD, -1)
    assert (taken.error_code, taken.base_offset, taken.record_errors) == (ErrorCode.NONE, 0, [])
    if version < 8:
        assert (refused.record_errors, refused.error_message) == ([], None)
        return
    assert blamed(refused) == [1, 3]
    assert (refused.error_message or "").startswith("records refused: 2, the first is record 1: it has no key")


async def test_a_timestamp_too_far_ahead_is_refused_by_default() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders")
        now_ms = context.environment.now_ms()
        times = [now_ms, now_ms + 3_590_000, now_ms + 3_700_000]
        (refused,) = await produced(context, (0, batch(b"a", b"b", b"c", timestamps_ms=times)))
        (taken,) = await produced(context, (0, batch(b"a", b"b", timestamps_ms=times[:2])))
        assert end_of(context) == 2
    assert (refused.error_code, blamed(refused)) == (ErrorCode.INVALID_TIMESTAMP, [2])
    assert taken.error_code == ErrorCode.NONE


async def test_a_timestamp_too_far_back_is_refused_where_the_topic_says_so() -> None:
    async with running_broker({"log.message.timestamp.before.max.ms": "60000"}) as context:
        await make_topic(context, "orders")
        await make_topic(context, "others", configs={"message.timestamp.before.max.ms": "9223372036854775807"})
        now_ms = context.environment.now_ms()
        sent = batch(b"a", b"b", b"c", timestamps_ms=[now_ms, 1, -1])
        (refused,) = await produced(context, (0, sent))
        (taken,) = await produced(context, (0, sent), topic="others")
    assert (refused.error_code, blamed(refused)) == (ErrorCode.INVALID_TIMESTAMP, [1])
    assert taken.error_code == ErrorCode.NONE


async def test_partitions_that_fail_later_name_fewer_records() -> None:
    """So that an answer stays small, whatever was sent; every partition that fails still says so."""
    many = batch(*[b"v"] * (RECORD_ERRORS_MAX + 1))
    async with running_broker() as context:
        await make_topic(context, "orders", 4, configs=COMPACTED)
        told = await produced(context, (0, many), (1, many), (9, many), (3, batch(b"v")), (2, many))
    assert [answer.error_code for answer in told] == [
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_RECORD,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_RECORD,
    ]
    assert [len(answer.record_errors) for answer in told] == [
        RECORD_ERRORS_MAX,
        RECORD_ERRORS_MAX // 2,
        0,
        1,
        RECORD_ERRORS_MAX // 5,
    ]


async def test_with_acks_0_the_connection_is_closed_with_the_reason() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders", configs=COMPACTED)
        with pytest.raises(CloseConnection, match=r"orders-0: INVALID_RECORD, records refused: 1, .* no key"):
            await ask_if_answered(context, request((0, batch(b"v")), acks=0), 11)
        assert end_of(context) == 0


# -- the broker's time ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", Codec)
async def test_the_time_of_the_append_is_answered_and_stored(codec: Codec) -> None:
    sent = build_batch([Record(0, 5, b"k", b"v"), Record(1, 7, None, b"w")], codec=codec)
    async with running_broker() as context:
        await make_topic(context, "orders", configs=STAMPED)
        before_ms = context.environment.now_ms()
        (answer,) = await produced(context, (0, sent))
        after_ms = context.environment.now_ms()
        found = stored(context)
    assert answer.error_code == ErrorCode.NONE
    assert before_ms <= answer.log_append_time_ms <= after_ms
    assert [record.timestamp_ms for record in iterate_records(found)] == [answer.log_append_time_ms] * 2
    assert found[61:] == sent[61:]


async def test_a_duplicate_is_answered_with_the_time_of_the_first_append(monkeypatch: pytest.MonkeyPatch) -> None:
    clock_ms = [1_700_000_000_000]

    def now_ms(_: Environment) -> int:
        return clock_ms[0]

    monkeypatch.setattr(Environment, "now_ms", now_ms)
    async with running_broker() as context:
        await make_topic(context, "orders", configs=STAMPED)
        (first,) = await produced(context, (0, idempotent(0)))
        clock_ms[0] += 1
        (again,) = await produced(context, (0, idempotent(0)))
        (new,) = await produced(context, (0, idempotent(1)))
    told = [(answer.error_code, answer.base_offset, answer.log_append_time_ms) for answer in (first, again, new)]
    assert told == [(0, 0, 1_700_000_000_000), (0, 0, 1_700_000_000_000), (0, 1, 1_700_000_000_001)]


async def test_a_change_of_the_topic_counts_from_the_next_batch_on() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders")
        (before,) = await produced(context, (0, batch(b"v")))
        setting = AlterableConfig(name="message.timestamp.type", config_operation=0, value="LogAppendTime")
        resource = AlterConfigsResource(resource_type=TOPIC, resource_name="orders", configs=[setting])
        altered = await ask(context, IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1)
        assert altered.responses[0].error_code == ErrorCode.NONE
        (after,) = await produced(context, (0, batch(b"v")))
    assert before.log_append_time_ms == -1
    assert after.log_append_time_ms > 1_600_000_000_000


# -- the topic's codec ------------------------------------------------------------------------------------------------


async def test_what_is_stored_has_the_codec_of_the_topic() -> None:
    records = [Record(0, 5, b"k", b"v" * 300), Record(1, 7, None, None, (("h", b"1"),))]
    async with running_broker({"compression.type": "zstd"}) as context:
        await make_topic(context, "orders")
        for codec in Codec:
            (answer,) = await produced(context, (0, build_batch(records, codec=codec)))
            assert answer.error_code == ErrorCode.NONE
            found = stored(context, answer.base_offset)
            assert read_header(found).codec is Codec.ZSTD
            assert [each[1:] for each in iterate_records(found)] == [each[1:] for each in records]


async def test_the_size_that_is_stored_may_not_exceed_the_bound_either() -> None:
    sent = build_batch([Record(0, 5, None, bytes(5_000))], codec=Codec.GZIP)
    async with running_broker() as context:
        configs = {"compression.type": "uncompressed", "max.message.bytes": "5000"}
        await make_topic(context, "orders", configs=configs)
        (answer,) = await produced(context, (0, sent))
        assert end_of(context) == 0
    assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("settings", [{}, {"compression.type": "gzip"}])
async def test_zstd_needs_version_7_whatever_is_stored(settings: dict[str, str]) -> None:
    sent = build_batch([Record(0, 5, None, b"v")], codec=Codec.ZSTD)
    async with running_broker(settings) as context:
        await make_topic(context, "orders")
        (old,) = await produced(context, (0, sent), version=6)
        (new,) = await produced(context, (0, sent), version=7)
    assert (old.error_code, new.error_code) == (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, ErrorCode.NONE)
