"""How long two processes take to stop under load: from SIGTERM to the supervisor until it has ended.

Eight connections produce batches of 16 KiB to eight partitions, as fast as they can, and are cut off. Each run begins
with an empty directory. The stop must be a clean one: no broker that had to be killed.
"""

import time
from collections.abc import Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor

from benchmarks.cores.core_servers import addresses_of, cluster_of, supervised
from benchmarks.cores.produce import CONNECTIONS, SMALL
from benchmarks.figures.figures import Statement, Summary
from benchmarks.harness.bench import Bench
from benchmarks.harness.cluster_servers import Cluster
from benchmarks.harness.plan import GIBIBYTE, Plan
from benchmarks.harness.replicated_topics import led_by, wait_for
from benchmarks.harness.results import Outcome
from benchmarks.load.frames import Load
from benchmarks.load.load import LoadResult, run_load_to
from benchmarks.load.replies import LoadFailed
from benchmarks.load.wire import LATEST, ask_for_topic, offsets_of
from processes.supervised_cluster import SupervisedCluster

NAME = "cores-stop"
ENDLESS_BYTES = 1024 * GIBIBYTE
UNDER_WAY_TIMEOUT_S = 60.0
LOOK_EVERY_S = 0.02


def measure_cores_stop(bench: Bench) -> Outcome:
    """Raises OdradekClusterFailed, LoadFailed, KafkaError, OSError, TimeoutError."""
    bench.close()
    seconds: list[float] = []
    for number in range(1, bench.plan.runs + 1):
        with (
            ThreadPoolExecutor(1) as threads,  # the load in it ends when the brokers do
            supervised(bench.directory / f"{NAME}-{number}", bench.options()) as supervisor,
        ):
            seconds.append(stopped_under_load(supervisor, bench.plan, threads))
            bench.say(f"{NAME} {number}/{bench.plan.runs}: stopped {seconds[-1]:.2f} s after SIGTERM")
    outcome = Outcome()
    outcome.add(Statement("two processes: stop under load", "s", Summary(tuple(seconds)), digits=2))
    return outcome


def stopped_under_load(supervisor: SupervisedCluster, plan: Plan, threads: Executor) -> float:
    """Seconds that the stop took. Raises LoadFailed unless the load lasted until then, OdradekClusterFailed,
    OSError."""
    cluster = cluster_of(supervisor)
    load = SMALL.load(plan, "stopped", ENDLESS_BYTES)
    with next(iter(cluster.members.values())).wire() as wire:
        ask_for_topic(wire, load.topic, CONNECTIONS)
    states = wait_for(cluster, load.topic, lambda state: state.is_full, CONNECTIONS)
    leaders = [state.leader for state in states]
    running = threads.submit(run_load_to, addresses_of(cluster, leaders), load)
    wait_until_produced(cluster, load, leaders, plan.cluster_slice_bytes, running)
    require_running(running)
    began = time.perf_counter()
    supervisor.stop()
    return time.perf_counter() - began


def wait_until_produced(
    cluster: Cluster, load: Load, leaders: Sequence[int], size_bytes: int, running: "Future[LoadResult]"
) -> None:
    """Returns when about so many bytes have been written. Raises TimeoutError, LoadFailed where the load has failed."""
    deadline = time.monotonic() + UNDER_WAY_TIMEOUT_S
    while written(cluster, load, leaders) < size_bytes:
        require_running(running)
        if time.monotonic() > deadline:
            raise TimeoutError(f"less than {size_bytes} bytes are produced after {UNDER_WAY_TIMEOUT_S} s")
        time.sleep(LOOK_EVERY_S)  # between two looks


def require_running(running: "Future[LoadResult]") -> None:
    """Raises LoadFailed when the load has ended, by itself or by an error."""
    if running.done():
        raise LoadFailed(f"the load was over before the stop: {running.result()}")


def written(cluster: Cluster, load: Load, leaders: Sequence[int]) -> int:
    """Bytes of the load's batches that the leaders have. Raises KafkaError, OSError."""
    records = 0
    for member in cluster.members.values():
        partitions = led_by(member.node_id, leaders)
        with member.wire() as wire:
            records += sum(offsets_of(wire, load.topic, LATEST, partitions))
    return records // load.records_per_batch * load.batch_bytes
