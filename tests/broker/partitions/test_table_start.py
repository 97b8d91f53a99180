"""A broker's start with many partitions: what it reads after a clean stop and after a kill, and when a stop is clean.

A kill is a copy of the disk while the broker runs; the next broker starts on the copy.
"""

import asyncio
import errno
import os
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import pytest

from odradek.broker.cluster.topics import delete_topic
from odradek.broker.directories.checkpoints import CLEAN_SHUTDOWN
from odradek.broker.disk.disk import Disk
from odradek.broker.disk.memory_disk import Content, MemoryDisk
from odradek.broker.handling.context import Context
from odradek.broker.log.checkpoint import HIGH_WATERMARKS, RECOVERY_POINTS, encode_offsets, read_offsets
from odradek.broker.log.leftovers import UNSYNCED
from odradek.broker.log.log import Log
from odradek.broker.server import Broker
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.runtime.environment import Environment
from tests.broker.log.counting_disk import CountingDisk
from tests.broker.log.logs import copied, read_all
from tests.broker.support import append, batch, make_topic
from tests.broker.wire import running_broker, settings

DATA_DIR = "data"
MARKER = f"{DATA_DIR}/{CLEAN_SHUTDOWN}"
WAIT_S = 10.0
Restart = Callable[[CountingDisk], CountingDisk]


@asynccontextmanager
async def broker_on(disk: Disk, options: dict[str, str] | None = None) -> AsyncGenerator[Context]:
    async with running_broker(options, disk, DATA_DIR) as broker:
        yield broker.context


def killed(disk: MemoryDisk) -> CountingDisk:
    return copied(disk, CountingDisk())


def log_of(context: Context, topic: str = "orders", index: int = 0) -> Log:
    return context.partitions.leader(topic, index).log


async def fill(context: Context, topic: str, partition_count: int, segment_count: int) -> None:
    """Segments of ten batches of 1 KiB, and half a one."""
    await make_topic(context, topic, partition_count)
    for index in range(partition_count):
        partition = context.partitions.leader(topic, index)
        for number in range(10 * segment_count + 5):
            if number and number % 10 == 0:
                partition.log.roll(0)
            append(partition, batch(b"%4d" % number * 256))


def partition_bytes(disk: CountingDisk) -> int:
    """What was read of partitions' directories; the metadata log lies beside them."""
    return sum(count for path, count in disk.bytes_read.items() if path.count("/") == 2)


def touched(disk: CountingDisk, suffix: str) -> list[str]:
    """Files that were read, under the names of their partitions."""
    return sorted(
        path.partition("/")[2]
        for path, count in disk.bytes_read.items()
        if count and path.endswith(suffix) and path.count("/") == 2
    )


# -- what is read -----------------------------------------------------------------------------------------------------


async def test_after_a_clean_stop_a_start_reads_the_ends_alone() -> None:
    reads: list[int] = []
    for segment_count in (2, 12):
        disk = CountingDisk()
        async with broker_on(disk) as context:
            await fill(context, "orders", 20, segment_count)
        disk.forget()
        async with broker_on(disk) as context:
            reads.append(partition_bytes(disk))
            last = f"{10 * segment_count:020d}"
            assert touched(disk, ".log") == sorted(f"orders-{index}/{last}.log" for index in range(20))
            assert not [path for path in touched(disk, "index") if last not in path]
            for index in range(20):
                assert log_of(context, index=index).log_end_offset == 10 * segment_count + 5
    assert abs(reads[1] - reads[0]) < 20 * 100, "numbers in checkpoints are longer"
    assert max(reads) < 20 * 30_000


async def test_after_a_kill_it_reads_what_lies_behind_the_recovery_points() -> None:
    reads: list[int] = []
    for segment_count in (2, 12):
        disk = CountingDisk()
        async with broker_on(disk) as context:
            await fill(context, "orders", 10, segment_count)
            for partition in context.partitions:
                await partition.durability.sync_closed_segments()
            await context.partitions.written.write_recovery_points()
            after = killed(disk)
        async with broker_on(after) as context:
            reads.append(partition_bytes(after))
            names = [f"{10 * number:020d}" for number in (segment_count - 1, segment_count)]
            last = {f"orders-{index}/{names[1]}.log" for index in range(10)}
            before = {f"orders-{index}/{names[0]}.log" for index in range(10)}
            assert last <= {*touched(after, ".log")} <= last | before, "of the one before perhaps the end"
            for index in range(10):
                assert log_of(context, index=index).log_end_offset == 10 * segment_count + 5
    assert abs(reads[1] - reads[0]) < 10 * 100


