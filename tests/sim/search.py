"""Many histories, in several processes if one likes: which seeds, with which mistake put in, and what came of it.

    for outcome in outcomes([Task(1), Task(2), Task(1, "duplicates are not noticed")], jobs=2): ...

A seed's history depends on nothing but the seed, so it does not matter which process runs it, and after what.
"""

import multiprocessing
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import islice
from typing import Final

from odradek.testing.sim.simulation import Result, simulate
from tests.sim.canaries import CANARIES, sung

SHOWN_MAX: Final = 5
"""So many violations of a seed are told."""


@dataclass(frozen=True, slots=True)
class Task:
    """A seed, and the canary that is sung meanwhile."""

    seed: int
    canary: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it."""

    task: Task
    digest: str
    violations: int
    text: str
    """For a person to read."""
    virtual_s: float = 0.0
    cpu_s: float = 0.0

    @property
    def is_good(self) -> bool:
        return not self.violations


def run(task: Task, log: Callable[[str], object] | None = None) -> Outcome:
    """Simulates one. A world that fails is an outcome, too."""
    canary = nullcontext() if task.canary is None else sung(CANARIES[task.canary])
    try:
        with canary:
            result = simulate(task.seed, log=log)
    except Exception:  # noqa: BLE001 - the search goes on, and says so
        return Outcome(task, "", 1, f"seed {task.seed}: the world has failed\n{traceback.format_exc()}{again(task)}")
    return Outcome(task, result.digest, len(result.violations), told(result, task), result.virtual_s, result.cpu_s)


def outcomes(tasks: Iterable[Task], jobs: int) -> Iterator[Outcome]:
    """Of each task, as they come; with one job in this process and in order."""
    if jobs == 1:
        yield from map(run, tasks)
        return
    waiting = iter(tasks)
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("fork")) as pool:
        running: set[Future[Outcome]] = {pool.submit(run, task) for task in islice(waiting, 2 * jobs)}
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
            running |= {pool.submit(run, task) for task in islice(waiting, len(done))}


@dataclass(frozen=True, slots=True)
class Hunt:
    """How many seeds it took to find a canary."""

    canary: str
    seeds: int
    found_by: int | None
    cpu_s: float


def hunt(canary: str, seeds: Iterable[int]) -> Hunt:
    """Looks for it, seed by seed, until one finds it and finds nothing without it."""
    cpu_s, count = 0.0, 0
    for count, seed in enumerate(seeds, 1):
        outcome = run(Task(seed, canary))
        cpu_s += outcome.cpu_s
        if not outcome.is_good and run(Task(seed)).is_good:
            return Hunt(canary, count, seed, cpu_s)
    return Hunt(canary, count, None, cpu_s)


def hunts(canaries: Iterable[str], seeds: Iterable[int], jobs: int) -> Iterator[Hunt]:
    """Of each canary, in order."""
    seeds = list(seeds)
    if jobs == 1:
        for canary in canaries:
            yield hunt(canary, seeds)
        return
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("fork")) as pool:
        for future in [pool.submit(hunt, canary, seeds) for canary in canaries]:
            yield future.result()


def told(result: Result, task: Task) -> str:
    """A line, and the first of what is wrong."""
    speed = result.virtual_s / max(result.cpu_s, 1e-9)
    took = f"{result.virtual_s:.1f} s in {result.cpu_s:.2f} s ({speed:.0f} a second)"
    verdict = "FAILED" if result.violations else "good"
    size = f"{result.steps} events, {len(result.history)} records"
    excused = "".join(f", {count} {what}" for what, count in sorted(result.excused.items()))
    lines = [f"seed {result.seed}: {verdict}, {took}, {size}, {result.digest}{excused}\n"]
    if result.violations:
        if task.canary is not None:
            lines.append(f"  with: {task.canary}\n")
        lines += [f"  {violation}\n" for violation in result.violations[:SHOWN_MAX]]
        if (more := len(result.violations) - SHOWN_MAX) > 0:
            lines.append(f"  and {more} more\n")
        lines.append(f"  {result.scenario}\n{again(task)}")
    return "".join(lines)


def again(task: Task) -> str:
    """How to see it again."""
    if task.canary is None:
        return f"  again: make sim SEED={task.seed}\n"
    return f"  again: python -m tests.sim {task.seed} --canary '{task.canary}'\n"
