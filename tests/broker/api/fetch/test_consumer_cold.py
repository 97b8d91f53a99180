"""Fetch and ListOffsets of what is not in memory: nobody waits in the loop, and what is hot does not wait for it.

On virtual time, where what a helper thread does takes `BLOCKING_MS`, and a disk that finds out who waits in the loop.
"""

import asyncio
import errno
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from odradek.broker.disk.cold_reads import TRIES
from odradek.broker.handling.context import Context
from odradek.broker.log.config import LogConfig
from odradek.broker.log.producers import AbortedTxn
from odradek.broker.partitions.maintenance import Maintenance
from odradek.broker.replica.partition import Partition
from odradek.protocol.batches.batch import iterate_batches
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import PartitionData
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.broker.api.fetching import LARGE, codes, fetched, offsets, request, wanted
from tests.broker.cold_disk import ColdDisk
from tests.broker.log.compacted_logs import data_batch, marker_batch
from tests.broker.log.logs import T0
from tests.broker.support import DATA_DIR, append, ask, make_topic, running_broker
from tests.client.virtual_time import VirtualEnvironment

BLOCKING_MS = 5.0

pytestmark = pytest.mark.virtual_time(blocking_ms=BLOCKING_MS)

COUNT = 12
VALUE_BYTES = 10_000
"""More than what a search reads at once."""


@asynccontextmanager
async def running(disk: ColdDisk, *, partitions: int = 1, segment_bytes: int = 1 << 20) -> AsyncGenerator[Context]:
    """Twelve batches of one record in each partition of `orders`, all of it hot."""
    async with running_broker(disk=disk) as context:
        await make_topic(context, "orders", partitions)
        for index in range(partitions):
            partition = context.partitions.leader("orders", index)
            partition.log.config = LogConfig(segment_bytes=segment_bytes, index_interval_bytes=20_000)
            for number in range(COUNT):
                append(partition, record(number))
        await asyncio.sleep(1)
        yield context


def record(number: int) -> bytes:
    return data_batch(0, (b"%2d" % number, bytes(VALUE_BYTES)), timestamp_ms=T0 + number)


SIZE = len(record(0))


def path(index: int = 0, base_offset: int = 0, suffix: str = ".log") -> str:
    return f"{DATA_DIR}/orders-{index}/{base_offset:020d}{suffix}"


def partition_of(context: Context, index: int = 0) -> Partition:
    return context.partitions.leader("orders", index)


def now_ms() -> float:
    return asyncio.get_running_loop().time() * 1000


async def timed(context: Context, *partitions: tuple[int, int], **more: int) -> tuple[list[PartitionData], float]:
    """The answers for (index, offset), and how long it took in milliseconds."""
    started_ms = now_ms()
    sent = request(*(wanted(index, offset) for index, offset in partitions), **more)  # type: ignore[arg-type]
    answers = await fetched(context, sent)
    return answers, now_ms() - started_ms


# --------------------------------------------------------------------------------------------------------------- Fetch
async def test_what_is_hot_is_answered_without_a_helper_thread() -> None:
    disk = ColdDisk()
    async with running(disk) as context:
        (answer,), took_ms = await timed(context, (0, 0))
        assert offsets(answer) == list(range(COUNT))
    assert took_ms == 0
    assert disk.fetched == []
    assert disk.waits == []


@pytest.mark.parametrize("max_wait_ms", [0, 1000])
async def test_what_is_cold_is_fetched_by_a_helper_thread_and_then_answered(max_wait_ms: int) -> None:
    disk = ColdDisk()
    async with running(disk) as context:
        disk.evict(path())
        (answer,), took_ms = await timed(context, (0, 3), max_wait_ms=max_wait_ms)
        assert offsets(answer) == list(range(3, COUNT))
        assert took_ms == pytest.approx(BLOCKING_MS * len(disk.fetched))
        assert 1 <= len(disk.fetched) <= 2
        again, took_ms = await timed(context, (0, 0))
        assert offsets(again[0]) == list(range(COUNT))
    assert disk.waits == []


async def test_what_is_hot_does_not_wait_for_what_is_cold_and_the_next_fetch_finds_that() -> None:
    disk = ColdDisk()
    async with running(disk, partitions=3) as context:
        disk.evict(path(1))
        answers, took_ms = await timed(context, (0, 0), (1, 0), (2, 0))
        assert took_ms == 0
        assert codes(answers) == [0, 0, 0]
        assert [len(offsets(answer)) for answer in answers] == [COUNT, 0, COUNT]
        assert answers[1].high_watermark == COUNT
        await asyncio.sleep(1)
        answers, took_ms = await timed(context, (1, 0))
        assert took_ms == 0, "it was fetched in meanwhile"
        assert offsets(answers[0]) == list(range(COUNT))
    assert disk.waits == []