# -- when a stop is clean ---------------------------------------------------------------------------------------------


async def test_the_marker_stands_while_no_broker_runs() -> None:
    disk = CountingDisk()
    for _ in range(2):
        async with broker_on(disk):
            assert not disk.exists(MARKER)
        assert disk.exists(MARKER)
        assert read_offsets(disk, f"{DATA_DIR}/{RECOVERY_POINTS}") == {}


async def test_a_stop_writes_down_how_far_each_log_is() -> None:
    disk = CountingDisk()
    async with broker_on(disk) as context:
        await fill(context, "orders", 2, 1)
        append(context.partitions.leader("orders", 1), batch(b"one more"))
    for name in (RECOVERY_POINTS, HIGH_WATERMARKS):
        assert read_offsets(disk, f"{DATA_DIR}/{name}") == {("orders", 0): 15, ("orders", 1): 16}


async def test_a_kill_soon_after_a_clean_start_is_a_kill() -> None:
    """The torn batch is found, though the last stop was clean."""
    disk = CountingDisk()
    async with broker_on(disk) as context:
        await fill(context, "orders", 1, 1)
    async with broker_on(disk) as context:
        append(context.partitions.leader("orders", 0), batch(b"torn"))
        expected = read_all(log_of(context))
        after = killed(disk)
    path = f"{DATA_DIR}/orders-0/{10:020d}.log"
    after.write_whole(path, after.read_whole(path)[:-3])
    assert not after.exists(MARKER)
    async with broker_on(after) as context:
        assert log_of(context).log_end_offset == 15
        found = read_all(log_of(context))
        assert expected.startswith(found)
        assert append(context.partitions.leader("orders", 0), batch(b"again")) == 15


class StuckDisk(CountingDisk):
    """Cannot open files below `stuck`."""

    stuck = ""

    def sizes(self, path: str) -> dict[str, int]:
        if self.stuck and path.startswith(self.stuck):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return super().sizes(path)


async def test_a_stop_with_a_partition_that_could_not_be_opened_is_not_clean() -> None:
    disk = StuckDisk()
    async with broker_on(disk) as context:
        await fill(context, "orders", 2, 1)
    disk.stuck = f"{DATA_DIR}/orders-1"
    async with broker_on(disk) as context:
        assert log_of(context).log_end_offset == 15
        with pytest.raises(KafkaError, match="KAFKA_STORAGE_ERROR"):
            log_of(context, index=1)
    assert not disk.exists(MARKER)
    assert read_offsets(disk, f"{DATA_DIR}/{RECOVERY_POINTS}") == {("orders", 0): 15, ("orders", 1): 15}
    disk.stuck = ""
    async with broker_on(disk) as context:
        assert log_of(context, index=1).log_end_offset == 15
    assert disk.exists(MARKER)


async def test_a_stop_that_cannot_flush_a_log_is_not_clean() -> None:
    class Failing(CountingDisk):
        is_failing = False

        def sync(self, content: Content) -> None:
            if self.is_failing and self._find(f"{DATA_DIR}/orders-0/{0:020d}.log") is content:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            super().sync(content)

    disk = Failing()
    async with broker_on(disk) as context:
        await fill(context, "orders", 1, 1)
        disk.is_failing = True
    assert not disk.exists(MARKER)
    assert disk.exists(f"{DATA_DIR}/orders-0/{UNSYNCED}")
    disk.is_failing = False
    async with broker_on(disk) as context:
        assert log_of(context).log_end_offset == 15
        assert not disk.exists(f"{DATA_DIR}/orders-0/{UNSYNCED}")


