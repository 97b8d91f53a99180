"""A worker's simulated process (odradek.runtime.worker): it has a disk of its own on its machine's device.

It lives on when its owner is killed, as a real one does, and goes on writing for a while: into a log that the next
process of the machine has opened. What goes wrong is up to `WorkerFaults`: it dies before or within a call of its disk,
and its answers come late.
"""

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from inspect import GEN_SUSPENDED, getgeneratorstate
from typing import NoReturn

from odradek.runtime.worker import GiveWay, Stopped, Talk, WorkerEnded
from odradek.testing.killed import Killed
from odradek.testing.sim.world.device import LosingDevice
from odradek.testing.sim.world.disk import DiskFaults, SimDisk
from odradek.testing.sim.world.process import Process


@dataclass(slots=True)
class WorkerFaults:
    """What goes wrong with the workers of a machine: the shares of questions where it does."""

    death_share: float = 0.0
    """The worker dies, at one of its next changes on the disk or after its answer."""
    late_share: float = 0.0
    late_ms: float = 3_000.0
    """How late an answer is at most."""
    changes_max: int = 8
    """Among how many changes of the disk the one is in which the worker dies."""
    lingers_calls: int = 200
    """How often an orphan gives way, at most, before it notices."""


class WorkerDisk(SimDisk):
    """The disk of a worker, which dies in a change of its own."""

    def __init__(self, process: Process, former: LosingDevice, faults: DiskFaults, rng: random.Random) -> None:
        super().__init__(process, former, faults, rng)
        self.dies_in: int | None = None

    def _is_struck(self) -> bool:
        self.changes += 1
        if self.dies_in is None:
            return False
        self.dies_in -= 1
        return self.dies_in < 0

    def _die(self) -> NoReturn:
        self.process.kill()
        raise Killed


class SimWorker:
    """A worker, as its owner has it."""

    def __init__(
        self,
        owner: Process,
        process: Process,
        disk: WorkerDisk,
        faults: WorkerFaults,
        rng: random.Random,
        serve: Callable[[WorkerDisk, GiveWay], Talk],
    ) -> None:
        self._owner = owner
        self._process = process
        self._disk = disk
        self._faults = faults
        self._rng = rng
        self._calls_left = rng.randrange(faults.lingers_calls)
        self._talk = serve(disk, self._give_way)
        self.greeting = next(self._talk)
        self._waiting: Callable[[bytes | WorkerEnded], object] | None = None
        process.when_killed(self._died)
        owner.when_killed(self._orphaned)

    async def ask(self, question: bytes) -> bytes:
        """Raises WorkerEnded."""
        future = self._owner.loop.create_future()

        def answered(answer: bytes | WorkerEnded) -> None:
            if not future.done():
                future.set_result(answer)

        if self._process.is_dead:
            raise WorkerEnded("it was killed")
        self._waiting = answered
        if self._rng.random() < self._faults.death_share:
            self._disk.dies_in = self._rng.randrange(self._faults.changes_max)
        self._process.start(self._answer(question), "answer")
        answer: bytes | WorkerEnded = await future
        if isinstance(answer, WorkerEnded):
            raise answer
        return answer

    async def close(self) -> None:
        self._waiting = None
        self._process.kill()

    async def _answer(self, question: bytes) -> None:
        """In the worker's process."""
        try:
            answer = await self._process.run_in_helper(partial(self._talk.send, question))
        except Stopped:
            self._process.scheduler.after(0.0, self._process.kill)
            return
        is_late = self._rng.random() < self._faults.late_share
        late_s = self._rng.uniform(0.0, self._faults.late_ms) / 1000.0 if is_late else 0.0
        self._process.scheduler.after(late_s, self._deliver, answer)

    def _deliver(self, answer: bytes | WorkerEnded) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            self._owner.post(waiting, answer)
        if self._disk.dies_in is not None:
            self._process.kill()

    def _died(self) -> None:
        self._process.scheduler.after(0.0, self._deliver, WorkerEnded("it was killed"))

    def _orphaned(self) -> None:
        """The owner was killed. An idle worker notices soon; one that works notices when it gives way."""
        self._waiting = None
        self._process.scheduler.after(self._rng.uniform(0.0, 0.5), self._end)

    def _end(self) -> None:
        if not self._process.is_dead:
            self._process.start(self._stop(), "stop")

    async def _stop(self) -> None:
        if getgeneratorstate(self._talk) == GEN_SUSPENDED:
            with suppress(Stopped):
                await self._process.run_in_helper(partial(self._talk.throw, Stopped()))
        self._process.scheduler.after(0.0, self._process.kill)

    def _give_way(self) -> None:
        """Raises Stopped when the owner is gone, and some time has passed."""
        if self._owner.is_dead:
            self._calls_left -= 1
            if self._calls_left < 0:
                raise Stopped
