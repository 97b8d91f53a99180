"""Raw fetch throughput, and what it costs the server: a log in the page cache, 64 KiB, 1 MiB or 8 MiB at a time.

Each run fills a topic of its own with 1 GiB, writes it out, reads it with all three sizes one after the other, several
times each, and compares what it holds in a pass of its own. The same is what warms Apache Kafka's fetch path up: it is
steady when its speed at 1 MiB is.
"""

from benchmarks.figures.figures import Bar, Summary
from benchmarks.harness.bench import Bench
from benchmarks.harness.contest import Run
from benchmarks.harness.limits import verdict
from benchmarks.harness.plan import GIGABYTE, MEBIBYTE, MEGABYTE, Plan
from benchmarks.harness.readback import compare_log
from benchmarks.harness.results import Outcome
from benchmarks.harness.servers import Server
from benchmarks.host.machine import settle_pages
from benchmarks.host.work import Watch
from benchmarks.load.fetch_load import Reading, run_reading, running_fetch_sink
from benchmarks.load.frames import Load
from benchmarks.load.load import run_load
from benchmarks.load.wire import Wire, create_topic, delete_topic
from benchmarks.produce import now_ms

SIZES = {"64 KiB": 64 * 1024, "1 MiB": MEBIBYTE, "8 MiB": 8 * MEBIBYTE}
BARS = {"64 KiB": Bar("≥", 1.0), "1 MiB": Bar("≥", 1.6), "8 MiB": Bar("≥", 1.4)}
CPU_BAR = Bar("≤", 0.9)
MIDDLE = "1 MiB"


def measure_fetch(bench: Bench) -> Outcome:
    """Raises LoadFailed, LogDiffers, KafkaError, OSError."""
    outcome = Outcome()
    runs = bench.contest.hold("fetch", lambda server: run_fetch(bench, server), *bench.pair())
    for size in SIZES:
        outcome.add(runs.figure(size, f"fetch, {size} a time, hot", "MB/s", BARS[size]))
        fastest = max(run.values[size] for run in (*runs.ours, *runs.theirs))
        outcome.notes.append(f"fetch, {size}: {verdict('MB/s', sink_speed(bench, size), fastest)}")
    outcome.add(runs.figure("s/GB", f"server CPU for fetch, {MIDDLE}", "s/GB", CPU_BAR, 2))
    outcome.notes += runs.notes
    outcome.is_disturbed = runs.is_disturbed
    return outcome


def log_of(plan: Plan, topic: str) -> Load:
    return Load(topic, plan.run_bytes, now_ms(), record_bytes=plan.record_bytes)


def sink_speed(bench: Bench, size: str) -> Summary:
    """What the generator reaches against a sink, in MB/s."""
    reading = Reading.of(log_of(bench.plan, "sink"), SIZES[size], bench.plan.fetch_passes)

    def speed() -> float:
        with running_fetch_sink(reading) as port:
            return reading.read_bytes / MEGABYTE / run_reading("127.0.0.1", port, reading).seconds

    return Summary(tuple(speed() for _ in range(bench.plan.runs)))


def run_fetch(bench: Bench, server: Server) -> Run:
    """One run. Raises LoadFailed, LogDiffers, KafkaError, OSError."""
    load = log_of(bench.plan, bench.topic("fetch"))
    values: dict[str, float] = {}
    host, port = server.process.host, server.process.port
    seconds = 0.0
    with Wire(host, port) as wire:
        create_topic(wire, load.topic)
        run_load(host, port, load)
        dirty = settle_pages()
        with Watch(server.process.pid) as whole:
            for size, max_bytes in SIZES.items():
                reading = Reading.of(load, max_bytes, bench.plan.fetch_passes)
                with Watch(server.process.pid) as watch:
                    result = run_reading(host, port, reading)
                seconds += result.seconds
                values[size] = reading.read_bytes / MEGABYTE / result.seconds
                if size == MIDDLE:
                    values["s/GB"] = watch.work.server / (reading.read_bytes / GIGABYTE)
        compare_log(wire, load)
        delete_topic(wire, load.topic)
    server.wait_gone(load.topic)
    speeds = ", ".join(f"{size} {values[size]:,.0f}" for size in SIZES)
    text = f"{speeds} MB/s, {values['s/GB']:.2f} CPU s/GB at {MIDDLE}"
    return Run(seconds, values[MIDDLE], values, text, whole.work.other_cores, dirty)
