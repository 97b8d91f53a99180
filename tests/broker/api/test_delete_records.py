"""DeleteRecords moves the log start up to the high watermark and no further, and answers the new low watermark once all
replicas have deleted that count (who these are: tests/broker/replica/test_deletions.py)."""

import asyncio
import errno
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from odradek.broker.cluster.keys import BrokerState
from odradek.broker.cluster.topics import delete_topic
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.handling.context import Context
from odradek.broker.log.checkpoint import LOG_START_OFFSETS, read_offsets
from odradek.broker.replica.replicas import Replicas
from odradek.protocol.codec.schema import Buffer
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from odradek.runtime.tasks import breathe
from tests.broker.support import DATA_DIR, HERE, append, ask, batch, make_topic, running_broker

OTHER = BrokerState(1, {"PLAINTEXT": ("127.0.0.1", 9093)})


async def deleted(
    context: Context, *wanted: tuple[int, int], topic: str = "orders", version: int = 2, timeout_ms: int = 1000
) -> list[tuple[int, int, int]]:
    """Partition, low watermark and error of each answer."""
    request = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name=topic,
                partitions=[DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in wanted],
            )
        ],
        timeout_ms=timeout_ms,
    )
    answer = await ask(context, request, version)
    (told,) = answer.topics
    assert told.name == topic
    return [(each.partition_index, each.low_watermark, each.error_code) for each in told.partitions]


async def with_records(context: Context) -> None:
    """Three records in partition 0 of "orders", none in partition 1."""
    await make_topic(context, "orders", 2)
    append(context.partitions.leader("orders", 0), batch(b"a", b"b", b"c"))


@pytest.mark.parametrize("version", range(3))
async def test_an_offset_becomes_the_log_start(version: int) -> None:
    async with running_broker() as context:
        await with_records(context)
        assert await deleted(context, (0, 2), version=version) == [(0, 2, 0)]
        assert context.partitions.leader("orders", 0).log.log_start_offset == 2


async def test_minus_one_stands_for_the_high_watermark() -> None:
    async with running_broker() as context:
        await with_records(context)
        partition = context.partitions.leader("orders", 0)
        partition.become_leader(1, Replicas(0, (0, 1), (0, 1)))
        append(partition, batch(b"unreplicated"))
        partition.replicas.followers[1].log_start_offset = 3
        assert await deleted(context, (0, -1)) == [(0, 3, 0)]
        assert partition.log.log_end_offset == 4


async def test_the_log_start_never_goes_back_on_disk_neither() -> None:
    async with running_broker() as context:
        await with_records(context)
        for offset in (2, 1, 0):
            assert await deleted(context, (0, offset)) == [(0, 2, 0)]
        assert read_offsets(context.disk, f"{DATA_DIR}/{LOG_START_OFFSETS}") == {("orders", 0): 2}


async def test_records_behind_the_high_watermark_cannot_be_deleted_although_they_are_there() -> None:
    async with running_broker() as context:
        await with_records(context)
        partition = context.partitions.leader("orders", 0)
        partition.become_leader(1, Replicas(0, (0, 1), (0, 1)))
        append(partition, batch(b"unreplicated"))
        assert await deleted(context, (0, 4)) == [(0, -1, ErrorCode.OFFSET_OUT_OF_RANGE)]
        assert partition.log.log_start_offset == 0


@pytest.mark.parametrize("offset", [4, -2, 2**62])
async def test_behind_the_high_watermark_or_negative_is_out_of_range(offset: int) -> None:
    async with running_broker() as context:
        await with_records(context)
        assert await deleted(context, (0, offset)) == [(0, -1, ErrorCode.OFFSET_OUT_OF_RANGE)]
        assert context.partitions.leader("orders", 0).log.log_start_offset == 0


