"""Compaction by a worker with a disk of its own, on the same files: it dies at every step, or its broker does and the
worker goes on writing into a log that the next broker has opened.

What is read is compared with all that was ever appended (log/swap.py), and the next round leaves what an undisturbed
one leaves.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from odradek.broker.disk.memory_disk import Content
from odradek.protocol.primitives import Buffer
from odradek.runtime.worker import GiveWay, Stopped, Talk, WorkerEnded
from tests.broker.keeping import Read
from tests.broker.log.logs import Crash, FaultyDisk
from tests.broker.log.swap import Staged

STRAYS = (".cleaned", ".swap", ".deleted", ".damaged")
ONE_OF = 4
"""Of the telling steps, so many are taken, from one drawn by chance on: many runs try all of them."""


class VisibleDisk(FaultyDisk):
    """The broker's: other processes find its files."""

    @property
    def is_visible_outside(self) -> bool:
        return True


class WorkersDisk(FaultyDisk):
    """The same files, as a worker has them. `at_step` is called once, before that step; 0 is the first."""

    def __init__(self, of: FaultyDisk) -> None:
        super().__init__()
        self._root = of._root  # pyright: ignore[reportPrivateUsage]
        self.hook: tuple[int, Callable[[], object]] | None = None

    def write(self, content: Content, data: Buffer) -> None:
        super().write(content, data)
        self._reached()

    def sync(self, content: Content) -> None:
        super().sync(content)
        self._reached()

    def _reached(self) -> None:
        if self.hook is not None and self.steps >= self.hook[0]:
            call, self.hook = self.hook[1], None
            call()


class Killed(BaseException):
    """The worker is: nothing of it runs any more."""


@dataclass
class Workers:
    """The workers of a broker, each of which is a generator on its own disk."""

    disk: FaultyDisk
    dies_at: int | None = None
    """The worker that is started next dies at this step of its disk."""
    crashes_at: int | None = None
    """The broker dies when it asks its worker this question, counted from 0."""
    asked: list[bytes] = field(default_factory=list[bytes])
    disks: list[WorkersDisk] = field(default_factory=list[WorkersDisk])
    talks: list[Talk] = field(default_factory=list[Talk])

    async def start(self, module: str, serve: Callable[[Any, GiveWay], Talk], disk: Any, *, in_process: bool) -> Any:
        assert in_process
        self.disks.append(WorkersDisk(self.disk))
        if self.dies_at is not None:
            self.disks[-1].fail_at(self.dies_at, Killed, for_good=True)
            self.dies_at = None
        self.talks.append(serve(self.disks[-1], lambda: None))
        return Working(self, self.talks[-1])


class Working:
    def __init__(self, workers: Workers, talk: Talk) -> None:
        self.workers = workers
        self.talk = talk
        self.greeting = next(talk)

    async def ask(self, question: bytes) -> bytes:
        self.workers.asked.append(question)
        if self.workers.crashes_at == len(self.workers.asked) - 1:
            raise Crash
        try:
            return self.talk.send(question)
        except Killed:
            raise WorkerEnded("it ended by signal 9 (SIGKILL)") from None

    async def close(self) -> None:
        """The generator is dropped where it stands, as a process is that is killed."""


def staged_with(**faults: Any) -> tuple[Staged, Workers]:
    staged = Staged(disk := VisibleDisk())
    workers = Workers(disk, **faults)
    staged.kept.environment.start_worker = workers.start  # type: ignore[method-assign]
    disk.count_anew()
    return staged, workers


def some(steps: Sequence[int]) -> Sequence[int]:
    return steps[random.randrange(ONE_OF) :: ONE_OF]


def strays(staged: Staged) -> list[str]:
    return [name for name in staged.kept.names if name.endswith(STRAYS)]


def undisturbed() -> tuple[Read, list[int], int]:
    """What a round leaves, the steps at which a worker is to die, and how many questions there are."""
    staged, workers = staged_with()
    staged.kept.clean()
    (disk,) = workers.disks
    return staged.check(), disk.telling_steps(), len(workers.asked)


LEFT, STEPS, QUESTIONS = undisturbed()


def test_a_round_asks_for_several_groups() -> None:
    assert QUESTIONS >= 3
    assert len(STEPS) > 30


