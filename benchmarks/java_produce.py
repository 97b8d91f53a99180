"""ProducerPerformance of Apache Kafka's own tools, each run a JVM of its own, to both brokers.

A run sends 1 GiB of records of one size, acks=all, as fast as the client can, into a topic of its own; what counts is
the rate that the tool prints. Afterwards the log must hold as many records as were sent, in batches whose checksums are
right.
"""

from collections.abc import Sequence

from benchmarks.figures.figures import Bar, Summary
from benchmarks.harness.bench import Bench
from benchmarks.harness.contest import Run
from benchmarks.harness.java_tools import produce
from benchmarks.harness.limits import verdict
from benchmarks.harness.readback import LogDiffers, batches_in
from benchmarks.harness.results import Outcome
from benchmarks.harness.servers import Server
from benchmarks.host.machine import settle_pages
from benchmarks.host.work import Watch, Work
from benchmarks.load.java_sink import running_java_sink
from benchmarks.load.wire import LATEST, Wire, create_topic, delete_topic, offsets_of

BAR = Bar("≥", 1.2)
SINK_RUNS_MAX = 3


def measure_java_produce(bench: Bench, record_bytes: int) -> Outcome:
    """Raises LoadFailed, LogDiffers, KafkaError, OSError."""
    name = f"java-produce-{record_bytes}"
    outcome = Outcome()
    runs = bench.contest.hold(name, lambda server: run_java_produce(bench, server, record_bytes), *bench.pair())
    title = f"ProducerPerformance (Java), {record_bytes} B records, acks=all"
    outcome.add(runs.figure("records/s", title, "records/s", BAR))
    outcome.add(runs.figure("s/GB", f"server CPU for {name}", "s/GB", digits=1))
    fastest = max(run.values["records/s"] for run in (*runs.ours, *runs.theirs))
    outcome.notes += [*runs.notes, f"{name}: {verdict('records/s', sink_speed(bench, record_bytes), fastest)}"]
    outcome.is_disturbed = runs.is_disturbed
    return outcome


def sink_speed(bench: Bench, record_bytes: int) -> Summary:
    """Records a second of the tool against a sink."""

    def speed() -> float:
        with running_java_sink() as port:
            return produce(f"127.0.0.1:{port}", "sink", bench.plan.run_bytes // record_bytes, record_bytes)

    return Summary(tuple(speed() for _ in range(min(SINK_RUNS_MAX, bench.plan.runs))))


def run_java_produce(bench: Bench, server: Server, record_bytes: int) -> Run:
    """One run into a topic of its own, read back. Raises LoadFailed, LogDiffers, KafkaError, OSError."""
    topic, records = bench.topic("java"), bench.plan.run_bytes // record_bytes
    with server.wire() as wire:
        create_topic(wire, topic)
        dirty = settle_pages()
        with Watch(server.process.pid) as watch:
            rate = produce(server.address, topic, records, record_bytes)
        check_count(wire, topic, records)
        delete_topic(wire, topic)
    server.wait_gone(topic)
    return run_of(rate, records, record_bytes, watch.work, dirty)


def run_of(rate: float, records: int, record_bytes: int, work: Work, dirty_bytes: int) -> Run:
    """What came of so many records at this rate, as the tool printed it."""
    cpu_s_per_gb = work.server / (records * record_bytes / 1e9)
    return Run(
        seconds=records / rate,
        speed=rate,
        values={"records/s": rate, "s/GB": cpu_s_per_gb},
        text=f"{rate:,.0f} records/s, {cpu_s_per_gb:.1f} CPU s/GB",
        other_cores=work.other_cores,
        dirty_bytes=dirty_bytes,
    )


def check_count(wire: Wire, topic: str, records: int) -> None:
    """Raises LogDiffers unless partition 0 holds so many records, without a gap and undamaged."""
    held = count_held(wire, topic, [0])
    if held != records:
        raise LogDiffers(f"{topic} holds {held} records, sent were {records}")


def count_held(wire: Wire, topic: str, partitions: Sequence[int]) -> int:
    """How many records a broker has in these partitions, without a gap and undamaged. Raises LogDiffers, KafkaError."""
    held = 0
    for partition, end in zip(partitions, offsets_of(wire, topic, LATEST, partitions), strict=True):
        found = sum(header.record_count for header, _batch in batches_in(wire, topic, partition, end))
        if found != end:
            raise LogDiffers(f"{topic}-{partition} holds {found} records up to offset {end}")
        held += found
    return held
