"""The start of two processes under a supervisor: when each answers first, and what memory a process more takes.

Each run begins with empty directories; then the cluster is stopped cleanly and started again on what is there. The
clock runs from before the supervisor's process exists until the first answer to ApiVersions of each broker, on its own
port. Memory is read after `idle_s` seconds without another request. What a process more takes is the memory of all
processes of a cluster of three less that of a cluster of two; a page that several share counts once (PSS). One process
of `odradek serve` is started again in the same round, to show how fast the machine is just then.
"""

import time
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from benchmarks.cores.core_servers import HOST, PROCESSES, supervised
from benchmarks.figures.figures import Bar, Statement, Summary
from benchmarks.harness.bench import Bench
from benchmarks.harness.plan import MEGABYTE
from benchmarks.harness.results import Outcome
from benchmarks.harness.servers import running_odradek
from benchmarks.host.machine import proportional_bytes, resident_bytes
from benchmarks.start import first_answers, start
from processes.supervised_cluster import SupervisedCluster

NAME = "cores-start"
START_BAR = Bar("≤", 0.35)
MEMORY_BAR = Bar("≤", 40.0)


class Row(NamedTuple):
    """A line of the result, by the name under which a run tells it."""

    title: str
    unit: str
    bar: Bar | None = None
    digits: int = 2


ROWS = {
    "new": Row("two processes, on empty directories: start to the first answer of each", "s", START_BAR),
    "new, first": Row("– of the first that answers", "s"),
    "again": Row("two processes, started again: start to the first answer of each", "s", START_BAR),
    "again, first": Row("– of the first that answers", "s"),
    "alone": Row("– one process alone, started again", "s"),
    "more": Row("memory of a process more (PSS of all)", "MB", MEMORY_BAR, 1),
    "broker": Row("– a broker (RSS)", "MB", digits=1),
    "supervisor": Row("– the supervisor (RSS)", "MB", digits=1),
}


def measure_cores_start(bench: Bench) -> Outcome:
    """Raises ProcessFailed, OSError, TimeoutError."""
    bench.close()
    seen: dict[str, list[float]] = defaultdict(list)
    for number in range(1, bench.plan.runs + 1):
        directory = bench.directory / f"{NAME}-{number}"
        run = {"alone": start_alone(bench, directory / "alone"), **run_cores_start(bench, directory)}
        for name, value in run.items():
            seen[name].append(value)
        bench.say(f"{NAME} {number}/{bench.plan.runs}: {', '.join(f'{name} {run[name]:.3f}' for name in ROWS)}")
    outcome = Outcome()
    for name, row in ROWS.items():
        outcome.add(Statement(row.title, row.unit, Summary(tuple(seen[name])), None, row.bar, row.digits))
    return outcome


def start_alone(bench: Bench, directory: Path) -> float:
    """Seconds that one process takes to its first answer. Raises ProcessFailed, OSError, TimeoutError."""
    with running_odradek(directory, bench.options()) as server:
        server.stop()
        return start(server)


def run_cores_start(bench: Bench, directory: Path) -> dict[str, float]:
    """One run: seconds and megabytes, by the names of `ROWS`. Raises ProcessFailed, OSError, TimeoutError."""
    values: dict[str, float] = {}
    two, three = (
        supervised(directory / f"of-{brokers}", bench.options(), brokers=brokers)
        for brokers in (PROCESSES, PROCESSES + 1)
    )
    try:
        for kind in ("new", "again"):
            if two.was_started:
                two.stop()
            seconds = answers_after_start(two)
            values[kind], values[f"{kind}, first"] = max(seconds), min(seconds)
        time.sleep(bench.plan.idle_s)  # idle, as measured
        of_two = together(two)
        values["broker"] = max(map(resident_bytes, two.pids().values())) / MEGABYTE
        values["supervisor"] = resident_bytes(two.pid) / MEGABYTE
        two.stop()
        three.start()
        time.sleep(bench.plan.idle_s)  # the same
        values["more"] = (together(three) - of_two) / MEGABYTE
        three.stop()
    finally:
        for each in (two, three):
            each.close()
    return values


def answers_after_start(supervisor: SupervisedCluster) -> list[float]:
    """Starts it; seconds until each broker answered first. Raises OdradekClusterFailed, TimeoutError."""
    ports = range(supervisor.port, supervisor.port + supervisor.brokers)
    return first_answers(supervisor.start, [(HOST, port) for port in ports])


def together(supervisor: SupervisedCluster) -> int:
    """Bytes of memory that the supervisor and all of its processes have, shared pages once."""
    return sum(map(proportional_bytes, [supervisor.pid, *supervisor.pids().values()]))
