"""A contest: the same workload against both servers in turn, run after run, each warm before its own.

A workload does one thing to a server and says what it measured. Each is warmed up by slices of it until two differ by
less than 5 %, for `warm_s` under load at least, and for `rewarm_s` before each of its runs. That is done for every
contest anew, so that its order among others does not matter. Both stay up.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from benchmarks.figures.figures import Bar, Figure, Statement, Summary, is_steady
from benchmarks.harness.plan import MEGABYTE, Plan
from benchmarks.host.machine import DIRTY_BYTES_MAX
from benchmarks.host.work import DISTURBED_SHARE_MAX, OTHER_CORES_MAX, disturbance_note

S = TypeVar("S")
"""A contender that is a server or a cluster; `str` says which."""


@dataclass(frozen=True, slots=True)
class Run:
    """What one run measured: `values` by quantity. A warm-up is steady when `speed` is, which may be a time as well."""

    seconds: float  # under load
    speed: float
    values: Mapping[str, float]
    text: str  # what is said of it
    other_cores: float
    dirty_bytes: int = 0  # left when it began

    @property
    def is_disturbed(self) -> bool:
        return self.other_cores > OTHER_CORES_MAX or self.dirty_bytes > DIRTY_BYTES_MAX

    def __str__(self) -> str:
        return (
            f"{self.text}, {self.dirty_bytes / MEGABYTE:.0f} MB dirty before, "
            f"{self.other_cores:.2f} cores busy otherwise{': disturbed' * self.is_disturbed}"
        )


Workload = Callable[[S], Run]
"""Raises LoadFailed, LogDiffers, KafkaError, OSError."""


@dataclass(slots=True)
class Runs:
    """What the runs of one contest measured, and what a reader of it has to know."""

    ours: list[Run] = field(default_factory=list[Run])
    theirs: list[Run] = field(default_factory=list[Run])
    beside: list[Run] = field(default_factory=list[Run])
    """Of a third contender, where there is one."""
    notes: list[str] = field(default_factory=list[str])

    @property
    def all(self) -> list[Run]:
        return [*self.ours, *self.theirs, *self.beside]

    @property
    def disturbed_count(self) -> int:
        return sum(run.is_disturbed for run in self.all)

    @property
    def is_disturbed(self) -> bool:
        return self.disturbed_count > DISTURBED_SHARE_MAX * len(self.all)

    def figure(self, quantity: str, name: str, unit: str, bar: Bar | None = None, digits: int = 0) -> Figure:
        return Figure(name, unit, summary(self.ours, quantity), summary(self.theirs, quantity), bar, digits)

    def statement(self, quantity: str, name: str, unit: str, bar: Bar | None = None, digits: int = 0) -> Statement:
        theirs = summary(self.theirs, quantity) if self.theirs else None
        return Statement(name, unit, summary(self.ours, quantity), theirs, bar, digits)


def summary(runs: Sequence[Run], quantity: str) -> Summary:
    return Summary(tuple(run.values[quantity] for run in runs))


@dataclass(slots=True)
class Contest:
    """Holds contests under one plan."""

    plan: Plan
    say: Callable[[str], None]

    def hold(
        self,
        name: str,
        run: Workload[S],
        ours: S,
        theirs: S,
        *,
        slice_of: Workload[S] | None = None,
        beside: S | None = None,
    ) -> Runs:
        """`slice_of` is what warms up, where the workload itself is not fit for that; `beside` a third contender.
        Raises what the workload does."""
        slice_of = run if slice_of is None else slice_of
        runs = Runs()
        contenders = [(ours, runs.ours), (theirs, runs.theirs)]
        if beside is not None:
            contenders.append((beside, runs.beside))
        for server, _done in contenders:
            self._warm_up(name, slice_of, server, runs)
        for number in range(1, self.plan.runs + 1):
            for server, done in contenders:
                self._warm_again(slice_of, server)
                done.append(run(server))
                self.say(f"{name} {number}/{self.plan.runs} {server}: {done[-1]}")
        self._note_disturbances(name, runs)
        return runs

    def hold_alone(self, name: str, run: Workload[S], ours: S) -> Runs:
        """Without anybody beside."""
        runs = Runs()
        run(ours)
        for number in range(1, self.plan.runs + 1):
            runs.ours.append(run(ours))
            self.say(f"{name} {number}/{self.plan.runs} {ours}: {runs.ours[-1]}")
        self._note_disturbances(name, runs)
        return runs

    def _note_disturbances(self, name: str, runs: Runs) -> None:
        runs.notes.append(disturbance_note(name, runs.disturbed_count, len(runs.all)))

    def _warm_up(self, name: str, slice_of: Workload[S], server: S, runs: Runs) -> None:
        """Until two slices differ by less than 5 %, after `warm_s` of load at least; says so if it never got steady."""
        under_load_s, speeds = 0.0, list[float]()
        word = "steady"
        while under_load_s < self.plan.warm_s or not is_steady(speeds):
            if under_load_s > self.plan.warm_s_max:
                word = "NOT STEADY"
                break
            run = slice_of(server)
            under_load_s += run.seconds
            speeds.append(run.speed)
            self.say(f"{name}, warm-up {server}: {run}")
        runs.notes.append(f"{name}: {server} was {word} after {under_load_s:.0f} s under load")
        self.say(runs.notes[-1])

    def _warm_again(self, slice_of: Workload[S], server: S) -> None:
        under_load_s = 0.0
        while under_load_s < self.plan.rewarm_s:
            under_load_s += slice_of(server).seconds
