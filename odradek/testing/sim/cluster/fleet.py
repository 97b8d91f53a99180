"""Client machines that come, leave, are killed, stand still, are cut off from brokers, and come again.

fleet = GroupMembers(world, workload, seats)
fleet.start()
faults.carry_out(fleet.by_chance(rng, from_s=3, to_s=18, count=4))
fleet.come_all()
"""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from odradek.testing.sim.cluster.workload import RETRY_MS
from odradek.testing.sim.world.machine import Machine, Main
from odradek.testing.sim.world.world import World


class Fleet:
    """What they have in common. `_main` says what one of them runs."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.machines: list[Machine] = []
        self.is_over = False
        """Nobody comes any more."""
        self._dismissed: set[Machine] = set()

    def _main(self, machine: Machine) -> Main:
        raise NotImplementedError

    def _killed(self, machine: Machine) -> None:
        """Its process was there until now."""

    def add(self, name: str) -> None:
        """A machine with this name, which begins at once."""
        machine = self.world.machine(name)
        self.machines.append(machine)
        machine.start(self._main(machine))

    def by_chance(
        self, rng: random.Random, from_s: float, to_s: float, count: int
    ) -> Iterator[tuple[float, Callable[[], object]]]:
        """So many times one of them is killed, leaves, or stands still, and comes again, mostly soon."""
        for _ in range(count):
            machine = rng.choice(self.machines)
            at_s, back_s = rng.uniform(from_s, to_s), rng.choice((0.1, 1.0, 5.0)) * (0.5 + rng.random())
            moves = (self.kill, self.come), (self.leave, self.come), (Machine.pause, Machine.resume)
            goes, comes = rng.choice(moves)
            yield at_s, partial(goes, machine)
            yield at_s + back_s, partial(comes, machine)

    def cut_off(
        self, rng: random.Random, from_s: float, to_s: float, count: int, brokers: Sequence[Machine]
    ) -> Iterator[tuple[float, Callable[[], object]]]:
        """So many times one of them reaches no broker, mostly for longer than its session: what it has sent meanwhile
        comes when others have what it had."""
        for _ in range(count):
            machine = rng.choice(self.machines)
            at_s = rng.uniform(from_s, to_s)
            yield at_s, partial(self._cut, machine, brokers, is_cut=True)
            yield at_s + rng.uniform(1.0, 9.0), partial(self._cut, machine, brokers, is_cut=False)

    def _cut(self, machine: Machine, brokers: Sequence[Machine], *, is_cut: bool) -> None:
        if self.is_over:
            return
        what = "is cut off" if is_cut else "reaches brokers again"
        self.world.happened("network fault", "", f"{machine.name} {what}")
        for broker in brokers:
            self.world.network.line(machine.name, broker.name).is_cut = is_cut

    def kill(self, machine: Machine) -> None:
        """SIGKILL."""
        if machine.running is not None:
            self.world.trace.note(machine.name, "killed")
            machine.kill()
            self._killed(machine)

    @staticmethod
    def leave(machine: Machine) -> None:
        """SIGTERM."""
        machine.stop()

    def come(self, machine: Machine) -> None:
        """Does nothing where it is there; comes later where it is about to leave."""
        running = machine.running
        if self.is_over or machine in self._dismissed:
            return
        if running is None:
            machine.start(self._main(machine))
        elif running.was_asked_to_stop:
            self.world.after(RETRY_MS / 1000.0, self.come, machine)

    def dismiss(self, machines: Iterable[Machine]) -> None:
        """They leave, and come no more."""
        for machine in machines:
            self._dismissed.add(machine)
            self.leave(machine)

    def come_all(self) -> None:
        for machine in self.machines:
            self.come(machine)