async def test_a_stop_learns_how_a_sync_that_is_under_way_ends() -> None:
    """It fails after the stop began. The kernel has told it to that sync, and the stop's own would succeed."""

    class Slow(CountingDisk):
        gate: threading.Event | None = None

        def sync(self, content: Content) -> None:
            gate = self.gate
            if gate is not None and self._find(f"{DATA_DIR}/orders-0/{0:020d}.log") is content:
                self.gate = None
                loop.call_soon_threadsafe(begun.set)
                assert gate.wait(WAIT_S)
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            super().sync(content)

    loop, begun, gate = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    disk = Slow()
    broker = Broker(settings(DATA_DIR), Environment(), disk)
    await broker.start()
    await make_topic(broker.context, "orders", 1, {"flush.messages": "1"})
    disk.gate = gate
    append(broker.context.partitions.leader("orders", 0), batch(b"lost"))
    await asyncio.wait_for(begun.wait(), WAIT_S)
    stopping = asyncio.ensure_future(broker.stop())
    for _ in range(50):
        await asyncio.sleep(0)
    gate.set()
    await asyncio.wait_for(stopping, WAIT_S)
    assert disk.exists(f"{DATA_DIR}/orders-0/{UNSYNCED}")
    assert read_offsets(disk, f"{DATA_DIR}/{RECOVERY_POINTS}").get(("orders", 0), 0) == 0


# -- checkpoints that are wrong ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [None, b"", b"\xff\xff", b"0\n2\norders 0 15\n", b"7\n0\n"])
async def test_without_recovery_points_every_log_is_read_and_nothing_is_lost(content: bytes | None) -> None:
    disk = CountingDisk()
    async with broker_on(disk) as context:
        await fill(context, "orders", 2, 3)
        expected = [read_all(log_of(context, index=index)) for index in (0, 1)]
        after = killed(disk)
    path = f"{DATA_DIR}/{RECOVERY_POINTS}"
    after.write_whole(path, encode_offsets({("orders", 0): 20, ("orders", 1): 20}))
    if content is None:
        after.remove(path)
    else:
        after.write_whole(path, content)
    async with broker_on(after) as context:
        assert len(touched(after, ".log")) == 2 * 3 + 2
        assert [read_all(log_of(context, index=index)) for index in (0, 1)] == expected


@pytest.mark.parametrize("recovery_point", [15, 36, 2**60])
async def test_a_recovery_point_beyond_the_log_loses_nothing(recovery_point: int) -> None:
    disk = CountingDisk()
    async with broker_on(disk) as context:
        await fill(context, "orders", 1, 3)
        expected = read_all(log_of(context))
        after = killed(disk)
    after.write_whole(f"{DATA_DIR}/{RECOVERY_POINTS}", encode_offsets({("orders", 0): recovery_point}))
    async with broker_on(after) as context:
        log = log_of(context)
        assert read_all(log) == expected
        assert log.recovery_point == min(recovery_point, log.log_end_offset)
        assert append(context.partitions.leader("orders", 0), batch(b"on")) == 35


async def test_a_recreated_topic_does_not_inherit_the_recovery_point_of_the_former_one() -> None:
    """Or a start after a loss of power would believe batches that never reached the device."""
    disk = CountingDisk()
    async with broker_on(disk) as context:
        await fill(context, "orders", 1, 3)
    async with broker_on(disk) as context:
        revision = await delete_topic(context.metadata.store, context.metadata.image.topics["orders"])
        await asyncio.wait_for(context.metadata.applied(revision), WAIT_S)
        await make_topic(context, "orders")
        append(context.partitions.leader("orders", 0), batch(b"new"))
        points = read_offsets(disk, f"{DATA_DIR}/{RECOVERY_POINTS}")
        assert points.get(("orders", 0), 0) == 0
        assert context.partitions.find("orders", 0).log.recovery_point == 0


async def test_after_a_stop_and_a_start_producers_and_high_watermarks_go_on() -> None:
    disk = CountingDisk()
    async with broker_on(disk) as context:
        await fill(context, "orders", 1, 2)
    async with broker_on(disk) as context:
        partition = context.partitions.leader("orders", 0)
        assert partition.high_watermark.value == partition.log.log_end_offset == 25
        with pytest.raises(KafkaError) as caught:
            context.partitions.leader("orders", 0, 0)
        assert caught.value.code is ErrorCode.FENCED_LEADER_EPOCH, "each start has an epoch of its own"
