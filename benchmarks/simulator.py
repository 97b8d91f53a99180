"""How fast the simulator is: virtual seconds in a second of one core.

The workload is ten histories of three brokers that share a metadata store, with one or two producers, one or two
readers, and one to ten faults by chance, of all kinds that the simulator has. They are written down here, so that they
stay as they are when the simulator chooses others for its seeds. Each run is a process of its own, with a fixed hash
seed, and counts its CPU time from the first event of a history to the verdict on it; importing is not in it.
"""

import gc
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Final

from benchmarks.figures.figures import Bar, Statement, Summary
from benchmarks.harness.bench import Bench
from benchmarks.harness.results import Outcome, Unavailable
from benchmarks.host.machine import REPOSITORY
from odradek.testing.sim.cluster.workload import ProducerAcks
from odradek.testing.sim.scenario import Scenario
from odradek.testing.sim.simulation import Result, simulate

BAR: Final = Bar("≥", 60.0)
IDEMPOTENT: Final = ProducerAcks(-1, is_idempotent=True)
ALL: Final = ProducerAcks(-1)
ONE: Final = ProducerAcks(1)
NONE: Final = ProducerAcks(0)


def _history(
    partitions: int, producers: tuple[ProducerAcks, ...], readers: int, interval_ms: float, safety_s: float, faults: int
) -> Scenario:
    return Scenario(
        brokers=3,
        partitions=partitions,
        replication_factor=3,
        min_insync_replicas=2,
        is_synced=False,
        producers=producers,
        lag_ms=2_000,
        readers=readers,
        interval_ms=interval_ms,
        safety_s=safety_s,
        faults=faults,
    )


WORKLOAD: Final[Mapping[int, Scenario]] = {
    1: _history(2, (IDEMPOTENT, ALL), 1, 100.0, 20.0, 1),
    2: _history(3, (NONE, IDEMPOTENT), 2, 300.0, 10.0, 6),
    3: _history(3, (ALL,), 1, 100.0, 10.0, 1),
    4: _history(2, (ALL, ALL), 2, 300.0, 30.0, 6),
    5: _history(1, (ALL,), 2, 300.0, 10.0, 6),
    6: _history(2, (IDEMPOTENT,), 1, 100.0, 20.0, 3),
    7: _history(1, (IDEMPOTENT,), 1, 100.0, 10.0, 10),
    8: _history(3, (IDEMPOTENT, ONE), 1, 300.0, 30.0, 3),
    9: _history(1, (ONE,), 1, 100.0, 20.0, 3),
    10: _history(1, (ALL,), 2, 100.0, 20.0, 1),
}
"""By seed."""


def measure_simulator(bench: Bench) -> Outcome:
    """Raises CalledProcessError, and Unavailable for a history that ends as none should."""
    speeds: list[float] = []
    for run in range(1, bench.plan.runs + 1):
        virtual_s, cpu_s, events = timed()
        speeds.append(virtual_s / cpu_s)
        bench.say(
            f"simulator {run}/{bench.plan.runs}: {virtual_s:.0f} s in {cpu_s:.2f} s, {speeds[-1]:.1f} a second and "
            f"core, {events / virtual_s:,.0f} events in each"
        )
    outcome = Outcome()
    outcome.add(
        Statement(
            "simulator, three brokers with faults: virtual seconds per second of a core",
            "s/s",
            Summary(tuple(speeds)),
            None,
            BAR,
            1,
        )
    )
    return outcome


def timed() -> tuple[float, float, int]:
    """Virtual seconds, CPU seconds and events of the whole workload, in a fresh process."""
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-m", "benchmarks.simulator"]
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True)
    virtual_s, cpu_s, events = 0.0, 0.0, 0
    for line in done.stdout.splitlines():
        known = json.loads(line)
        if known["violations"]:
            raise Unavailable(f"the simulator's seed {known['seed']} ends badly: {known['violations'][0]}")
        virtual_s, cpu_s, events = virtual_s + known["virtual_s"], cpu_s + known["cpu_s"], events + known["events"]
    return virtual_s, cpu_s, events


def told(result: Result) -> str:
    """What the parent reads of a history, as a line of JSON."""
    return json.dumps(
        {
            "seed": result.seed,
            "virtual_s": result.virtual_s,
            "cpu_s": result.cpu_s,
            "events": result.steps,
            "digest": result.digest,
            "violations": result.violations,
        }
    )


def main(seeds: list[str]) -> None:
    """Prints a line for each history of the workload, or for these alone."""
    gc.collect()
    gc.freeze()  # what was imported stays
    for seed in map(int, seeds) if seeds else WORKLOAD:
        print(told(simulate(seed, WORKLOAD[seed])), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