async def test_each_partition_has_its_own_answer_in_order() -> None:
    async with running_broker() as context:
        await with_records(context)
        assert await deleted(context, (1, 5), (0, 1), (9, 0)) == [
            (1, -1, ErrorCode.OFFSET_OUT_OF_RANGE),
            (0, 1, 0),
            (9, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ]
        assert await deleted(context, (0, 0), topic="nowhere") == [(0, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]


async def test_records_of_internal_topics_stay() -> None:
    async with running_broker() as context:
        await make_topic(context, "__consumer_offsets")
        assert await deleted(context, (0, 0), topic="__consumer_offsets") == [
            (0, -1, ErrorCode.INVALID_TOPIC_EXCEPTION)
        ]


async def test_records_of_a_topic_without_the_delete_policy_stay() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders", configs={"cleanup.policy": ""})
        assert await deleted(context, (0, 0)) == [(0, -1, ErrorCode.POLICY_VIOLATION)]


async def test_a_partition_led_elsewhere_is_not_touched() -> None:
    async with running_broker() as context:
        await with_records(context)
        context.partitions.leader("orders", 0).resign()
        assert await deleted(context, (0, 1)) == [(0, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER)]


async def test_nothing_is_deleted_when_the_log_start_cannot_be_written() -> None:
    class FullDisk(MemoryDisk):
        is_full = False

        def write_whole(self, path: str, data: Buffer) -> None:
            if self.is_full:
                raise OSError(errno.ENOSPC, "no room")
            super().write_whole(path, data)

    disk = FullDisk()
    async with running_broker(disk=disk) as context:
        await with_records(context)
        disk.is_full = True
        assert await deleted(context, (0, 2)) == [(0, -1, ErrorCode.KAFKA_STORAGE_ERROR)]
        assert context.partitions.leader("orders", 0).log.log_start_offset == 0
        disk.is_full = False
        assert await deleted(context, (0, 2)) == [(0, 2, 0)]


# -- with other replicas ----------------------------------------------------------------------------------------------


@asynccontextmanager
async def led(partition_count: int = 1) -> AsyncGenerator[Context]:
    """Broker 0 leads partitions of "orders", each with three records; broker 1 follows, and has all of them."""
    async with running_broker(brokers=(HERE, OTHER)) as context:
        await make_topic(context, "orders", partition_count, replicas=(0, 1))
        for index in range(partition_count):
            append(context.partitions.leader("orders", index), batch(b"a", b"b", b"c"))
            says(context, index, 0)
        yield context


def says(context: Context, index: int, log_start_offset: int) -> None:
    """The follower of a partition fetches, and has all of it from there on."""
    epoch = context.metadata.image.brokers[1].epoch
    context.partitions.leader("orders", index).follower_fetched(1, epoch, 3, log_start_offset)


async def settled(context: Context, *starts: int) -> None:
    """Returns when the leaders have deleted."""
    while [partition.log.durable_log_start_offset for partition in context.partitions] != list(starts):
        await breathe()
    for _ in range(10):
        await breathe()


async def test_it_is_answered_when_the_follower_has_deleted() -> None:
    async with led() as context:
        asked = asyncio.ensure_future(deleted(context, (0, 2)))
        await settled(context, 2)
        assert not asked.done(), "records that are gone here would be back with the follower"
        says(context, 0, 2)
        assert await asked == [(0, 2, 0)]


@pytest.mark.parametrize("timeout_ms", [30, 0, -1])
async def test_a_follower_that_does_not_delete_takes_all_the_time_there_is(timeout_ms: int) -> None:
    """The low watermark is the one that there was when the leader had deleted, as Apache Kafka answers."""
    async with led() as context:
        assert await deleted(context, (0, 2), timeout_ms=timeout_ms) == [(0, 0, ErrorCode.REQUEST_TIMED_OUT)]
        assert context.partitions.leader("orders", 0).log.log_start_offset == 2
        says(context, 0, 2)
        assert await deleted(context, (0, 2), timeout_ms=timeout_ms) == [(0, 2, 0)]


async def test_without_others_no_time_is_needed() -> None:
    async with running_broker() as context:
        await with_records(context)
        assert await deleted(context, (0, 2), timeout_ms=0) == [(0, 2, 0)]


async def test_all_partitions_wait_together() -> None:
    """One fails at once, one is done, one is done while others wait, and the time of two is up together."""
    async with led(4) as context:
        says(context, 0, 1)
        before_ms = context.environment.monotonic_ms()
        asked = asyncio.ensure_future(deleted(context, (9, 0), (0, 1), (1, 2), (2, 2), (3, 1), timeout_ms=200))
        await settled(context, 1, 2, 2, 1)
        says(context, 1, 3)
        assert await asked == [
            (9, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (0, 1, 0),
            (1, 2, 0),
            (2, 0, ErrorCode.REQUEST_TIMED_OUT),
            (3, 0, ErrorCode.REQUEST_TIMED_OUT),
        ]
        assert 190 <= context.environment.monotonic_ms() - before_ms < 390


async def test_a_leader_that_is_replaced_while_it_waits_says_so_at_once() -> None:
    async with led() as context:
        partition = context.partitions.leader("orders", 0)
        asked = asyncio.ensure_future(deleted(context, (0, 2), timeout_ms=60_000))
        await settled(context, 2)
        partition.become_follower(1, 1)
        assert await asyncio.wait_for(asked, 5) == [(0, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER)]


async def test_a_leader_that_was_replaced_while_it_deleted_promises_nothing() -> None:
    """Also where it leads again when the disk is done: it leads in another epoch."""
    async with led() as context:
        partition = context.partitions.leader("orders", 0)
        says(context, 0, 3)
        asked = asyncio.ensure_future(deleted(context, (0, 2), timeout_ms=60_000))
        while not partition.acknowledgements.deletions.asked_offset:
            await breathe()
        partition.become_follower(1, 1)
        partition.become_leader(2, Replicas(0, (0, 1), (0, 1)))
        assert await asyncio.wait_for(asked, 5) == [(0, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER)]


async def test_a_topic_that_is_deleted_meanwhile_is_not_there() -> None:
    async with led() as context:
        asked = asyncio.ensure_future(deleted(context, (0, 2), timeout_ms=60_000))
        await settled(context, 2)
        await context.metadata.applied(
            await delete_topic(context.metadata.store, context.metadata.image.topics["orders"])
        )
        assert await asyncio.wait_for(asked, 5) == [(0, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]


async def test_a_start_that_retention_had_reached_is_written_down_and_waited_for() -> None:
    """Retention's own start is on no disk, and the follower was not told of it."""
    async with led() as context:
        partition = context.partitions.leader("orders", 0)
        partition.log.advance_log_start(3)
        asked = asyncio.ensure_future(deleted(context, (0, 2)))
        await settled(context, 2)
        assert not asked.done()
        says(context, 0, 3)
        assert await asked == [(0, 3, 0)]
        assert read_offsets(context.disk, f"{DATA_DIR}/{LOG_START_OFFSETS}") == {("orders", 0): 2}


async def test_many_partitions_share_the_writing() -> None:
    class CountingDisk(MemoryDisk):
        written = 0

        def write_whole(self, path: str, data: Buffer) -> None:
            self.written += path.endswith(LOG_START_OFFSETS)
            super().write_whole(path, data)

    disk = CountingDisk()
    async with running_broker(disk=disk) as context:
        await make_topic(context, "orders", 50)
        for index in range(50):
            append(context.partitions.leader("orders", index), batch(b"a", b"b", b"c"))
        disk.written = 0
        answers = await deleted(context, *((index, 2) for index in range(50)))
        assert answers == [(index, 2, 0) for index in range(50)]
        assert disk.written == 1


async def test_a_device_that_does_not_answer_takes_no_more_than_the_time() -> None:
    is_done = threading.Event()

    class StuckDisk(MemoryDisk):
        def write_whole(self, path: str, data: Buffer) -> None:
            if path.endswith(LOG_START_OFFSETS):
                assert is_done.wait(10)
            super().write_whole(path, data)

    async with running_broker(disk=StuckDisk()) as context:
        await with_records(context)
        try:
            assert await deleted(context, (0, 2), timeout_ms=20) == [(0, -1, ErrorCode.REQUEST_TIMED_OUT)]
        finally:
            is_done.set()
        await settled(context, 2, 0)
        assert await deleted(context, (0, 2)) == [(0, 2, 0)]
