"""Reading a led log from its start: all of it and in order, while the event loop stays everybody's."""

import asyncio
import time
from collections.abc import Sequence

import pytest

from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.replica.partition import Partition
from odradek.broker.replica.replay import PIECE_RECORDS, Replayed, replay
from odradek.protocol.batches.compression import Codec
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.replica.test_partition import PAIR, partition_with
from tests.broker.support import append

HELD_MS_MAX = 5.0


def numbered(first: int, count: int, codec: Codec = Codec.NONE, size_bytes: int = 10) -> bytes:
    values = [b"%d" % (first + index) + bytes(size_bytes) for index in range(count)]
    records = [Record(index, 1_000, b"key", value, ()) for index, value in enumerate(values)]
    return build_batch(records, codec=codec)


async def replayed(partition: Partition, disk: MemoryDisk, leader_epoch: int = 0) -> list[Replayed]:
    return [each async for each in replay(partition, leader_epoch, disk)]


def offsets(pieces: Sequence[Replayed]) -> list[int]:
    return [offset for piece in pieces for offset in piece.offsets]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.ZSTD])
async def test_every_record_comes_once_in_order_from_the_log_start_to_the_end(codec: Codec) -> None:
    disk = MemoryDisk()
    partition = partition_with(PAIR, disk=disk)
    total = 0
    for count in (1, 99, 100, 101, 2_500):
        append(partition, numbered(total, count, codec))
        total += count
    assert partition.high_watermark.value == 0, "what is not replicated yet is read, too"
    pieces = await replayed(partition, disk)
    assert offsets(pieces) == list(range(total))
    assert max(len(piece.offsets) for piece in pieces) == PIECE_RECORDS
    assert [piece.header.base_offset for piece in pieces if piece.is_last] == [0, 1, 100, 200, 301]
    partition.log.advance_log_start(150)
    assert offsets(await replayed(partition, disk)) == list(range(150, total))


async def test_an_empty_log_has_nothing_to_tell() -> None:
    disk = MemoryDisk()
    assert await replayed(partition_with(disk=disk), disk) == []


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
async def test_the_loop_is_never_held_for_long_however_large_a_batch_is(codec: Codec) -> None:
    disk = MemoryDisk()
    partition = partition_with(disk=disk)
    for first in range(0, 60_000, 20_000):
        append(partition, numbered(first, 20_000, codec, size_bytes=20))
    turns_ms: list[float] = []

    async def watch() -> None:
        before = time.thread_time()
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            turns_ms.append((now - before) * 1000)
            before = now

    watching = asyncio.ensure_future(watch())
    count = sum([len(piece.offsets) async for piece in replay(partition, 0, disk)])
    watching.cancel()
    assert count == 60_000
    assert len(turns_ms) > 20
    assert sorted(turns_ms)[-2] < HELD_MS_MAX, "the largest may be the collector of garbage"


async def test_who_is_deposed_meanwhile_reads_no_further() -> None:
    disk = MemoryDisk()
    partition = partition_with(PAIR, disk=disk)
    append(partition, numbered(0, 10_000))
    pieces = replay(partition, 0, disk)
    await anext(pieces)
    partition.become_follower(1, 1)
    with pytest.raises(KafkaError, match="FENCED_LEADER_EPOCH"):
        async for _ in pieces:
            time.sleep(0.001)  # so that the slice is over
    with pytest.raises(KafkaError, match="FENCED_LEADER_EPOCH"):
        await replayed(partition, disk)


async def test_a_damaged_batch_is_an_error_and_no_records() -> None:
    disk = MemoryDisk()
    partition = partition_with(disk=disk)
    append(partition, numbered(0, 10))
    content = disk._content(partition.log.segments.active.file.path)  # pyright: ignore[reportPrivateUsage]
    content[len(content) - 3] ^= 1
    with pytest.raises(KafkaError) as raised:
        await replayed(partition, disk)
    assert raised.value.code is ErrorCode.CORRUPT_MESSAGE
