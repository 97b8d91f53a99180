"""The disk of a process: it fails, takes time, strikes in the middle of a write, and is out of reach after the end."""

import asyncio
import errno
import random
from collections.abc import Callable

import pytest

from odradek.broker.disk.disk import LockHeld
from odradek.testing.killed import Killed
from odradek.testing.sim.world.device import LosingDevice
from odradek.testing.sim.world.disk import DiskFaults, SimDisk
from odradek.testing.sim.world.losing_disk import ALL_IS_LOST
from odradek.testing.sim.world.process import Process
from tests.sim.support import Bench


class Bed:
    """A process with a disk, and the device under it."""

    def __init__(self, seed: int = 0) -> None:
        self.bench = Bench()
        self.device = LosingDevice()
        self.faults = DiskFaults()
        self.seed = seed
        self.process, self.disk = self.started()

    def started(self) -> tuple[Process, SimDisk]:
        process = self.bench.process()
        return process, SimDisk(process, self.device, self.faults, random.Random(self.seed))

    def do(self, work: Callable[[], object]) -> None:
        """In the process, as it would: what kills it ends there."""

        async def run() -> None:
            work()

        self.process.start(run(), "work")
        self.bench.run()

    def crash_in(self, changes: int) -> None:
        self.faults.arm(changes, self.process.kill)


def write_twice(disk: SimDisk) -> None:
    file = disk.open("log")
    file.append([b"0123456789"])
    file.append([b"abcdefghij"])


def test_a_write_that_is_struck_is_done_in_part() -> None:
    found: dict[bytes, None] = {}
    for seed in range(40):
        bed = Bed(seed)
        bed.crash_in(2)  # the file is made, one write is done
        bed.do(lambda bed=bed: write_twice(bed.disk))  # type: ignore[misc]
        assert bed.process.is_dead
        found[bed.started()[1].read_whole("log")] = None
    assert all(b"0123456789abcdefghij".startswith(left) and len(left) >= 10 for left in found)
    assert b"0123456789" in found
    assert b"0123456789abcdefghij" in found
    assert len(found) > 5


def test_every_change_can_be_struck_and_none_after_it_happens() -> None:
    def work(disk: SimDisk) -> None:
        disk.make_dir("data")
        disk.sync_dir("")
        file = disk.open("data/log")
        file.append([b"x"])
        file.sync()
        file.truncate(0)
        disk.rename("data/log", "data/new")
        disk.write_whole("data/checkpoint", b"y")
        disk.remove("data/new")
        disk.remove_tree("data")

    whole = Bed()
    work(whole.disk)
    count = whole.disk.changes
    assert count > 12
    for changes in range(count):
        bed = Bed()
        bed.crash_in(changes)
        bed.do(lambda bed=bed: work(bed.disk))  # type: ignore[misc]
        assert bed.process.is_dead
        assert bed.disk.changes == changes + 1


def test_after_the_end_nothing_is_read_or_changed() -> None:
    bed = Bed()
    file = bed.disk.open("log")
    file.append([b"x"])
    syncer = file.syncer()
    bed.process.kill()
    calls: list[Callable[[], object]] = [
        lambda: file.append([b"y"]),
        lambda: file.truncate(0),
        lambda: file.pread(1, 0),
        file.sync,
        syncer,
        lambda: bed.disk.open("other"),
        lambda: bed.disk.read_whole("log"),
        lambda: bed.disk.write_whole("log", b""),
        lambda: bed.disk.rename("log", "other"),
        lambda: bed.disk.remove("log"),
        lambda: bed.disk.make_dir("data"),
        lambda: bed.disk.list_dir(""),
        lambda: bed.disk.sizes(""),
        lambda: bed.disk.sync_dir(""),
        lambda: bed.disk.lock("lock"),
    ]
    for call in calls:
        with pytest.raises(Killed):
            call()
    assert bed.started()[1].read_whole("log") == b"x"


def test_a_finally_clause_of_the_dead_changes_nothing() -> None:
    bed = Bed()

    async def work() -> None:
        try:
            await asyncio.sleep(100.0)
        finally:
            bed.disk.write_whole("marker", b"closed cleanly")

    bed.process.start(work(), "work")
    bed.bench.run()
    bed.process.kill()
    assert bed.started()[1].list_dir("") == []


