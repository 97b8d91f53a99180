"""A round of compaction cut short at every step: at each byte written and each other change, the process dies, the disk
fails, or power does. What is read afterwards is compared with all that was ever appended (swap.py), and the next round
leaves what an undisturbed one leaves.
"""

import random
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from odradek.broker.disk.disk import Disk
from odradek.broker.disk.memory_disk import Content
from odradek.protocol.primitives import Buffer
from odradek.testing.sim.world.losing_disk import Outcome
from tests.broker.keeping import DATA_DIR, DIRECTORY, Read
from tests.broker.log.logs import Crash, FaultyDisk, FaultyLosingDisk, contents, full
from tests.broker.log.swap import Staged


def work(staged: Staged) -> None:
    """What is cut short: a round, the removal of what it replaced, and everything made durable."""
    staged.kept.clean()
    staged.kept.remove_retired()
    staged.kept.settle()


class WatchedDisk(FaultyDisk):
    """Notes what is done, and with which step it begins; for a write also its middle."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: list[tuple[int, str]] = []

    def rename(self, source: str, target: str) -> None:
        self.operations.append((self.steps, f"rename {source.rpartition('.')[2]} to {target.rpartition('.')[2]}"))
        super().rename(source, target)

    def remove(self, path: str) -> None:
        self.operations.append((self.steps, f"remove {path.rpartition('.')[2]}"))
        super().remove(path)

    def sync(self, content: Content) -> None:
        self.operations.append((self.steps, "sync"))
        super().sync(content)

    def sync_dir(self, path: str) -> None:
        self.operations.append((self.steps, f"sync {path}"))
        super().sync_dir(path)

    def write(self, content: Content, data: Buffer) -> None:
        self.operations += [(self.steps, "write"), (self.steps + len(data) // 2, "half of a write")]
        super().write(content, data)


def undisturbed() -> tuple[WatchedDisk, Read, list[tuple[int, str]]]:
    """The disk, whose steps are those of the work, what it leaves, and what is done in it."""
    disk = WatchedDisk()
    staged = Staged(disk)
    disk.count_anew()
    disk.operations.clear()
    work(staged)
    return disk, staged.check(), disk.operations


DISK, LEFT, OPERATIONS = undisturbed()
STEPS = DISK.steps
CUTS = sorted({step for step, _ in OPERATIONS if step < STEPS})
"""The steps that differ in more than in how much of a file was written."""


def test_the_round_that_is_cut_short_has_everything_in_it() -> None:
    operations = {operation for _, operation in OPERATIONS}
    assert operations >= {
        *("write", "sync", f"sync {DIRECTORY}", "remove deleted", "remove snapshot"),
        *("rename cleaned to swap", "rename log to deleted", "rename swap to log", "rename swap to index"),
    }
    assert any(not header.record_count for header in LEFT.headers), "headers stay for their producers' sake"
    assert any(header.is_control for header in LEFT.headers)
    assert 500 < STEPS < 2000
    assert 60 < len(CUTS) < 200


Files = dict[str, bytes]


def files_of(disk: Disk) -> Files:
    checkpoints = {name: disk.read_whole(f"{DATA_DIR}/{name}") for name in disk.sizes(DATA_DIR)}
    return checkpoints | contents(disk)


def starts_again_right(staged: Staged, seen: list[Files]) -> None:
    """A start after whatever happened, what comes then, and another start.

    `seen`: what starts found that went well. The same files lead to the same end.
    """
    staged.kept.start()
    found_files = files_of(staged.kept.disk)
    if found_files in seen:
        return
    staged.check()
    assert [name for name in staged.kept.names if name.endswith((".cleaned", ".swap", ".deleted", ".damaged"))] == []
    staged.kept.clean()
    found = staged.check()
    assert found.records == LEFT.records
    assert found.offsets == LEFT.offsets
    staged.kept.restart()
    assert staged.check() == found
    seen.append(found_files)


@pytest.mark.parametrize("settles", [True, False], ids=["with a recovery point", "without"])
def test_a_process_that_dies_at_any_step_has_lost_nothing(settles: bool) -> None:
    seen: list[Files] = []
    for step in DISK.telling_steps():
        disk = FaultyDisk()
        staged = Staged(disk, settles=settles)
        disk.fail_at(step, Crash, for_good=True)
        with pytest.raises(Crash):
            work(staged)
        disk.heal()
        staged.kept.kill()
        with noted(step):
            starts_again_right(staged, seen)
    assert len(seen) >= 5, "each group is swapped or is not, and so is the checkpoint written"


@pytest.mark.parametrize("for_good", [False, True], ids=["once", "until it is healed"])
def test_a_disk_that_fails_at_any_step_loses_nothing(for_good: bool) -> None:
    """The log that runs answers what is right, or KAFKA_STORAGE_ERROR; the one that is opened next has everything."""
    seen: list[Files] = []
    for step in DISK.telling_steps():
        disk = FaultyDisk()
        staged = Staged(disk)
        disk.fail_at(step, full, for_good=for_good)
        work(staged)
        with noted(step):
            staged.check_answers()
            disk.heal()
            staged.check_answers()
            staged.kept.stop()
            starts_again_right(staged, seen)


class FirstNames(Outcome):
    """Of what was not synced no content is left, and of the names the first changes only, as a journal keeps them."""

    def __init__(self, count: int) -> None:
        self.left = count

    def is_kept(self, name: str) -> bool:
        self.left -= 1
        return self.left >= 0

    def size_bytes(self, name: str, old: int, new: int) -> int:
        return old


NAMES_MAX = 60


@pytest.mark.parametrize("settles", [True, False], ids=["with a recovery point", "without"])
def test_power_that_fails_at_any_step_takes_nothing_that_was_durable(settles: bool) -> None:
    """File systems with a journal keep changes of names in their order: any number of them may be there."""
    seen: list[tuple[Files, int]] = []
    for step in CUTS:
        disk = FaultyLosingDisk()
        staged = Staged(disk, settles=settles)
        disk.fail_at(step, Crash, for_good=True)
        with pytest.raises(Crash):
            work(staged)
        disk.heal()
        staged.kept.kill()
        durable_offset = staged.kept.log.durable_offset
        for count in range(NAMES_MAX):
            outcome = FirstNames(count)
            staged.kept.disk = disk.after_power_failure(outcome)
            found = files_of(staged.kept.disk), durable_offset
            if found not in seen:
                seen.append(found)
                with noted(step, f"{count} changes of names are left"):
                    staged.kept.start()
                    staged.check(durable_offset=durable_offset)
                staged.kept.kill()
            if outcome.left > 0:
                break
        else:
            pytest.fail("more names than were thought of")
    assert len(seen) > 30


class AnyNames(FirstNames):
    """Some of the changes of names, in whatever order they were made: POSIX promises no more."""

    def __init__(self, seed: int) -> None:
        super().__init__(0)
        self._rng = random.Random(seed)
        self._share = self._rng.choice((0.2, 0.5, 0.8))

    def is_kept(self, name: str) -> bool:
        return self._rng.random() < self._share


def test_power_that_fails_takes_nothing_either_where_names_change_in_any_order() -> None:
    for step in CUTS:
        disk = FaultyLosingDisk()
        staged = Staged(disk)
        disk.fail_at(step, Crash, for_good=True)
        with pytest.raises(Crash):
            work(staged)
        disk.heal()
        staged.kept.kill()
        staged.kept.disk = disk.after_power_failure(AnyNames(step))
        with noted(step):
            staged.kept.start()
            staged.check(durable_offset=17, in_order=False)


@contextmanager
def noted(step: int, more: str = "") -> Generator[None]:
    """An error says where it was."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"at step {step} of {STEPS} {more}")
        raise
