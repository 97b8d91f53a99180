"""Fetch: whole batches up to the high watermark, waits that end when they should, sessions, and errors one by one."""

import asyncio
import struct

import pytest

from odradek.broker.cluster.keys import BrokerState
from odradek.broker.cluster.topics import delete_topic
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.handling.context import Context
from odradek.broker.replica.replicas import Replicas
from odradek.protocol.batches.compression import Codec
from odradek.protocol.batches.crc32c import crc32c
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record
from odradek.protocol.codec.schema import ZERO_UUID
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import (
    EpochEndOffset,
    FetchRequest,
    LeaderIdAndEpoch,
    PartitionData,
)
from tests.broker.api.fetching import (
    BY_ID,
    BY_NAME,
    LARGE,
    codes,
    fetched,
    offsets,
    request,
    told,
    wanted,
    with_records,
)
from tests.broker.support import HERE, append, ask, batch, make_topic, running_broker

UNKNOWN_ID = bytes(range(16))


async def started(context: Context, sent: FetchRequest, version: int = BY_NAME) -> asyncio.Task[list[PartitionData]]:
    """A Fetch that waits, if it has to."""
    task = asyncio.ensure_future(fetched(context, sent, version))
    for _ in range(5):
        await asyncio.sleep(0)
    return task


# -- reading --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(4, 19))
@pytest.mark.parametrize("isolation_level", [0, 1])
async def test_records_in_every_version(version: int, isolation_level: int) -> None:
    async with running_broker() as context:
        await with_records(context)
        topic_id = context.metadata.image.topics["orders"].topic_id
        sent = request(wanted(offset=1), topic_id=topic_id, isolation_level=isolation_level)
        response = await ask(context, sent, version)
    (topic,) = response.responses
    assert (topic.topic, topic.topic_id) == (("orders", ZERO_UUID) if version < 13 else ("", topic_id))
    (answer,) = topic.partitions
    assert offsets(answer) == [1, 2]
    assert (answer.error_code, answer.high_watermark, answer.last_stable_offset) == (ErrorCode.NONE, 3, 3)
    assert answer.log_start_offset == (0 if version >= 5 else -1)
    assert answer.aborted_transactions == ([] if isolation_level else None)
    assert answer.preferred_read_replica == -1
    assert response.session_id == 0


async def test_a_batch_is_answered_whole_although_it_begins_before_the_offset() -> None:
    async with running_broker() as context:
        partition = await with_records(context)
        append(partition, batch(b"d", b"e", b"f"))
        (answer,) = await fetched(context, request(wanted(offset=5)))
    assert offsets(answer) == [3]


async def test_the_answer_is_empty_and_not_null_at_the_end() -> None:
    async with running_broker() as context:
        await with_records(context)
        (answer,) = await fetched(context, request(wanted(offset=3)))
    assert (answer.error_code, answer.high_watermark) == (ErrorCode.NONE, 3)
    assert answer.records is not None
    assert len(answer.records) == 0


async def test_nothing_behind_the_high_watermark_is_answered() -> None:
    async with running_broker() as context:
        partition = await with_records(context)
        partition.become_leader(1, Replicas(0, (0, 1), (0, 1)))
        append(partition, batch(b"unreplicated"))
        (before,) = await fetched(context, request(wanted(offset=2)))
        (between,) = await fetched(context, request(wanted(offset=4)))
    assert (offsets(before), before.high_watermark) == ([2], 3)
    assert (offsets(between), between.error_code) == ([], ErrorCode.NONE)


@pytest.mark.parametrize("offset", [4, -1, 2**62])
async def test_an_offset_outside_of_the_log(offset: int) -> None:
    async with running_broker() as context:
        await with_records(context)
        (answer,) = await fetched(context, request(wanted(offset=offset)))
    assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset) == (-1, -1, -1)


async def test_an_offset_below_the_log_start() -> None:
    async with running_broker() as context:
        partition = await with_records(context)
        await context.partitions.delete_records(partition, 2)
        below, at = await fetched(context, request(wanted(offset=1))), await fetched(context, request(wanted(offset=2)))
    assert codes(below) == [ErrorCode.OFFSET_OUT_OF_RANGE]
    assert (offsets(at[0]), at[0].log_start_offset) == ([2], 2)


