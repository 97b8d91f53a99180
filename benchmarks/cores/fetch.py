"""Raw fetch throughput of all cores: eight connections, each reads a partition of its own from the page cache.

Each run fills a topic with 1 GiB, writes it out, reads it 64 KiB and then 1 MiB at a time, several times each, and
compares what it holds in a pass of its own. One process of Python reads all eight, one whole answer after the other.
"""

from benchmarks.cluster_produce import compare_leaders
from benchmarks.cores.core_servers import addresses_of, core_pair
from benchmarks.cores.produce import CONNECTIONS, SMALL
from benchmarks.figures.figures import Bar, Summary
from benchmarks.harness.bench import Bench
from benchmarks.harness.cluster_servers import Cluster
from benchmarks.harness.contest import Run
from benchmarks.harness.limits import verdict
from benchmarks.harness.plan import GIGABYTE, MEBIBYTE, MEGABYTE, Plan
from benchmarks.harness.replicated_topics import replicated_topic
from benchmarks.harness.results import Outcome
from benchmarks.host.machine import settle_pages
from benchmarks.host.work import Watch
from benchmarks.load.fetch_load import Reading, run_reading_from, running_fetch_sink
from benchmarks.load.frames import Load
from benchmarks.load.load import run_load_to

NAME = "cores-fetch"
JUDGED = "64 KiB"
SIZES = {JUDGED: 64 * 1024, "1 MiB": MEBIBYTE}
BARS = {JUDGED: Bar("≥", 1.0)}


def measure_cores_fetch(bench: Bench) -> Outcome:
    """Raises LoadFailed, LogDiffers, KafkaError, OSError, TimeoutError."""
    plan = bench.plan
    with core_pair(bench, NAME) as pair:
        runs = bench.contest.hold(NAME, lambda cluster: run_cores_fetch(bench, cluster), *pair)
    outcome = Outcome(notes=[*runs.notes], is_disturbed=runs.is_disturbed)
    for size in SIZES:
        title = f"two processes: fetch, {size} a time, hot, {CONNECTIONS} connections"
        outcome.add(
            runs.figure(size, title, "MB/s", BARS.get(size)),
            runs.figure(f"{size} s/GB", "– server CPU, supervisor included", "s/GB", digits=2),
        )
        fastest = max(run.values[size] for run in runs.all)
        outcome.notes.append(f"{NAME}, {size}: {verdict('MB/s', sink_speed(plan, size), fastest)}")
    return outcome


def sink_speed(plan: Plan, size: str) -> Summary:
    """What the generator reaches against a sink, in MB/s."""
    reading = Reading.of(log_of(plan, "sink"), SIZES[size], plan.fetch_passes)

    def speed() -> float:
        with running_fetch_sink(reading) as port:
            return reading.read_bytes / MEGABYTE / run_reading_from([f"127.0.0.1:{port}"], reading).seconds

    return Summary(tuple(speed() for _ in range(plan.runs)))


def log_of(plan: Plan, topic: str) -> Load:
    return SMALL.load(plan, topic, plan.run_bytes)


def run_cores_fetch(bench: Bench, cluster: Cluster) -> Run:
    """One run. Raises LoadFailed, LogDiffers, KafkaError, OSError, TimeoutError."""
    load = log_of(bench.plan, bench.topic("fetch"))
    values: dict[str, float] = {}
    seconds = 0.0
    pids = cluster.pids
    with replicated_topic(cluster, load.topic, load.partitions, replicas=1) as leaders:
        addresses = addresses_of(cluster, leaders)
        run_load_to(addresses, load)
        dirty = settle_pages()
        with Watch(*pids) as whole:
            for size, max_bytes in SIZES.items():
                reading = Reading.of(load, max_bytes, bench.plan.fetch_passes)
                with Watch(*pids) as watch:
                    result = run_reading_from(addresses, reading)
                seconds += result.seconds
                values[size] = reading.read_bytes / MEGABYTE / result.seconds
                values[f"{size} s/GB"] = watch.work.server / (reading.read_bytes / GIGABYTE)
        compare_leaders(cluster, load, leaders)
    text = ", ".join(f"{size} {values[size]:,.0f} MB/s at {values[f'{size} s/GB']:.2f} CPU s/GB" for size in SIZES)
    return Run(seconds, values[JUDGED], values, text, whole.work.other_cores, dirty)
