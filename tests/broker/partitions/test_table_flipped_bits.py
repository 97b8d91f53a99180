"""A flipped bit in the small files beside the logs: none has a checksum in Kafka's format, and none may lose a record
without a word.

`partition.metadata`: the partition is served, or cannot be opened, or its directory is moved aside as another topic's;
its bytes are all there in any case. High watermarks: they are bounded by the log, and a leader alone counts all of it.
Log starts: what is before is hidden, as DeleteRecords would; one behind the end empties the log, which the log says.
"""

import posixpath
from collections.abc import Iterator

import pytest

from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.checkpoint import HIGH_WATERMARKS, LOG_START_OFFSETS, PARTITION_METADATA, encode_offsets
from odradek.broker.startup_errors import StartRefused
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.log.logs import copied, read_all
from tests.broker.support import append, batch, make_topic
from tests.broker.wire import running_broker

DATA_DIR = "data"
COUNT = 12


async def written() -> tuple[MemoryDisk, bytes]:
    """A broker's disk after a clean stop, and what its one partition holds."""
    disk = MemoryDisk()
    async with running_broker(None, disk, DATA_DIR) as broker:
        await make_topic(broker.context, "orders")
        partition = broker.context.partitions.leader("orders", 0)
        for number in range(COUNT):
            append(partition, batch(b"%d" % number))
        found = read_all(partition.log)
    return disk, found


def flips(disk: MemoryDisk, path: str, stride: int) -> Iterator[MemoryDisk]:
    good = disk.read_whole(path)
    for bit in range(0, 8 * len(good), stride):
        position = bit // 8
        copy = copied(disk, MemoryDisk())
        copy.write_whole(path, good[:position] + bytes([good[position] ^ 1 << bit % 8]) + good[position + 1 :])
        yield copy


def log_files(disk: MemoryDisk, path: str = DATA_DIR) -> list[bytes]:
    """The contents of all `.log` files that hold batches."""
    found: list[bytes] = []
    for name in disk.list_dir(path):
        below = posixpath.join(path, name)
        if disk.is_dir(below):
            found += log_files(disk, below)
        elif name.endswith(".log") and name != "metadata.log" and disk.read_whole(below):
            found.append(disk.read_whole(below))
    return found


async def test_partition_metadata(caplog: pytest.LogCaptureFixture) -> None:
    disk, expected = await written()
    outcomes: set[str] = set()
    for broken in flips(disk, f"{DATA_DIR}/orders-0/{PARTITION_METADATA}", 7):
        caplog.clear()
        async with running_broker(None, broken, DATA_DIR) as broker:
            try:
                found = read_all(broker.context.partitions.leader("orders", 0).log)
            except KafkaError as error:
                assert error.code is ErrorCode.KAFKA_STORAGE_ERROR
                assert "cannot be opened" in caplog.text
                outcomes.add("refused")
            else:
                assert found in (expected, b"")
                outcomes.add("served" if found else "moved aside")
                assert found or "renamed orders-0" in caplog.text
        assert log_files(broken) == [expected]
    assert outcomes >= {"refused", "moved aside"}


async def test_high_watermarks() -> None:
    disk, expected = await written()
    path = f"{DATA_DIR}/{HIGH_WATERMARKS}"
    assert disk.read_whole(path) == encode_offsets({("orders", 0): COUNT})
    for broken in flips(disk, path, 3):
        async with running_broker(None, broken, DATA_DIR) as broker:
            partition = broker.context.partitions.leader("orders", 0)
            assert read_all(partition.log) == expected
            assert partition.high_watermark.value == COUNT


async def test_log_starts(caplog: pytest.LogCaptureFixture) -> None:
    disk, expected = await written()
    path = f"{DATA_DIR}/{LOG_START_OFFSETS}"
    disk.write_whole(path, encode_offsets({("orders", 0): 10}))
    outcomes: set[str] = set()
    for broken in flips(disk, path, 1):
        caplog.clear()
        try:
            async with running_broker(None, broken, DATA_DIR) as broker:
                log = broker.context.partitions.leader("orders", 0).log
                start = log.log_start_offset
                if start <= COUNT:
                    assert expected.endswith(read_all(log))
                    assert log.log_end_offset == COUNT
                    outcomes.add(f"from {start}")
                else:
                    assert (
                        f"bytes are dropped, for they end at offset {COUNT} and the log starts at {start}"
                        in caplog.text
                    )
                    outcomes.add("emptied")
        except StartRefused as refused:
            assert LOG_START_OFFSETS in str(refused)
            outcomes.add("refused")
            assert log_files(broken) == [expected]
    assert outcomes >= {"refused", "from 10", "emptied"}