async def test_what_is_hot_is_enough_only_where_it_is_as_much_as_was_asked_for() -> None:
    disk = ColdDisk()
    async with running(disk, partitions=2) as context:
        disk.evict(path(1))
        answers, took_ms = await timed(context, (0, COUNT - 1), (1, 0), min_bytes=2 * SIZE, max_wait_ms=60_000)
        assert took_ms == pytest.approx(BLOCKING_MS)
        assert [len(offsets(answer)) for answer in answers] == [1, COUNT]


@pytest.mark.parametrize("whole", [1, 2, 5])
async def test_of_a_read_that_is_hot_in_part_the_whole_batches_are_answered(whole: int) -> None:
    disk = ColdDisk()
    async with running(disk) as context:
        disk.evict(path(), keep_bytes=whole * SIZE + SIZE // 2)
        (answer,), took_ms = await timed(context, (0, 0))
        assert (offsets(answer), took_ms) == (list(range(whole)), 0)
        assert disk.fetched == []
        (answer,), took_ms = await timed(context, (0, whole))
        assert offsets(answer) == list(range(whole, COUNT))
        assert took_ms > 0
    assert disk.waits == []


async def test_what_is_hot_in_part_does_not_wait_for_min_bytes_either() -> None:
    disk = ColdDisk()
    async with running(disk) as context:
        disk.evict(path(), keep_bytes=3 * SIZE + 10)
        (answer,), took_ms = await timed(context, (0, 0), min_bytes=LARGE, max_wait_ms=60_000)
    assert (offsets(answer), took_ms) == ([0, 1, 2], 0)


async def test_a_first_batch_that_is_larger_than_asked_for_is_answered_when_it_is_hot() -> None:
    disk = ColdDisk()
    async with running(disk) as context:
        disk.evict(path(), keep_bytes=SIZE + 10)
        (answer,) = await fetched(context, request(wanted(0, 0, max_bytes=100), max_wait_ms=1000))
        assert offsets(answer) == [0]
        assert disk.fetched == []


async def test_consumers_read_all_of_a_cold_log_with_little_memory() -> None:
    """At each moment only the last pages that were fetched are hot."""
    disk = ColdDisk()
    async with running(disk, segment_bytes=4 * SIZE) as context:
        for base_offset in partition_of(context).log.base_offsets:
            for suffix in (".log", ".index", ".timeindex"):
                disk.evict(path(0, base_offset, suffix))
        offset, found = 0, list[int]()
        while offset < COUNT:
            (answer,) = await fetched(context, request(wanted(0, offset, max_bytes=2 * SIZE), max_wait_ms=1000))
            found += offsets(answer)
            offset = found[-1] + 1
        assert found == list(range(COUNT))
    assert disk.waits == []


async def test_where_memory_is_gone_as_soon_as_it_was_filled_it_waits_in_the_end() -> None:
    disk = ColdDisk()
    disk.evicts_at_once = True
    async with running(disk) as context:
        disk.evict(path())
        (answer,), took_ms = await timed(context, (0, 0))
        assert offsets(answer) == list(range(COUNT))
    assert len(disk.fetched) == TRIES
    assert took_ms == pytest.approx(TRIES * BLOCKING_MS)
    assert set(disk.waits) == {path()}


async def test_a_file_that_is_deleted_while_it_is_fetched_is_looked_for_anew() -> None:
    disk = ColdDisk()
    async with running(disk, segment_bytes=4 * SIZE) as context:
        partition = partition_of(context)
        disk.evict(path())
        waiting = asyncio.ensure_future(timed(context, (0, 1), max_wait_ms=60_000))
        await asyncio.sleep(BLOCKING_MS / 2000)
        partition.log.advance_log_start(4)
        for name in partition.log.segments.take_retired():
            disk.remove(name)
        partition.reader.notify()
        (answer,), took_ms = await waiting
        assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert took_ms == pytest.approx(BLOCKING_MS)
    assert disk.waits == []


async def test_a_segment_that_was_compacted_while_it_is_fetched_is_read_as_it_is_then() -> None:
    disk = ColdDisk()
    async with running(disk, segment_bytes=4 * SIZE) as context:
        partition = partition_of(context)
        for number in range(COUNT):
            append(partition, record(number))
        await asyncio.sleep(1)
        partition.configure(context.config.topic({"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}))
        upkeep = Maintenance(disk, VirtualEnvironment(), context.tasks, context.config, context.partitions)
        disk.evict(path())
        waiting = asyncio.ensure_future(timed(context, (0, 1), max_wait_ms=60_000))
        await asyncio.sleep(0)
        upkeep.start()
        (answer,), _ = await waiting
        assert offsets(answer)[0] == 1, "it came before"
        await asyncio.sleep(20)
        (answer,), _ = await timed(context, (0, 1), max_wait_ms=60_000)
        assert offsets(answer)[0] == partition.log.base_offsets[-1] - COUNT, "the first whose key the rest lacks"


async def test_a_device_that_fails_is_an_error_of_its_partition_alone() -> None:
    class BadSector(ColdDisk):
        def read_range(self, path: str, position: int, size_bytes: int) -> bytes:
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

        def readable_bytes(self, path: str, position: int, size_bytes: int) -> int:
            there = super().readable_bytes(path, position, size_bytes)
            if self.cached_bytes(path, position, size_bytes) == 0 and there:
                raise OSError(errno.EIO, os.strerror(errno.EIO), path)
            return there

    disk = BadSector()
    async with running(disk, partitions=2) as context:
        disk.evict(path(1))
        (answer,), _ = await timed(context, (1, 0))
        assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        answers, _ = await timed(context, (0, 0), (1, 0))
        assert len(offsets(answers[0])) == COUNT
        assert answers[1].error_code in (ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR)


async def test_a_broker_that_stops_does_not_wait_for_the_device() -> None:
    disk = ColdDisk()
    async with running(disk) as context:
        disk.evict(path())
        waiting = asyncio.ensure_future(timed(context, (0, 0), max_wait_ms=3_600_000, min_bytes=LARGE))
        await asyncio.sleep(1)
        assert not waiting.done()
        context.stop()
        (answer,), took_ms = await waiting
        assert offsets(answer) == list(range(COUNT))
        assert took_ms < 1100


# ------------------------------------------------------------------------------------------------------ read_committed
async def test_aborted_transactions_of_a_cold_log_are_named() -> None:
    disk = ColdDisk()
    async with running(disk) as context:
        partition = partition_of(context)
        first = COUNT
        # Only a coordinator begins transactions: their records are laid into the log by hand.
        data = data_batch(first, (b"k", b"aborted"), producer=(7, 0, 0), is_transactional=True)
        segment = partition.log.segments.active
        segment.append([data], first, T0, partition.log.config)
        partition.log.end.log_end_offset = first + 1
        append_control(partition, marker_batch(first + 1, 7, 0, is_commit=False))
        segment.txn_index.append(AbortedTxn(7, first, first + 1, first + 2))
        disk.evict_all(f"{DATA_DIR}/orders-0")
        sent = request(wanted(offset=first), isolation_level=1, max_wait_ms=1000)
        (answer,) = await fetched(context, sent)
        assert offsets(answer) == [first, first + 1]
        assert answer.aborted_transactions is not None
        assert [(txn.producer_id, txn.first_offset) for txn in answer.aborted_transactions] == [(7, first)]
    assert disk.waits == []


def append_control(partition: Partition, data: bytes) -> None:
    view = memoryview(data)
    ((_, header),) = iterate_batches(view)
    partition.log.append(view, header, partition.leader_epoch, T0)
    partition.acknowledgements.update()


# --------------------------------------------------------------------------------------------------------- ListOffsets
async def asked(context: Context, timestamp_ms: int) -> tuple[int, int]:
    partition = ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=timestamp_ms)
    sent = ListOffsetsRequest(
        replica_id=-1, isolation_level=0, topics=[ListOffsetsTopic(name="orders", partitions=[partition])]
    )
    ((answer,),) = (topic.partitions for topic in (await ask(context, sent, 7)).topics)
    assert answer.error_code == ErrorCode.NONE
    return answer.offset, answer.timestamp


@pytest.mark.parametrize("timestamp_ms", [0, T0, T0 + 5, T0 + COUNT - 1, T0 + COUNT, -3, -1, -2])
async def test_offsets_of_timestamps_are_found_in_cold_segments(timestamp_ms: int) -> None:
    disk = ColdDisk()
    async with running(disk, segment_bytes=4 * SIZE) as context:
        expected = await asked(context, timestamp_ms)
        disk.evict_all(f"{DATA_DIR}/orders-0")
        assert await asked(context, timestamp_ms) == expected
        assert bool(disk.fetched) == (0 <= timestamp_ms < T0 + COUNT or timestamp_ms == -3)
    assert disk.waits == []


async def test_a_log_that_moved_on_while_it_was_asked_about_is_asked_as_it_is_then() -> None:
    disk = ColdDisk()
    async with running(disk, segment_bytes=4 * SIZE) as context:
        disk.evict(path())
        waiting = asyncio.ensure_future(asked(context, T0 + 1))
        await asyncio.sleep(BLOCKING_MS / 2000)
        partition_of(context).log.advance_log_start(6)
        assert await waiting == (6, T0 + 6)
