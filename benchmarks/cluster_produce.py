"""Raw produce throughput of a cluster: three replicas, acks=all, and what it costs all of its processes.

12 partitions whose leaders are spread over three brokers, with a connection to each leader for each of its partitions:
four to every broker, five requests in flight on each. Before a run the page cache gets all memory, the topic is created
anew, all its replicas are in sync, and dirty pages are written out. After it all are still in sync, leaders are read
back, and Apache Kafka's DumpLogSegments finds the very batches on each of the three.
"""

from collections.abc import Sequence

from benchmarks.figures.figures import Bar
from benchmarks.harness.bench import Bench
from benchmarks.harness.cluster_servers import Cluster
from benchmarks.harness.contest import Run
from benchmarks.harness.limits import generator_speed, verdict
from benchmarks.harness.plan import GIGABYTE, MEGABYTE
from benchmarks.harness.readback import compare_partitions
from benchmarks.harness.replica_logs import compare_replicas
from benchmarks.harness.replicated_topics import DURABLE, led_by, replicated_topic, require_full
from benchmarks.harness.results import Outcome
from benchmarks.host.machine import cpu_seconds, settle_pages
from benchmarks.host.work import Watch
from benchmarks.load.frames import Load
from benchmarks.load.load import run_load_to
from benchmarks.produce import MICROSECONDS, now_ms

NAME = "cluster-produce"
TITLE = "produce, RF 3, acks=all, min.insync 2, 16 KiB batches, 12 partitions, 4 connections a broker"
PARTITIONS = 12
SPEED_BAR = Bar("≥", 1.5)
CPU_BAR = Bar("≤", 0.6)


def measure_cluster_produce(bench: Bench) -> Outcome:
    """Raises LoadFailed, LogDiffers, KafkaError, OSError, TimeoutError."""
    plan = bench.plan

    def run(cluster: Cluster) -> Run:
        bench.fill_page_cache()
        return run_cluster_produce(cluster, load_of(bench.topic("cluster"), plan.cluster_run_bytes))

    def slice_of(cluster: Cluster) -> Run:
        return run_cluster_produce(cluster, load_of(bench.topic("slice"), plan.cluster_slice_bytes), is_dumped=False)

    speed = generator_speed(bench, load_of("sink", plan.cluster_run_bytes), "MB/s")
    runs = bench.contest.hold(NAME, run, *bench.clusters(), slice_of=slice_of)
    outcome = Outcome(notes=[*runs.notes], is_disturbed=runs.is_disturbed)
    fastest = max(run.values["MB/s"] for run in (*runs.ours, *runs.theirs))
    outcome.notes.append(f"{NAME}: {verdict('MB/s', speed, fastest)}")
    outcome.add(
        runs.figure("MB/s", TITLE, "MB/s", SPEED_BAR),
        runs.figure("s/GB", f"server CPU for {NAME}, all processes", "s/GB", CPU_BAR, 1),
        runs.statement("store s/GB", f"of it etcd for {NAME}", "s/GB", digits=2),
    )
    return outcome


def load_of(topic: str, total_bytes: int) -> Load:
    return Load(topic, total_bytes, now_ms(), connections=PARTITIONS, partitions=PARTITIONS, acks=-1)


def run_cluster_produce(cluster: Cluster, load: Load, *, is_dumped: bool = True) -> Run:
    """One run into a topic of its own. Raises LoadFailed, LogDiffers, KafkaError, OSError, TimeoutError."""
    with replicated_topic(cluster, load.topic, load.partitions, DURABLE) as leaders:
        dirty = settle_pages()
        run = measured(cluster, load, leaders, dirty)
        require_full(cluster, load.topic)
        compare_leaders(cluster, load, leaders)
        if is_dumped:
            compare_replicas([member.data_dir for member in cluster.members.values()], load)
    return run


def measured(cluster: Cluster, load: Load, leaders: Sequence[int], dirty_bytes: int) -> Run:
    """Runs the load, and looks at the machine before and after it. Raises LoadFailed."""
    addresses = [cluster.members[leader].address for leader in leaders]
    store_before = sum(map(cpu_seconds, cluster.store_pids))
    with Watch(*cluster.pids) as watch:
        result = run_load_to(addresses, load)
    store_s = sum(map(cpu_seconds, cluster.store_pids)) - store_before
    megabytes_per_s = load.produced_bytes / MEGABYTE / result.seconds
    gigabytes = load.produced_bytes / GIGABYTE
    values = {
        "MB/s": megabytes_per_s,
        "s/GB": watch.work.server / gigabytes,
        "store s/GB": store_s / gigabytes,
        "µs/request": MICROSECONDS * watch.work.server / load.batch_count,
    }
    return Run(
        seconds=result.seconds,
        speed=megabytes_per_s,
        values=values,
        text=(
            f"{megabytes_per_s:.0f} MB/s, {load.batch_count / result.seconds:,.0f} requests/s, "
            f"{values['s/GB']:.1f} CPU s/GB ({values['store s/GB']:.2f} the metadata's), "
            f"generator {result.cpu_seconds / result.seconds:.0%} busy"
        ),
        other_cores=watch.work.other_cores,
        dirty_bytes=dirty_bytes,
    )


def compare_leaders(cluster: Cluster, load: Load, leaders: Sequence[int]) -> None:
    """Reads all partitions back from their leaders. Raises LogDiffers, KafkaError, OSError."""
    for member in cluster.members.values():
        with member.wire() as wire:
            compare_partitions(wire, load, led_by(member.node_id, leaders))