# -- limits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("max_bytes", "partition_max_bytes"), [(1, LARGE), (LARGE, 1), (0, 0)])
async def test_one_whole_batch_is_answered_although_it_is_over_the_limits(
    max_bytes: int, partition_max_bytes: int
) -> None:
    async with running_broker() as context:
        await with_records(context, partitions=2)
        append(context.partitions.leader("orders", 1), batch(b"other"))
        sent = request(
            wanted(1, max_bytes=partition_max_bytes), wanted(0, max_bytes=partition_max_bytes), max_bytes=max_bytes
        )
        answers = await fetched(context, sent)
    assert [offsets(answer) for answer in answers] == [[0], []]


async def test_the_limits_count_whole_batches() -> None:
    size = len(batch(b"a"))
    async with running_broker() as context:
        await with_records(context, partitions=2)
        append(context.partitions.leader("orders", 1), batch(b"a"))
        by_partition = await fetched(context, request(wanted(0, max_bytes=2 * size + 1)))
        by_request = await fetched(context, request(wanted(0), wanted(1), max_bytes=3 * size + 1))
    assert [offsets(answer) for answer in by_partition] == [[0, 1]]
    assert [offsets(answer) for answer in by_request] == [[0, 1, 2], []]


async def test_the_broker_has_a_limit_of_its_own() -> None:
    async with running_broker({"fetch.max.bytes": "1024"}) as context:
        partition = await with_records(context)
        for _ in range(10):
            append(partition, batch(b"x" * 400))
        (answer,) = await fetched(context, request(wanted(0)))
    assert sum(map(len, [answer.records or b""])) <= 1024
    assert len(offsets(answer)) > 3


# -- waiting --------------------------------------------------------------------------------------------------------


async def test_a_fetch_waits_for_the_next_record() -> None:
    async with running_broker() as context:
        partition = await with_records(context)
        task = await started(context, request(wanted(offset=3), max_wait_ms=10_000))
        assert not task.done()
        append(partition, batch(b"d"))
        (answer,) = await asyncio.wait_for(task, 5)
    assert offsets(answer) == [3]


async def test_a_fetch_waits_for_the_high_watermark_and_not_for_the_append() -> None:
    async with running_broker() as context:
        partition = await with_records(context)
        partition.become_leader(1, Replicas(0, (0, 1), (0, 1)))
        task = await started(context, request(wanted(offset=3), max_wait_ms=10_000))
        append(partition, batch(b"d"))
        await asyncio.sleep(0.02)  # time in which a wrong wake-up would end it; a right broker passes however long
        assert not task.done()
        partition.replicas.followers[1].fetched(4, partition.host.environment.monotonic_ms(), 4)
        partition.acknowledgements.update()
        (answer,) = await asyncio.wait_for(task, 5)
    assert offsets(answer) == [3]


async def test_a_fetch_waits_until_there_are_enough_bytes() -> None:
    size = len(batch(b"d"))
    async with running_broker() as context:
        partition = await with_records(context)
        task = await started(context, request(wanted(offset=3), max_wait_ms=10_000, min_bytes=2 * size))
        append(partition, batch(b"d"))
        await asyncio.sleep(0.02)  # time in which a wrong wake-up would end it; a right broker passes however long
        assert not task.done()
        append(partition, batch(b"e"))
        (answer,) = await asyncio.wait_for(task, 5)
    assert offsets(answer) == [3, 4]


async def test_when_the_wait_is_over_the_answer_is_what_there_is() -> None:
    async with running_broker() as context:
        await with_records(context)
        sent = request(wanted(offset=2), max_wait_ms=30, min_bytes=LARGE)
        (answer,) = await asyncio.wait_for(fetched(context, sent), 5)
    assert offsets(answer) == [2]


async def test_an_error_in_one_partition_ends_the_wait_for_all() -> None:
    async with running_broker() as context:
        await with_records(context)
        sent = request(wanted(offset=3), wanted(9), max_wait_ms=10_000)
        answers = await asyncio.wait_for(fetched(context, sent), 5)
    assert codes(answers) == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


