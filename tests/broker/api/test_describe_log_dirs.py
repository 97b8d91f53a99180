"""DescribeLogDirs: one directory, its disk, and the size of each partition that was asked for and is here."""

import errno

import pytest

from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.handling.context import Context
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResult,
)
from tests.broker.support import DATA_DIR, append, ask, batch, make_topic, running_broker

SIZE_BYTES_MAX = 1 << 20
Asked = list[tuple[str, list[int]]]


async def described(context: Context, asked: Asked | None, version: int = 4) -> DescribeLogDirsResult:
    topics = None
    if asked is not None:
        topics = [DescribableLogDirTopic(topic=name, partitions=indexes) for name, indexes in asked]
    answer = await ask(context, DescribeLogDirsRequest(topics=topics), version)
    assert answer.error_code == ErrorCode.NONE
    (result,) = answer.results
    assert result.log_dir == DATA_DIR
    return result


def sizes(result: DescribeLogDirsResult) -> dict[str, list[tuple[int, int]]]:
    assert all(each.offset_lag == 0 and not each.is_future_key for topic in result.topics for each in topic.partitions)
    return {
        topic.name: [(each.partition_index, each.partition_size) for each in topic.partitions]
        for topic in result.topics
    }


async def with_topics(context: Context) -> int:
    """Topics "b" with two partitions and "a" with one; returns the size of b-1, the only one with a record."""
    await make_topic(context, "b", 2)
    await make_topic(context, "a")
    data = batch(b"value")
    append(context.partitions.leader("b", 1), data)
    return len(data)


async def test_null_asks_for_everything() -> None:
    async with running_broker() as context:
        size = await with_topics(context)
        result = await described(context, None)
    assert sizes(result) == {"a": [(0, 0)], "b": [(0, 0), (1, size)]}


async def test_only_what_is_asked_for_and_here_is_answered() -> None:
    async with running_broker() as context:
        size = await with_topics(context)
        asked: Asked = [("nowhere", [0]), ("b", [1, 7, 0])]
        assert sizes(await described(context, asked)) == {"b": [(1, size), (0, 0)]}
        assert sizes(await described(context, [])) == {}


@pytest.mark.parametrize("version", range(1, 6))
async def test_the_disk_is_described_since_version_4(version: int) -> None:
    async with running_broker(disk=MemoryDisk(SIZE_BYTES_MAX)) as context:
        size = await with_topics(context)
        result = await described(context, [("b", [1])], version)
        free = context.disk.free_bytes(DATA_DIR)
    assert sizes(result) == {"b": [(1, size)]}
    assert (result.total_bytes, result.usable_bytes) == ((SIZE_BYTES_MAX, free) if version >= 4 else (-1, -1))
    assert not result.is_cordoned


async def test_a_disk_that_cannot_be_asked_is_an_error_of_its_directory() -> None:
    class Gone(MemoryDisk):
        def free_bytes(self, path: str) -> int:
            raise OSError(errno.EIO, "gone", path)

    async with running_broker(disk=Gone()) as context:
        await with_topics(context)
        result = await described(context, None)
    assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert result.topics == []
