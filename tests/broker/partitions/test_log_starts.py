"""Log starts are on the disk before they are true: by leaders and followers, with a device that is slow, full, or done
when the log has been cut, and after a loss of power."""

import asyncio
import errno
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.directories.checkpoints import Checkpoints
from odradek.broker.directories.data_directory import DataDirectory
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.checkpoint import LOG_START_OFFSETS, read_offsets
from odradek.broker.partitions.log_starts import RETRY_MS, LogStarts
from odradek.broker.replica.partition import Partition
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks, breathe
from tests.broker.replica.test_partition import partition_with
from tests.broker.support import DATA_DIR, append, batch, make_topic, running_broker

FILE = f"{DATA_DIR}/{LOG_START_OFFSETS}"
THREE = (b"a", b"b", b"c")


class SlowDevice(Environment):
    """Helper threads' work is done when the device is ready, then as a whole."""

    def __init__(self) -> None:
        super().__init__(asyncio.get_running_loop())
        self.is_ready = asyncio.Event()
        self.is_ready.set()
        self.begun = 0

    async def run_blocking(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        self.begun += 1
        await self.is_ready.wait()
        return function(*args, **kwargs)


class Place:
    """A data directory."""

    def __init__(self, disk: MemoryDisk) -> None:
        self.path = DATA_DIR
        self.checkpoints = Checkpoints(disk, DATA_DIR)
        self.suspected: list[OSError] = []

    def suspect(self, error: OSError) -> None:
        self.suspected.append(error)


class FullDisk(MemoryDisk):
    """Has no room for checkpoints while it is full."""

    is_full = False

    def write_whole(self, path: str, data: Any) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        super().write_whole(path, data)


class World:
    """Partitions of "orders" with three records each, by index, in one data directory."""

    def __init__(self, count: int) -> None:
        self.disk = FullDisk()
        self.disk.make_dir(DATA_DIR)
        self.device = SlowDevice()
        self.tasks = Tasks(self.device.loop)
        self.place = Place(self.disk)
        self.moved: list[int] = []
        self.partitions = [partition_with(disk=MemoryDisk()) for _ in range(count)]
        for index, partition in enumerate(self.partitions):
            partition.index = index
            append(partition, batch(*THREE))
        self.log_starts = LogStarts(
            self.device,
            self.tasks,
            lambda partition: cast(DataDirectory, self.place),
            lambda partition: partition in self.partitions,
            lambda partition: self.moved.append(partition.index),
        )

    def on_disk(self) -> dict[int, int]:
        return {index: offset for (_, index), offset in read_offsets(self.disk, FILE).items()}

    def starts(self) -> list[tuple[int, int]]:
        """Of each log: in memory, and as the disk has it for certain."""
        return [(each.log.log_start_offset, each.log.durable_log_start_offset) for each in self.partitions]

    async def run(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)


@asynccontextmanager
async def world(count: int = 1) -> AsyncGenerator[World]:
    it = World(count)
    try:
        yield it
    finally:
        it.device.is_ready.set()
        await it.tasks.close()


async def code_of(moving: "asyncio.Future[None]") -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        await asyncio.wait_for(moving, 5)
    return raised.value.code


async def test_a_start_is_on_the_disk_before_it_is_true() -> None:
    async with world() as it:
        it.device.is_ready.clear()
        moving = asyncio.ensure_future(it.log_starts.move(it.partitions[0], 2))
        await it.run()
        assert (it.starts(), it.moved) == ([(0, 0)], [])
        it.device.is_ready.set()
        await moving
        assert (it.on_disk(), it.starts(), it.moved) == ({0: 2}, [(2, 2)], [0])


async def test_moves_that_come_while_the_file_is_written_share_the_next_writing() -> None:
    async with world(4) as it:
        it.device.is_ready.clear()
        first = asyncio.ensure_future(it.log_starts.move(it.partitions[0], 1))
        await it.run()
        offsets = ((0, 3), (1, 1), (2, 2), (3, 3), (0, 2))
        others = [asyncio.ensure_future(it.log_starts.move(it.partitions[index], offset)) for index, offset in offsets]
        it.device.is_ready.set()
        await asyncio.gather(first, *others)
        assert (it.device.begun, it.on_disk()) == (2, {0: 3, 1: 1, 2: 2, 3: 3})
        assert it.starts() == [(3, 3), (1, 1), (2, 2), (3, 3)]


async def test_a_move_goes_on_when_nobody_waits_for_it_any_more() -> None:
    async with world() as it:
        it.device.is_ready.clear()
        moving = asyncio.ensure_future(it.log_starts.move(it.partitions[0], 2))
        await it.run()
        moving.cancel()
        await it.run()
        it.device.is_ready.set()
        await it.run()
        assert (it.on_disk(), it.starts()) == ({0: 2}, [(2, 2)])


async def test_a_start_that_is_on_the_disk_and_not_true_needs_no_writing() -> None:
    """A follower's log is thrown away and goes on within a batch: what was deleted of that stays so."""
    async with world() as it:
        await it.log_starts.move(it.partitions[0], 2)
        it.partitions[0].log.end.log_start_offset = 1
        begun = it.device.begun
        await it.log_starts.move(it.partitions[0], 2)
        assert (it.device.begun, it.starts()) == (begun, [(2, 2)])


async def test_a_full_disk_is_told_and_nothing_has_moved() -> None:
    async with world() as it:
        await it.log_starts.move(it.partitions[0], 1)
        it.disk.is_full = True
        assert await code_of(asyncio.ensure_future(it.log_starts.move(it.partitions[0], 2))) == (
            ErrorCode.KAFKA_STORAGE_ERROR
        )
        assert [error.errno for error in it.place.suspected] == [errno.ENOSPC]
        it.disk.is_full = False
        assert (it.starts(), it.place.checkpoints.log_starts) == ([(1, 1)], {("orders", 0): 1})
        await it.log_starts.move(it.partitions[0], 2)
        assert it.on_disk() == {0: 2}


@pytest.mark.virtual_time
async def test_a_follower_tries_again_until_the_disk_takes_it_and_warns_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nobody tells it again, and a DeleteRecords may wait for it; or it may not join before."""
    async with world() as it:
        it.disk.is_full = True
        it.log_starts.follow(it.partitions[0], 1)
        it.log_starts.follow(it.partitions[0], 2)
        await asyncio.sleep(3.5 * RETRY_MS / 1000)
        assert it.device.begun == 4
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        it.disk.is_full = False
        await asyncio.sleep(RETRY_MS / 1000)
        assert (it.starts(), it.on_disk(), it.moved) == ([(2, 2)], {0: 2}, [0])
        it.log_starts.follow(it.partitions[0], 3)
        await it.run()
        assert it.starts() == [(3, 3)]


async def test_a_partition_that_goes_takes_its_move_along() -> None:
    async with world(2) as it:
        it.device.is_ready.clear()
        under_way = asyncio.ensure_future(it.log_starts.move(it.partitions[0], 2))
        await it.run()
        due = asyncio.ensure_future(it.log_starts.move(it.partitions[0], 3))
        other = asyncio.ensure_future(it.log_starts.move(it.partitions[1], 1))
        await it.run()
        gone = it.partitions.pop(0)
        del it.place.checkpoints.log_starts["orders", 0]
        it.device.is_ready.set()
        assert await code_of(under_way) == await code_of(due) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await other
        assert (it.on_disk(), gone.log.log_start_offset) == ({1: 1}, 0)


async def test_a_follower_whose_partition_goes_stops_moving_it() -> None:
    """It asked again and again, without a wait, for as long as the broker ran."""
    async with world() as it:
        it.device.is_ready.clear()
        it.log_starts.follow(it.partitions[0], 2)
        await it.run()
        it.partitions.clear()
        it.device.is_ready.set()
        await asyncio.wait_for(asyncio.gather(*it.tasks.running_on(it.device.loop)), 5)


# -- logs that are cut ------------------------------------------------------------------------------------------------


async def test_a_cut_takes_back_what_is_under_way_and_what_waits() -> None:
    async with world() as it:
        partition = it.partitions[0]
        it.device.is_ready.clear()
        under_way = asyncio.ensure_future(it.log_starts.move(partition, 2))
        await it.run()
        due = asyncio.ensure_future(it.log_starts.move(partition, 3))
        it.log_starts.follow(partition, 3)
        await it.run()
        cut(it, partition, 0)
        it.log_starts.write_cuts()
        it.device.is_ready.set()
        assert await code_of(under_way) == await code_of(due) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        append(partition, batch(*THREE))
        await it.run()
        assert (it.starts(), it.on_disk().get(0, 0)) == ([(0, 0)], 0)
        await it.log_starts.move(partition, 1)
        assert it.on_disk() == {0: 1}


async def test_a_cut_behind_the_start_takes_nothing_back() -> None:
    async with world() as it:
        await it.log_starts.move(it.partitions[0], 3)
        append(it.partitions[0], batch(b"unreplicated"))
        cut(it, it.partitions[0], 3)
        begun = it.device.begun
        it.log_starts.write_cuts()
        assert (it.starts(), it.on_disk(), it.device.begun) == ([(3, 3)], {0: 3}, begun)


def cut(it: World, partition: Partition, offset: int) -> None:
    partition.log.truncate_to(offset)
    it.log_starts.cut(partition)


class LastingStore(MemoryStore):
    """Outlives one broker: what is metadata on disk in truth."""

    async def close(self) -> None:
        return


async def test_what_is_appended_where_a_log_was_cut_below_its_start_outlives_a_restart() -> None:
    """An unclean election: the new leader has less than what was deleted here. The next start would believe the file,
    and delete the records that stand there now, though they were acknowledged since."""
    disk, store = MemoryDisk(), LastingStore()
    async with running_broker(disk=disk, store=store) as context:
        await make_topic(context, "orders")
        partition = context.partitions.leader("orders", 0)
        for _ in range(3):
            append(partition, batch(b"a", b"b", b"c"))
        await context.partitions.delete_records(partition, 9)
        partition.log.truncate_to(3)
        partition.truncated()
        await breathe()
        await breathe()
        append(partition, batch(b"a", b"b", b"c"))
        append(partition, batch(b"a", b"b", b"c"))
        log = partition.log
        assert (log.log_start_offset, log.log_end_offset) == (3, 9)
    async with running_broker(disk=disk, store=store) as context:
        log = context.partitions.leader("orders", 0).log
        assert (log.log_start_offset, log.log_end_offset) == (3, 9)
