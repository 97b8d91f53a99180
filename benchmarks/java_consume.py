"""A Java consumer of records of 100 B, each run a JVM of its own, from both brokers, out of the page cache.

That is ConsumerPerformance, as soon as Odradek serves groups, without which it cannot run. Until then it is the same
consumer in Kafka's console tool, which takes a partition without a group and has a formatter that prints nothing; what
counts is what many records take more than a few, so that the start of the JVM is left out.
"""

from benchmarks.figures.figures import Bar, Summary
from benchmarks.harness.bench import Bench
from benchmarks.harness.contest import Run
from benchmarks.harness.java_tools import consume, consume_assigned
from benchmarks.harness.limits import verdict
from benchmarks.harness.readback import compare_log
from benchmarks.harness.results import Outcome
from benchmarks.harness.servers import Server
from benchmarks.host.machine import settle_pages
from benchmarks.host.work import Watch
from benchmarks.load.frames import Load
from benchmarks.load.java_sink import running_java_sink
from benchmarks.load.load import run_load
from benchmarks.load.wire import create_topic, delete_topic, served_keys
from benchmarks.produce import now_ms

JOIN_GROUP = 11
RECORD_BYTES = 108
"""Of a record with its lengths, offset and timestamp, when its value has 100 bytes."""
FEW_RECORDS = 1000
SINK_RUNS_MAX = 3
BAR = Bar("≥", 1.0)


def measure_java_consume(bench: Bench) -> Outcome:
    """Raises LoadFailed, LogDiffers, KafkaError, OSError."""
    ours, theirs = bench.pair()
    has_groups = serves_groups(ours)
    outcome = Outcome()
    runs = bench.contest.hold(
        "java-consume", lambda server: run_java_consume(bench, server, has_groups=has_groups), ours, theirs
    )
    tool = "ConsumerPerformance (Java)" if has_groups else "console consumer (Java), a partition without a group"
    outcome.add(runs.figure("records/s", f"{tool}, 100 B records", "records/s", BAR))
    outcome.add(runs.figure("s/GB", "server CPU for java-consume", "s/GB", digits=2))
    if not has_groups:
        outcome.notes.append(f"java-consume: ConsumerPerformance needs groups, which {ours} does not serve yet")
        fastest = max(run.values["records/s"] for run in (*runs.ours, *runs.theirs))
        outcome.notes.append(f"java-consume: {verdict('records/s', sink_speed(bench), fastest)}")
    outcome.notes += runs.notes
    outcome.is_disturbed = runs.is_disturbed
    return outcome


def serves_groups(server: Server) -> bool:
    with server.wire() as wire:
        return JOIN_GROUP in served_keys(wire)


def log_of(bench: Bench, topic: str) -> Load:
    return Load(topic, bench.plan.run_bytes, now_ms(), record_bytes=RECORD_BYTES)


def run_java_consume(bench: Bench, server: Server, *, has_groups: bool) -> Run:
    """One run of a topic of its own. Raises LoadFailed, LogDiffers, KafkaError, OSError."""
    load = log_of(bench, bench.topic("java-consume"))
    bootstrap = server.address
    with server.wire() as wire:
        create_topic(wire, load.topic)
        run_load(server.process.host, server.process.port, load)
        dirty = settle_pages()
        with Watch(server.process.pid) as watch:
            rate = consume(bootstrap, load.topic, load.record_count) if has_groups else rate_of(bootstrap, load)
        compare_log(wire, load)
        delete_topic(wire, load.topic)
    server.wait_gone(load.topic)
    cpu_s_per_gb = watch.work.server / (load.produced_bytes / 1e9)
    return Run(
        seconds=load.record_count / rate,
        speed=rate,
        values={"records/s": rate, "s/GB": cpu_s_per_gb},
        text=f"{rate:,.0f} records/s, {cpu_s_per_gb:.2f} CPU s/GB",
        other_cores=watch.work.other_cores,
        dirty_bytes=dirty,
    )


def rate_of(bootstrap: str, load: Load) -> float:
    """Records a second, without what a run of a few records takes. Raises LoadFailed."""
    start_s = consume_assigned(bootstrap, load.topic, FEW_RECORDS)
    seconds = consume_assigned(bootstrap, load.topic, load.record_count) - start_s
    if seconds <= 0:
        raise ValueError(f"{load.record_count} records are too few to be measured")
    return (load.record_count - FEW_RECORDS) / seconds


def sink_speed(bench: Bench) -> Summary:
    """Records a second of the tool from a sink."""
    load = log_of(bench, "sink")
    with running_java_sink(load) as port:
        runs = range(min(SINK_RUNS_MAX, bench.plan.runs))
        return Summary(tuple(rate_of(f"127.0.0.1:{port}", load) for _ in runs))
