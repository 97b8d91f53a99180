"""Three brokers in one process, directories on disk: from their start to the first record kept by all, and memory.

Each run begins with empty directories, so that a topic with three replicas has to be created, too; then the cluster is
stopped cleanly and started again on what is there. The clock runs from before the process exists until the first
record is acknowledged with acks=all. Memory is read after `idle_s` seconds without another request.
"""

import time
from dataclasses import dataclass, field

from benchmarks.cluster_process import acknowledged, create_replicated
from benchmarks.figures.figures import Bar, Statement, Summary
from benchmarks.harness.bench import Bench
from benchmarks.harness.plan import MEGABYTE
from benchmarks.harness.results import Outcome
from benchmarks.host.machine import resident_bytes
from processes.odradek_cluster import OdradekCluster

TOPIC = "first"
START_BAR = Bar("≤", 0.5)
MEMORY_BAR = Bar("≤", 80.0)


@dataclass(slots=True)
class Starts:
    """What starts of one kind took."""

    title: str
    seconds: list[float] = field(default_factory=list[float])
    megabytes: list[float] = field(default_factory=list[float])


def measure_cluster_start(bench: Bench) -> Outcome:
    """Raises ProcessFailed, KafkaError, OSError."""
    plan = bench.plan
    new, again = Starts("on empty directories, topic created"), Starts("started again")
    for run in range(1, plan.runs + 1):
        cluster = OdradekCluster(bench.directory / f"cluster-start-{run}", *bench.options())
        try:
            for starts in (new, again):
                starts.seconds.append(started(cluster, is_new=starts is new))
                time.sleep(plan.idle_s)  # idle, as measured
                starts.megabytes.append(resident_bytes(cluster.pid) / MEGABYTE)
                cluster.terminate()
                text = f"{starts.seconds[-1]:.3f} s, {starts.megabytes[-1]:.1f} MB"
                bench.say(f"cluster-start {run}/{plan.runs}, {starts.title}: {text}")
        finally:
            cluster.close()
    outcome = Outcome()
    for starts in (new, again):
        first, memory = Summary(tuple(starts.seconds)), Summary(tuple(starts.megabytes))
        what = f"three brokers in one process, {starts.title}"
        outcome.add(
            Statement(f"{what}: start to the first acks=all record", "s", first, None, START_BAR, 2),
            Statement(f"{what}: memory (RSS)", "MB", memory, None, MEMORY_BAR, 0),
        )
    return outcome


def started(cluster: OdradekCluster, *, is_new: bool) -> float:
    """Seconds until a record was on all replicas. Raises ProcessFailed, KafkaError, OSError."""
    address = cluster.host, cluster.port
    began_s = time.perf_counter()
    cluster.start()
    if is_new:
        create_replicated(address, TOPIC)
    acknowledged(address, TOPIC, time.time_ns() // 1_000_000)
    return time.perf_counter() - began_s
