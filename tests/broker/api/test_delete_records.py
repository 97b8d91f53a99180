"""DeleteRecords moves the log start up to the high watermark and no further, and answers the new low watermark."""

import errno

import pytest

from broker.context import Context
from broker.log.checkpoint import LOG_START_OFFSETS, read_offsets
from broker.memory_disk import MemoryDisk
from broker.replication.replicas import Replicas
from protocol.errors import ErrorCode
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from protocol.schema import Buffer
from tests.broker.support import DATA_DIR, append, ask, batch, make_topic, running_broker


async def deleted(
    context: Context, *wanted: tuple[int, int], topic: str = "orders", version: int = 2
) -> list[tuple[int, int, int]]:
    """Partition, low watermark and error of each answer."""
    request = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name=topic,
                partitions=[DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in wanted],
            )
        ],
        timeout_ms=1000,
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
        assert await deleted(context, (0, -1)) == [(0, 3, 0)]
        assert partition.log.log_end_offset == 4


async def test_the_log_start_never_goes_back_on_disk_neither() -> None:
    async with running_broker() as context:
        await with_records(context)
        assert await deleted(context, (0, 2), (0, 1), (0, 0)) == [(0, 2, 0), (0, 2, 0), (0, 2, 0)]
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