def test_a_full_disk_takes_a_part_and_the_file_takes_nothing() -> None:
    bed = Bed()
    file = bed.disk.open("log")
    file.append([b"before"])
    bed.faults.is_full = True
    with pytest.raises(OSError, match="space") as error:
        file.append([b"too much"])
    assert error.value.errno == errno.ENOSPC
    assert file.size_bytes == 6
    bed.faults.heal()
    file.append([b" after"])
    assert bed.disk.read_whole("log") == b"before after"


@pytest.mark.parametrize("share", ["read_share", "write_share", "sync_share"])
def test_calls_fail(share: str) -> None:
    bed = Bed()
    file = bed.disk.open("log")
    file.append([b"before"])
    setattr(bed.faults, share, 1.0)
    calls: dict[str, list[Callable[[], object]]] = {
        "read_share": [lambda: file.pread(1, 0), lambda: bed.disk.read_whole("log")],
        "write_share": [lambda: file.append([b"x"]), lambda: bed.disk.rename("log", "new"), lambda: file.truncate(0)],
        "sync_share": [file.sync, lambda: bed.disk.sync_dir("")],
    }
    for call in calls[share]:
        with pytest.raises(OSError, match="Input/output"):
            call()
    bed.faults.heal()
    assert bed.disk.read_whole("log") == b"before"


def test_what_a_sync_that_fails_was_about_is_lost_with_the_power() -> None:
    bed = Bed()
    file = bed.disk.open("log")
    bed.disk.sync_dir("")
    file.append([b"gone"])
    bed.faults.sync_share = 1.0
    with pytest.raises(OSError, match="Input/output"):
        file.sync()
    bed.faults.heal()
    file.sync()
    assert bed.device.after_power_failure(ALL_IS_LOST).read_whole("log") == b"\0\0\0\0"


def test_a_slow_disk_takes_the_time_of_who_calls() -> None:
    bed = Bed()
    bed.faults.call_ms = 100.0
    ended_s: list[float] = []

    async def work() -> None:
        bed.disk.open("log").append([b"x"])
        await asyncio.sleep(0)
        ended_s.append(asyncio.get_running_loop().time() - 100.0)

    bed.process.start(work(), "work")
    bed.bench.run()
    assert 0.1 <= ended_s[0] <= 0.35


def test_a_lock_is_given_back_by_the_end_of_the_process() -> None:
    bed = Bed()
    bed.disk.lock("lock")
    with pytest.raises(LockHeld):
        bed.disk.lock("lock")
    bed.process.kill()
    bed.started()[1].lock("lock")


def test_a_dead_directory_fails_in_every_call_and_others_do_not() -> None:
    """Also what is done to files that were open before."""
    bed = Bed()
    failed: list[str] = []

    def tried(name: str, call: Callable[[], object]) -> None:
        try:
            call()
        except OSError as error:
            assert error.errno == errno.EIO
            failed.append(name)

    def work() -> None:
        disk = bed.disk
        for name in ("data", "data2"):
            disk.make_dir(name)
            file = disk.open(f"{name}/log")
            file.append([b"x"])
            if name == "data2":
                bed.faults.dead_directory = "data2"
            tried(f"append to {name}", lambda file=file: file.append([b"y"]))  # type: ignore[misc]
            tried(f"cut {name}", lambda file=file: file.truncate(0))  # type: ignore[misc]
            tried(f"sync {name}", file.sync)
            tried(f"open in {name}", lambda name=name: disk.open(f"{name}/log"))  # type: ignore[misc]
            tried(f"make in {name}", lambda name=name: disk.open(f"{name}/other"))  # type: ignore[misc]
            tried(f"list {name}", lambda name=name: disk.list_dir(name))  # type: ignore[misc]
            tried(f"read in {name}", lambda name=name: disk.read_whole(f"{name}/log"))  # type: ignore[misc]

    bed.do(work)
    assert failed == [f"{what} data2" for what in ("append to", "cut", "sync", "open in", "make in", "list", "read in")]
