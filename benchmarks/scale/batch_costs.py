"""What producing costs a cluster of three, by the size of batches and by how many are in flight: for docs/scale.md."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from benchmarks.cluster_produce import load_of, run_cluster_produce
from benchmarks.figures.table import markdown
from benchmarks.harness.bench import Bench
from benchmarks.harness.cluster_servers import Cluster
from benchmarks.harness.contest import Run

KIBIBYTE = 1024


@dataclass(frozen=True, slots=True)
class Shape:
    """How a load is sent: to each of 12 partitions on a connection of its own."""

    batch_bytes: int
    in_flight: int
    """Requests on each connection."""

    def __str__(self) -> str:
        return f"{self.batch_bytes // KIBIBYTE:,} KiB, {self.in_flight} in flight on each of 12 connections"


SHAPES = (Shape(16 * KIBIBYTE, 1), Shape(16 * KIBIBYTE, 5), Shape(64 * KIBIBYTE, 5), Shape(1024 * KIBIBYTE, 2))


def batch_costs(bench: Bench, cluster: Cluster) -> dict[Shape, list[Run]]:
    """Raises LoadFailed, LogDiffers, KafkaError, OSError, TimeoutError."""
    plan = bench.plan

    def run(shape: Shape, total_bytes: int) -> Run:
        load = load_of(bench.topic("batches"), total_bytes)
        load = replace(load, batch_bytes=shape.batch_bytes, in_flight=shape.in_flight)
        return run_cluster_produce(cluster, load, is_dumped=False)

    costs: dict[Shape, list[Run]] = {}
    for shape in SHAPES:
        run(shape, plan.cluster_slice_bytes)  # warms up
        costs[shape] = []
        for _ in range(plan.scale_runs):
            bench.fill_page_cache()
            costs[shape].append(run(shape, plan.scale_run_bytes))
            bench.say(f"scale, batches of {shape}: {costs[shape][-1]}")
    return costs


def batch_table(costs: dict[Shape, list[Run]]) -> str:
    rows = [
        [
            str(shape),
            f"{_median(runs, 'MB/s'):.0f}",
            f"{_median(runs, 's/GB'):.1f}",
            f"{_median(runs, 'µs/request'):,.0f}",
        ]
        for shape, runs in costs.items()
    ]
    head = ["batches", "MB/s", "CPU of brokers and etcd, s/GB", "µs a request"]
    return f"What producing to three replicas with acks=all costs:\n\n{markdown(head, rows)}"


def _median(runs: Sequence[Run], quantity: str) -> float:
    return median(run.values[quantity] for run in runs)
