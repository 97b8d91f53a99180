"""How long a record takes to a cluster at a steady rate: three replicas, acks=all, by librdkafka with no linger.

2,000 records a second of 1 KiB, to 12 partitions in turn, by confluent-kafka (`paced_client.py`); each counts from the
moment at which it was due. The topic has the records and nothing else afterwards, and all replicas are in sync. How
late the client itself is with taking records is a note beside, for it has no sink that speaks the protocol.
"""

from array import array

from benchmarks.cluster_produce import PARTITIONS
from benchmarks.figures.figures import Bar
from benchmarks.harness.bench import Bench
from benchmarks.harness.cluster_servers import Cluster
from benchmarks.harness.contest import Run
from benchmarks.harness.readback import LogDiffers
from benchmarks.harness.replicated_topics import DURABLE, led_by, replicated_topic, require_full
from benchmarks.harness.results import Outcome
from benchmarks.host.machine import settle_pages
from benchmarks.host.work import Watch
from benchmarks.latency import RECORD_BYTES, SLICE_S, latency_values, text_of
from benchmarks.load.paced_client import ClientPace, run_client
from benchmarks.load.wire import LATEST, offsets_of

NAME = "cluster-latency"
RATE_PER_S = 2000
BAR = Bar("≤", 0.7)
SHARES = ("p50", "p99", "p99.9")


def measure_cluster_latency(bench: Bench) -> Outcome:
    """Raises LoadFailed, LogDiffers, KafkaError, OSError, TimeoutError."""
    plan = bench.plan
    runs = bench.contest.hold(
        NAME,
        lambda cluster: run_paced_client(bench.topic(NAME), cluster, plan.discarded_s, plan.measured_s),
        *bench.clusters(),
        slice_of=lambda cluster: run_paced_client(bench.topic(NAME), cluster, 0.0, min(SLICE_S, plan.measured_s)),
    )
    outcome = Outcome(notes=[*runs.notes], is_disturbed=runs.is_disturbed)
    for share in SHARES:
        bar = BAR if share == "p99" else None
        title = f"produce at {RATE_PER_S:,}/s of 1 KiB, RF 3, acks=all, librdkafka, {share}"
        outcome.add(runs.figure(share, title, "ms", bar, 3))
    outcome.add(runs.figure("cores", f"server CPU for {NAME}, all processes", "cores", digits=2))
    late_ms = max(run.values["late p99"] for run in (*runs.ours, *runs.theirs))
    outcome.notes.append(f"{NAME}: the client took records at most {late_ms:.3f} ms late in 99 % of each run")
    return outcome


def run_paced_client(topic: str, cluster: Cluster, discarded_s: float, measured_s: float) -> Run:
    """One run into a topic of its own. Raises LoadFailed, LogDiffers, KafkaError, OSError, TimeoutError."""
    count = round((discarded_s + measured_s) * RATE_PER_S)
    with replicated_topic(cluster, topic, PARTITIONS, DURABLE) as leaders:
        dirty = settle_pages()
        with Watch(*cluster.pids) as watch:
            paced = run_client(ClientPace(cluster.bootstrap, topic, RATE_PER_S, count, RECORD_BYTES, PARTITIONS))
        require_full(cluster, topic)
        require_count(cluster, topic, leaders, count + PARTITIONS)
    discarded = round(discarded_s * RATE_PER_S)
    values = latency_values(paced.latencies_ns[discarded:]) | {
        "cores": watch.work.server / watch.work.clock,
        "late p99": _late(paced.lateness_ns[discarded:]),
    }
    shown = {name: values[name] for name in (*SHARES, "max")}
    return Run(
        seconds=discarded_s + measured_s,
        speed=values["p50"],
        values=values,
        text=f"{text_of(shown)}, servers {values['cores']:.2f} cores, client late by {values['late p99']:.3f} ms (p99)",
        other_cores=watch.work.other_cores,
        dirty_bytes=dirty,
    )


def _late(lateness_ns: "array[int]") -> float:
    return latency_values(lateness_ns)["p99"]


def require_count(cluster: Cluster, topic: str, leaders: list[int], count: int) -> None:
    """Raises LogDiffers unless the partitions hold so many records together. Raises KafkaError, OSError."""
    held = 0
    for member in cluster.members.values():
        with member.wire() as wire:
            held += sum(offsets_of(wire, topic, LATEST, led_by(member.node_id, leaders)))
    if held != count:
        raise LogDiffers(f"{cluster}: {topic} holds {held} records, sent were {count}")
