"""A world from a seed: time, a network, machines, a metadata store if it has one, a trace, and a history.

    with World(seed=7) as world:
        b1 = world.machine("b1")
        b1.start(serve_broker)
        world.after(5.0, b1.kill)
        world.run(20.0)
        world.trace.digest

Chance comes from the seed alone, in a stream for each purpose (`world.rng("faults")`), so that one more question of one
part does not change what all others are answered. Within a world there is one clock that all can be compared by:
`now_ms`. What programs write to their logs becomes a part of the trace, and of `log`.
"""

import logging
import random
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self

from odradek.testing.sim.checking.history import FaultKind, Happened, History
from odradek.testing.sim.world.machine import Machine
from odradek.testing.sim.world.network import Network
from odradek.testing.sim.world.scheduler import START_S, Scheduler, Timer
from odradek.testing.sim.world.store import SimStore
from odradek.testing.sim.world.trace import Trace

WALL_OFFSET_S: Final = 0.2
"""How far apart the machines' times of day are in the beginning, at most."""


class World:
    """See the module. `errors` are those that no process handled: there should be none."""

    def __init__(
        self,
        seed: int,
        *,
        has_store: bool = False,
        store_type: type[SimStore] = SimStore,
        log: Callable[[str], object] | None = None,
    ) -> None:
        self.seed = seed
        self.scheduler = Scheduler()
        self.trace = Trace(self.scheduler, log)
        self.network = Network(self.scheduler)
        self.store = store_type(self.scheduler, self.network, self.trace, self.rng("store")) if has_store else None
        self.machines: dict[str, Machine] = {}
        self.history = History()
        self.logged: Callable[[logging.LogRecord], object] = _ignore
        """Called with each line that a program logs, from INFO on."""
        self._log_handler = _LogHandler(self)
        self.errors: list[str] = []

    def rng(self, purpose: str) -> random.Random:
        """A stream of chance. Asked for twice, it begins anew."""
        return random.Random(f"{self.seed}/{purpose}")

    def machine(self, name: str) -> Machine:
        """A new machine, switched on."""
        number = len(self.machines) + 1
        address = f"10.0.0.{number}"
        rng = self.rng(f"machine {name}")
        machine = Machine(name, address, self.scheduler, self.trace, self.network, rng, self.store, self.errors)
        machine.clock.jump(rng.uniform(-WALL_OFFSET_S, WALL_OFFSET_S))
        machine.boot()
        self.machines[name] = machine
        return machine

    # -- time ------------------------------------------------------------------------------------------------------

    @property
    def now_ms(self) -> float:
        """Since the world began."""
        return (self.scheduler.now_s - START_S) * 1000.0

    def after(self, delay_s: float, callback: Callable[..., object], *args: Any) -> Timer:
        return self.scheduler.after(delay_s, callback, *args)

    def at(self, at_s: float, callback: Callable[..., object], *args: Any) -> Timer:
        """So many seconds after the world began."""
        return self.scheduler.at(START_S + at_s, callback, *args)

    def run(self, until_s: float) -> None:
        """Lets time pass until so many seconds after the world began, or until `stop`."""
        self.scheduler.run(START_S + until_s)

    def stop(self) -> None:
        """Has `run` return."""
        self.scheduler.stop()

    # -- what happens ----------------------------------------------------------------------------------------------

    def happened(self, kind: FaultKind, machine: str = "", detail: str = "") -> None:
        """Writes down what the world does, in history and trace."""
        self.trace.note("#", kind, machine, detail)
        self.history.add(Happened(self.now_ms, kind, machine, detail))

    # -- beginning and end -----------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._log_handler.install()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Kills whoever is left."""
        for machine in self.machines.values():
            machine.kill()
            machine.kill_workers()
        self._log_handler.remove()


class _LogHandler(logging.Handler):
    """Writes what programs log into the trace."""

    def __init__(self, world: World) -> None:
        super().__init__(logging.INFO)
        self._world = world
        self._before: tuple[list[logging.Handler], int] = ([], logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        self._world.trace.note("log", record.levelname, record.name, record.getMessage())
        self._world.logged(record)

    def install(self) -> None:
        root = logging.getLogger()
        self._before = root.handlers[:], root.level
        root.handlers[:] = [self]
        root.setLevel(logging.INFO)

    def remove(self) -> None:
        root = logging.getLogger()
        root.handlers[:], level = self._before
        root.setLevel(level)


def _ignore(record: logging.LogRecord) -> None: ...
