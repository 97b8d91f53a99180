"""What four processes cost that do nothing, with 1,000 partitions among them; and Apache Kafka with as many.

After some seconds of rest the CPU time of all processes, the supervisor's too, over a minute without a request is
taken. Odradek and Apache Kafka each have the machine to themselves.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from benchmarks.cores.core_servers import running_kafka_alone, running_processes
from benchmarks.figures.figures import Bar, Statement, Summary
from benchmarks.harness.bench import Bench
from benchmarks.harness.cluster_servers import Cluster
from benchmarks.harness.plan import MEGABYTE
from benchmarks.harness.replicated_topics import wait_for
from benchmarks.harness.results import Outcome
from benchmarks.host.machine import cpu_seconds, resident_bytes
from benchmarks.load.wire import ask_for_topic
from benchmarks.many_topics import REST_S

PROCESSES = 4
TOPIC = "idle"
PARTITIONS_PER_TOPIC = 500
BAR = Bar("≤", 3.0)


def measure_cores_idle(bench: Bench) -> Outcome:
    """Raises KafkaError, OSError, TimeoutError, and what starts and stops raise."""
    plan = bench.plan

    def processes(directory: Path) -> AbstractContextManager[Cluster]:
        return running_processes(directory, bench.options(), brokers=PROCESSES)

    contenders: tuple[Callable[[Path], AbstractContextManager[Cluster]], ...] = (processes, running_kafka_alone)
    percents, supervisors, megabytes = ([list[float](), list[float]()] for _ in range(3))
    bench.close()
    for which, running in enumerate(contenders):
        with running(bench.directory / f"cores-idle-{which}") as cluster:
            create_idle(cluster, plan.full_partitions)
            for number in range(1, plan.many_topics_runs + 1):
                broker, supervisor = idle_percent(cluster, plan.many_topics_idle_s)
                supervisors[which].append(supervisor)
                percents[which].append(broker + supervisor)
                megabytes[which].append(sum(map(resident_bytes, cluster.pids)) / MEGABYTE)
                bench.say(
                    f"cores-idle {number}/{plan.many_topics_runs} {cluster}: {percents[which][-1]:.2f} % of a core, "
                    f"of it the supervisor {supervisor:.2f} %, {megabytes[which][-1]:,.0f} MB"
                )

    def statement(name: str, unit: str, values: list[list[float]], bar: Bar | None, digits: int) -> Statement:
        ours, theirs = (Summary(tuple(each)) for each in values)
        return Statement(name, unit, ours, theirs, bar, digits)

    what = f"four processes with {plan.full_partitions:,} partitions, idle"
    outcome = Outcome()
    outcome.add(
        statement(f"{what}: CPU of all, supervisor included", "% of a core", percents, BAR, 2),
        Statement("– of it the supervisor", "% of a core", Summary(tuple(supervisors[0])), digits=2),
        statement("– memory (RSS) of all", "MB", megabytes, None, 0),
    )
    return outcome


def create_idle(cluster: Cluster, partitions: int) -> None:
    """Creates so many partitions of one replica; returns when every broker says that all are led. Raises KafkaError,
    OSError, TimeoutError."""
    counts = [min(PARTITIONS_PER_TOPIC, partitions - first) for first in range(0, partitions, PARTITIONS_PER_TOPIC)]
    with next(iter(cluster.members.values())).wire() as wire:
        for number, count in enumerate(counts):
            ask_for_topic(wire, f"{TOPIC}-{number}", count)
    for number, count in enumerate(counts):
        wait_for(cluster, f"{TOPIC}-{number}", lambda state: state.is_full, count)


def idle_percent(cluster: Cluster, seconds: float) -> tuple[float, float]:
    """Percent of a core that the brokers, and the supervisor, use over so many seconds, after a rest."""
    time.sleep(REST_S)  # what came before has left something to do
    sides = (cluster.broker_pids, cluster.store_pids)
    before, began = [sum(map(cpu_seconds, pids)) for pids in sides], time.monotonic()
    time.sleep(seconds)  # idle, as measured
    elapsed = time.monotonic() - began
    brokers, supervisor = (
        100 * (sum(map(cpu_seconds, pids)) - then) / elapsed for pids, then in zip(sides, before, strict=True)
    )
    return brokers, supervisor
