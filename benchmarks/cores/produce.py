"""Raw produce throughput of all cores: eight connections to eight partitions, and what it costs all processes.

Odradek in two processes, Apache Kafka, and Odradek in one process take turns. Each connection goes to the leader of
its partition. The supervisor's CPU is part of Odradek's. Otherwise a run is one of `produce.py`: new topics, dirty
pages written out before, the log read back and compared batch by batch, and a second row after 4 GiB without sync.
Before each run the page cache is given all memory, as for clusters: a host may take free memory back at once, and who
writes gigabytes would be measured by how fast it is given again.
"""

from contextlib import ExitStack

from benchmarks.cluster_produce import compare_leaders, measured
from benchmarks.cores.core_servers import addresses_of, core_pair, running_alone
from benchmarks.figures.figures import Bar, Statement, Summary
from benchmarks.harness.bench import Bench
from benchmarks.harness.cluster_servers import Cluster
from benchmarks.harness.contest import Run, Runs, summary
from benchmarks.harness.limits import generator_speed, verdict
from benchmarks.harness.plan import GIBIBYTE, MEBIBYTE
from benchmarks.harness.replicated_topics import replicated_topic
from benchmarks.harness.results import Outcome
from benchmarks.host.machine import settle_pages
from benchmarks.load.frames import Load
from benchmarks.load.load import run_load_to
from benchmarks.produce import Shape

CONNECTIONS = 8


SMALL = Shape("cores-produce", "16 KiB batches", connections=CONNECTIONS, dirty_bar=Bar("≥", 1.3))
LARGE = Shape(
    "cores-produce-1m", "1 MB batches", batch_bytes=MEBIBYTE, connections=CONNECTIONS, dirty_bar=Bar("≥", 1.0)
)
SHAPES = (SMALL, LARGE)
CPU_BAR = Bar("≤", 0.95)
ALONE_CPU_BAR = Bar("≤", 1.05)


def measure_cores_produce(bench: Bench, shape: Shape, *, is_dirty: bool) -> Outcome:
    """The rows of one shape, on clean pages or after bytes without sync. Raises LoadFailed, LogDiffers, KafkaError,
    OSError, TimeoutError."""
    plan = bench.plan
    name = f"{shape.name}{'-dirty' * is_dirty}"
    speed = generator_speed(bench, shape.load(plan, "sink", plan.run_bytes), "MB/s")

    def slice_of(cluster: Cluster) -> Run:
        return run_cores_produce(cluster, shape.load(plan, bench.topic("slice"), plan.run_bytes))

    def run(cluster: Cluster) -> Run:
        bench.fill_page_cache()
        dirt = shape.load(plan, bench.topic("dirt"), plan.dirty_bytes) if is_dirty else None
        return run_cores_produce(cluster, shape.load(plan, bench.topic("produce"), plan.run_bytes), dirt)

    with (
        core_pair(bench, name) as (ours, theirs),
        running_alone(bench.directory / name / "alone", bench.options()) as alone,
    ):
        runs = bench.contest.hold(name, run, ours, theirs, slice_of=slice_of, beside=alone)
    outcome = Outcome(notes=[*runs.notes], is_disturbed=runs.is_disturbed)
    fastest = max(each.values["MB/s"] for each in runs.all)
    outcome.notes.append(f"{name}: {verdict('MB/s', speed, fastest)}")
    after = f", after {plan.dirty_bytes / GIBIBYTE:.2g} GiB without sync" * is_dirty
    add_rows(
        outcome, runs, f"two processes: produce, {shape.title}, 8 connections to 8 partitions{after}", shape, is_dirty
    )
    return outcome


def add_rows(outcome: Outcome, runs: Runs, title: str, shape: Shape, is_dirty: bool) -> None:
    """Speed and CPU, beside Apache Kafka's and by those of one process, run by run; judged after bytes without sync."""
    outcome.add(
        runs.figure("MB/s", title, "MB/s", shape.dirty_bar if is_dirty else shape.bar),
        runs.figure("s/GB", "– server CPU, supervisor included", "s/GB", CPU_BAR if is_dirty else None, 2),
        Statement("– of it the supervisor", "s/GB", summary(runs.ours, "store s/GB"), digits=3),
        Statement("– speed by that of one process", "", by_one_process(runs, "MB/s"), digits=2),
        Statement(
            "– CPU by that of one process",
            "",
            by_one_process(runs, "s/GB"),
            None,
            ALONE_CPU_BAR if is_dirty else None,
            2,
        ),
    )


def by_one_process(runs: Runs, quantity: str) -> Summary:
    """Each run of the processes by that of the one process in the same round."""
    return Summary(
        tuple(
            ours.values[quantity] / alone.values[quantity] for ours, alone in zip(runs.ours, runs.beside, strict=True)
        )
    )


def run_cores_produce(cluster: Cluster, load: Load, dirt: Load | None = None) -> Run:
    """One run into topics of its own, read back. Raises LoadFailed, LogDiffers, KafkaError, OSError, TimeoutError."""
    with ExitStack() as stack:
        led = {
            each.topic: stack.enter_context(replicated_topic(cluster, each.topic, each.partitions, replicas=1))
            for each in ([load] if dirt is None else [dirt, load])
        }
        dirty_bytes = settle_pages()
        if dirt is not None:
            run_load_to(addresses_of(cluster, led[dirt.topic]), dirt)
        run = measured(cluster, load, led[load.topic], dirty_bytes)
        compare_leaders(cluster, load, led[load.topic])
    return run