async def test_a_fetch_of_nothing_does_not_wait() -> None:
    async with running_broker() as context:
        assert await asyncio.wait_for(fetched(context, request(max_wait_ms=10_000)), 5) == []


async def test_lost_leadership_ends_the_wait() -> None:
    async with running_broker() as context:
        partition = await with_records(context)
        task = await started(context, request(wanted(offset=3), max_wait_ms=10_000))
        partition.resign()
        assert codes(await asyncio.wait_for(task, 5)) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


async def test_a_deleted_topic_ends_the_wait() -> None:
    async with running_broker() as context:
        await with_records(context)
        topic = context.metadata.image.topics["orders"]
        by_name = await started(context, request(wanted(offset=3), max_wait_ms=10_000))
        sent = request(wanted(offset=3), topic_id=topic.topic_id, max_wait_ms=10_000)
        by_id = await started(context, sent, BY_ID)
        await context.metadata.applied(await delete_topic(context.metadata.store, topic))
        assert codes(await asyncio.wait_for(by_name, 5)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert codes(await asyncio.wait_for(by_id, 5)) == [ErrorCode.UNKNOWN_TOPIC_ID]


async def test_a_stopping_broker_ends_the_wait() -> None:
    async with running_broker() as context:
        await with_records(context)
        task = await started(context, request(wanted(offset=3), max_wait_ms=10_000))
        context.stop()
        assert codes(await asyncio.wait_for(task, 5)) == [ErrorCode.NONE]


async def test_nobody_watches_a_partition_after_the_answer() -> None:
    async with running_broker() as context:
        partition = await with_records(context)
        task = await started(context, request(wanted(offset=3), max_wait_ms=10_000))
        assert len(partition.reader.watchers) == 1
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert partition.reader.watchers == {}


# -- errors ---------------------------------------------------------------------------------------------------------


async def test_unknown_topics_by_name_and_by_id() -> None:
    async with running_broker() as context:
        await with_records(context)
        by_name = await fetched(context, request(wanted(), topic="nowhere"))
        by_id = await fetched(context, request(wanted(), topic_id=UNKNOWN_ID), BY_ID)
        by_no_id = await fetched(context, request(wanted()), BY_ID)
    assert codes(by_name) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert codes(by_id) == [ErrorCode.UNKNOWN_TOPIC_ID]
    assert codes(by_no_id) == [ErrorCode.UNKNOWN_TOPIC_ID]


async def test_the_id_of_a_deleted_topic_is_not_that_of_its_successor() -> None:
    async with running_broker() as context:
        await with_records(context)
        topic = context.metadata.image.topics["orders"]
        await context.metadata.applied(await delete_topic(context.metadata.store, topic))
        await make_topic(context, "orders")
        assert codes(await fetched(context, request(wanted(), topic_id=topic.topic_id), BY_ID)) == [
            ErrorCode.UNKNOWN_TOPIC_ID
        ]


@pytest.mark.parametrize(
    ("epoch", "code"),
    [
        (4, ErrorCode.FENCED_LEADER_EPOCH),
        (6, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (5, ErrorCode.NONE),
        (-1, ErrorCode.NONE),
    ],
)
async def test_the_clients_leader_epoch_is_compared(epoch: int, code: ErrorCode) -> None:
    async with running_broker() as context:
        partition = await with_records(context)
        partition.become_leader(5, Replicas(0, (0,), (0,)))
        assert codes(await fetched(context, request(wanted(epoch=epoch)))) == [code]


async def test_a_reader_whose_epoch_ended_earlier_is_told_where() -> None:
    """Followers and KIP-595's readers send the epoch of the last record they have; consumers send -1."""
    async with running_broker() as context:
        partition = await with_records(context)
        partition.become_leader(5, Replicas(0, (0,), (0,)))
        append(partition, batch(b"d"))
        (diverging,) = await fetched(context, request(wanted(offset=4, last_epoch=0), max_wait_ms=10_000))
        (agreeing,) = await fetched(context, request(wanted(offset=3, last_epoch=0)))
    assert (diverging.error_code, diverging.diverging_epoch) == (0, EpochEndOffset(epoch=0, end_offset=3))
    assert offsets(diverging) == []
    assert agreeing.diverging_epoch is None
    assert offsets(agreeing) == [3]


@pytest.mark.parametrize("version", [4, 9, 10])
async def test_zstd_batches_are_handed_to_every_version(version: int) -> None:
    """As Kafka does: rskafka asks with version 4, and reads them."""
    async with running_broker() as context:
        await make_topic(context, "orders")
        data = build_batch([Record(0, 1000, None, b"value", ())], codec=Codec.ZSTD)
        append(context.partitions.leader("orders", 0), data)
        (answer,) = await fetched(context, request(wanted()), version)
    assert (answer.error_code, offsets(answer)) == (ErrorCode.NONE, [0])


@pytest.mark.parametrize(("version", "code"), [(9, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE), (10, ErrorCode.NONE)])
@pytest.mark.parametrize(
    ("of_broker", "of_topic"), [({}, {"compression.type": "zstd"}), ({"compression.type": "zstd"}, {})]
)
async def test_a_topic_that_is_compressed_with_zstd_needs_version_10(
    version: int, code: ErrorCode, of_broker: dict[str, str], of_topic: dict[str, str]
) -> None:
    """Whether or not there is a batch, as Kafka does (KIP-110); by the topic's option, or the broker's default."""
    async with running_broker(of_broker) as context:
        await make_topic(context, "orders", 1, of_topic)
        for offset in (0, 1):
            assert codes(await fetched(context, request(wanted(offset=0)), version)) == [code], offset
            append(context.partitions.leader("orders", 0), batch(b"value"))


async def test_a_topic_that_is_compressed_otherwise_than_its_broker_needs_no_version() -> None:
    async with running_broker({"compression.type": "zstd"}) as context:
        await make_topic(context, "orders", 1, {"compression.type": "producer"})
        assert codes(await fetched(context, request(wanted()), 4)) == [ErrorCode.NONE]


async def test_a_poisonous_batch_does_not_keep_readers_from_what_follows() -> None:
    """A batch whose records are nonsense (see `record.validation`) is handed out as it is, and no more than that."""
    async with running_broker() as context:
        partition = await with_records(context)
        end = partition.log.log_end_offset
        nonsense = bytearray(batch(b"poison"))
        nonsense[61:] = b"\xff" * (len(nonsense) - 61)
        struct.pack_into(">I", nonsense, 17, crc32c(memoryview(nonsense)[21:]))
        append(partition, bytes(nonsense))
        append(partition, batch(b"after"))
        (answer,) = await fetched(context, request(wanted(offset=end)))
    assert offsets(answer) == [end, end + 1]


@pytest.mark.parametrize(
    ("version", "code"), [(5, ErrorCode.NOT_LEADER_OR_FOLLOWER), (6, ErrorCode.KAFKA_STORAGE_ERROR)]
)
async def test_a_disk_that_fails_is_told_in_a_way_that_the_client_knows(version: int, code: ErrorCode) -> None:
    async with running_broker(disk=MemoryDisk()) as context:
        partition = await with_records(context)
        partition.log.close()
        assert codes(await fetched(context, request(wanted()), version)) == [code]


@pytest.mark.parametrize("version", [13, 15, 16, 17, 18])
async def test_since_version_16_the_leader_is_named(version: int) -> None:
    """The field for it is older, and Kafka fills it from 16 on, with the endpoints (KIP-951)."""
    other = BrokerState(1, {"PLAINTEXT": ("127.0.0.1", 9093)})
    async with running_broker(brokers=(HERE, other)) as context:
        topic_id = await make_topic(context, "orders", replicas=(1, 2), leader=1)
        response = await ask(context, request(wanted(), topic_id=topic_id), version)
    [partition] = told(response)
    named = None if version < 16 else LeaderIdAndEpoch(leader_id=1, leader_epoch=0)
    assert (partition.error_code, partition.current_leader) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, named)
    endpoints = [(node.node_id, node.host, node.port) for node in response.node_endpoints]
    assert endpoints == ([] if version < 16 else [(1, "127.0.0.1", 9093)])
