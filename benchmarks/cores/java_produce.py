"""ProducerPerformance of Apache Kafka's own tools to all cores: a topic of 12 partitions, acks=all.

As in `java_produce.py`, where a topic has one partition: each run is a JVM of its own and sends 1 GiB of records of
one size as fast as the client can; what counts is the rate that the tool prints. Afterwards the partitions must hold as
many records as were sent, in batches whose checksums are right.
"""

from benchmarks.cores.core_servers import core_pair
from benchmarks.figures.figures import Bar
from benchmarks.harness.bench import Bench
from benchmarks.harness.cluster_servers import Cluster
from benchmarks.harness.contest import Run
from benchmarks.harness.java_tools import produce
from benchmarks.harness.limits import verdict
from benchmarks.harness.readback import LogDiffers
from benchmarks.harness.replicated_topics import led_by, replicated_topic
from benchmarks.harness.results import Outcome
from benchmarks.host.machine import settle_pages
from benchmarks.host.work import Watch
from benchmarks.java_produce import count_held, run_of, sink_speed

PARTITIONS = 12
BAR = Bar("≥", 1.1)


def measure_cores_java_produce(bench: Bench, record_bytes: int) -> Outcome:
    """Raises LoadFailed, LogDiffers, KafkaError, OSError, TimeoutError."""
    name = f"cores-java-produce-{record_bytes}"

    def slice_of(cluster: Cluster) -> Run:
        return run_cores_java_produce(bench, cluster, record_bytes)

    def run(cluster: Cluster) -> Run:
        bench.fill_page_cache()
        return slice_of(cluster)

    with core_pair(bench, name) as pair:
        runs = bench.contest.hold(name, run, *pair, slice_of=slice_of)
    title = f"two processes: ProducerPerformance (Java), {PARTITIONS} partitions, {record_bytes} B records, acks=all"
    outcome = Outcome(notes=[*runs.notes], is_disturbed=runs.is_disturbed)
    outcome.add(
        runs.figure("records/s", title, "records/s", BAR),
        runs.figure("s/GB", "– server CPU, supervisor included", "s/GB", digits=1),
    )
    fastest = max(run.values["records/s"] for run in runs.all)
    outcome.notes.append(f"{name}, one partition: {verdict('records/s', sink_speed(bench, record_bytes), fastest)}")
    return outcome


def run_cores_java_produce(bench: Bench, cluster: Cluster, record_bytes: int) -> Run:
    """One run into a topic of its own, read back. Raises LoadFailed, LogDiffers, KafkaError, OSError, TimeoutError."""
    topic, records = bench.topic("java"), bench.plan.run_bytes // record_bytes
    with replicated_topic(cluster, topic, PARTITIONS, replicas=1) as leaders:
        dirty = settle_pages()
        with Watch(*cluster.pids) as watch:
            rate = produce(cluster.bootstrap, topic, records, record_bytes)
        held = sum(held_by(cluster, topic, node_id, led_by(node_id, leaders)) for node_id in cluster.members)
        if held != records:
            raise LogDiffers(f"{topic} holds {held} records, sent were {records}")
    return run_of(rate, records, record_bytes, watch.work, dirty)


def held_by(cluster: Cluster, topic: str, node_id: int, partitions: list[int]) -> int:
    """How many records a broker has in these partitions, without a gap and undamaged. Raises LogDiffers, KafkaError."""
    with cluster.members[node_id].wire() as wire:
        return count_held(wire, topic, partitions)