def test_a_worker_killed_at_any_step_has_changed_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """The round is tried again, with the next worker, and comes to the same."""
    for step in some(STEPS):
        caplog.clear()
        staged, _ = staged_with(dies_at=step)
        staged.kept.clean()
        (warning,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
        assert warning.endswith("is tried again in 15000 ms: the worker failed: it ended by signal 9 (SIGKILL)")
        staged.check()
        staged.kept.remove_retired()
        assert strays(staged) == [], step
        staged.kept.clean()
        found = staged.check()
        assert (found.records, found.offsets) == (LEFT.records, LEFT.offsets), step


@pytest.mark.parametrize("next_round", ["meanwhile", "after"])
@pytest.mark.parametrize("question", range(1, QUESTIONS))
def test_a_worker_may_write_on_when_its_broker_was_killed_and_started(question: int, next_round: str) -> None:
    """The broker dies when it has asked for a group; its successor starts, and perhaps compacts, at a step of that."""
    for step in some(steps_of(question)):
        staged, workers = staged_with(crashes_at=question)
        with pytest.raises(Crash):
            staged.kept.clean()
        (orphan,), (disk,), asked = workers.talks, workers.disks, workers.asked[question]
        workers.crashes_at = None
        disk.count_anew()

        def restart(staged: Staged = staged) -> None:
            staged.kept.kill_and_start()
            if next_round == "meanwhile":
                staged.kept.clean()

        disk.hook = step, restart
        orphan.send(asked)
        assert disk.hook is None, "the broker was started while the worker wrote"
        staged.check()
        if next_round == "after":
            staged.kept.clean()
        found = staged.check()
        assert (found.records, found.offsets) == (LEFT.records, LEFT.offsets), step
        with pytest.raises(Stopped):
            orphan.throw(Stopped())
        staged.kept.remove_retired()
        assert strays(staged) == [], step
        staged.kept.kill_and_start()
        assert staged.check() == found


def steps_of(question: int) -> list[int]:
    """Where something begins, or is nearly done, in what a worker does for this question."""
    staged, workers = staged_with(crashes_at=question)
    with pytest.raises(Crash):
        staged.kept.clean()
    workers.disks[0].count_anew()
    workers.talks[0].send(workers.asked[question])
    last = workers.disks[0].steps
    return [step for step in workers.disks[0].telling_steps() if step < last]


def test_a_broker_killed_at_any_step_of_its_own_has_a_worker_that_does_no_harm() -> None:
    """The worker waits for the next question meanwhile, and notices when the next broker serves."""
    staged, _ = staged_with()
    staged.kept.clean()
    disk = staged.kept.disk
    assert isinstance(disk, FaultyDisk)
    for step in some(disk.telling_steps()):
        staged, workers = staged_with()
        workers.disk.fail_at(step, Crash, for_good=True)
        with pytest.raises(Crash):
            staged.kept.clean()
        workers.disk.heal()
        staged.kept.kill_and_start()
        staged.check()
        for talk in workers.talks:
            with pytest.raises(Stopped):
                talk.throw(Stopped())
        staged.check()
        assert strays(staged) == [], step
        staged.kept.clean()
        found = staged.check()
        assert (found.records, found.offsets) == (LEFT.records, LEFT.offsets), step


def test_only_files_of_the_round_take_a_place() -> None:
    """Those of an orphan have the names that the next round's would have, but for the nonce."""
    staged, workers = staged_with(crashes_at=1)
    with pytest.raises(Crash):
        staged.kept.clean()
    workers.crashes_at = None
    staged.kept.kill_and_start()
    workers.talks[0].send(workers.asked[1])
    orphans = [name for name in staged.kept.names if name.endswith(".cleaned")]
    assert len(orphans) >= 3
    for name in orphans:
        staged.kept.disk.write_whole(f"{staged.kept.directory}/{name}", b"nonsense")
    staged.kept.clean()
    found = staged.check()
    assert (found.records, found.offsets) == (LEFT.records, LEFT.offsets)
    assert [name for name in staged.kept.names if name.endswith(".cleaned")] == orphans
    staged.kept.restart()
    assert strays(staged) == []
