"""Raw produce throughput, and what it costs the server: a fixed number of bytes, in batches of one size.

Before each run the topic is created anew and dirty pages are written out; after it the log is read back, compared batch
by batch, counted, and deleted. For the second row of a figure, "after 4 GiB without sync", so many bytes are produced
to another topic of the same server directly before.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from benchmarks.figures.figures import Bar
from benchmarks.harness.bench import Bench
from benchmarks.harness.contest import Run
from benchmarks.harness.limits import generator_limit
from benchmarks.harness.plan import GIBIBYTE, GIGABYTE, MEBIBYTE, MEGABYTE, Plan
from benchmarks.harness.readback import LogDiffers, compare_log
from benchmarks.harness.results import Outcome
from benchmarks.harness.servers import Server
from benchmarks.host.machine import settle_pages
from benchmarks.host.work import OTHER_CORES_MAX, Watch
from benchmarks.load.frames import Load
from benchmarks.load.load import run_load
from benchmarks.load.wire import Wire, create_topic, delete_topic, new_producer

__all__ = ["OTHER_CORES_MAX", "SHAPES", "LogDiffers", "Shape", "measure_produce", "measured", "run_produce"]

KIBIBYTE = 1024
MICROSECONDS = 1_000_000


@dataclass(frozen=True, slots=True)
class Shape:
    """What a figure's load looks like, and what it has to reach: on clean pages, and after bytes without sync."""

    name: str
    title: str
    batch_bytes: int = 16 * KIBIBYTE
    connections: int = 1
    is_idempotent: bool = False
    bar: Bar | None = None
    dirty_bar: Bar | None = None
    cpu_bar: Bar | None = None

    def load(self, plan: Plan, topic: str, total_bytes: int) -> Load:
        return Load(
            topic,
            total_bytes,
            now_ms(),
            batch_bytes=self.batch_bytes,
            record_bytes=plan.record_bytes,
            connections=self.connections,
            partitions=self.connections,
        )

    def sink_load(self, plan: Plan) -> Load:
        """What costs the generator as much as a run, for a sink that gives no producer ids."""
        load = self.load(plan, "sink", plan.run_bytes)
        return replace(load, producer_id=0, producer_epoch=0) if self.is_idempotent else load


SMALL = Shape(
    "produce-16k",
    "produce, 16 KiB batches, acks=1, 5 in flight",
    bar=Bar("≥", 3.0),
    dirty_bar=Bar("≥", 1.5),
    cpu_bar=Bar("≤", 0.35),
)
IDEMPOTENT = replace(
    SMALL,
    name="produce-idempotent",
    title="produce, 16 KiB batches, by an idempotent producer",
    is_idempotent=True,
    cpu_bar=None,
)
LARGE = Shape(
    "produce-1m",
    "produce, 1 MB batches, acks=1, 5 in flight",
    batch_bytes=MEBIBYTE,
    bar=Bar("≥", 1.3),
    dirty_bar=Bar("≥", 1.0),
    cpu_bar=Bar("≤", 0.8),
)
MANY = Shape(
    "produce-8",
    "produce, 16 KiB batches, 8 connections to 8 partitions",
    connections=8,
    bar=Bar("≥", 2.0),
)
SHAPES = (SMALL, IDEMPOTENT, LARGE, MANY)


def measure_produce(bench: Bench, shape: Shape, *, is_dirty: bool) -> Outcome:
    """The rows of one shape, on clean pages or after bytes without sync. Raises LoadFailed, LogDiffers, KafkaError."""
    plan = bench.plan
    outcome = Outcome()
    limit = generator_limit(bench, shape.sink_load(plan))

    def run(server: Server) -> Run:
        return run_produce(server, shape.load(plan, bench.topic("produce"), plan.run_bytes), shape)

    def run_after_dirt(server: Server) -> Run:
        dirt = shape.load(plan, bench.topic("dirt"), plan.dirty_bytes)
        return run_produce(server, shape.load(plan, bench.topic("produce"), plan.run_bytes), shape, dirt)

    if is_dirty:
        title = f"{shape.title}, after {plan.dirty_bytes / GIBIBYTE:.2g} GiB without sync"
        runs = bench.contest.hold(f"{shape.name}-dirty", run_after_dirt, *bench.pair(), slice_of=run)
        outcome.add(runs.figure("MB/s", title, "MB/s", shape.dirty_bar))
        outcome.add(runs.figure("s/GB", f"server CPU for {shape.name}-dirty", "s/GB", digits=1))
    else:
        runs = bench.contest.hold(shape.name, run, *bench.pair())
        outcome.add(runs.figure("MB/s", shape.title, "MB/s", shape.bar))
        outcome.add(runs.figure("s/GB", f"server CPU for {shape.name}", "s/GB", shape.cpu_bar, 1))
        outcome.add(limit.fraction(f"{shape.name}, reached of a bare recv-and-write loop", runs.ours))
    outcome.notes += [*runs.notes, limit.note(shape.name, runs)]
    outcome.is_disturbed = runs.is_disturbed
    return outcome


def run_produce(
    server: Server,
    load: Load,
    shape: Shape = SMALL,
    dirt: Load | None = None,
    configs: Mapping[str, str] | None = None,
) -> Run:
    """One run into topics of its own, read back. Raises LoadFailed, LogDiffers, KafkaError, OSError."""
    loads = [load] if dirt is None else [dirt, load]
    with server.wire() as wire:
        for each in loads:
            create_topic(wire, each.topic, each.partitions, configs)
        dirty = settle_pages()
        if shape.is_idempotent:
            loads = [as_producer(wire, each) for each in loads]
        *before, load = loads
        for each in before:
            run_load(server.process.host, server.process.port, each)
        run = measured(server, load, dirty)
        compare_log(wire, load)
        for each in loads:
            delete_topic(wire, each.topic)
    for each in loads:
        server.wait_gone(each.topic)
    return run


def as_producer(wire: Wire, load: Load) -> Load:
    """The same load by an idempotent producer that nobody was before. Raises KafkaError."""
    producer_id, producer_epoch = new_producer(wire)
    return replace(load, producer_id=producer_id, producer_epoch=producer_epoch)


def measured(server: Server, load: Load, dirty_bytes: int) -> Run:
    """Runs the load, and looks at the machine before and after it. Raises LoadFailed."""
    with Watch(server.process.pid) as watch:
        result = run_load(server.process.host, server.process.port, load)
    megabytes_per_s = load.produced_bytes / MEGABYTE / result.seconds
    cpu_s_per_gb = watch.work.server / (load.produced_bytes / GIGABYTE)
    return Run(
        seconds=result.seconds,
        speed=megabytes_per_s,
        values={
            "MB/s": megabytes_per_s,
            "s/GB": cpu_s_per_gb,
            "µs/request": MICROSECONDS * watch.work.server / load.batch_count,
            "requests/s": load.batch_count / result.seconds,
            "records/s": load.record_count / result.seconds,
        },
        text=(
            f"{megabytes_per_s:.0f} MB/s, {load.batch_count / result.seconds:,.0f} requests/s, "
            f"{cpu_s_per_gb:.1f} CPU s/GB, generator {result.cpu_seconds / result.seconds:.0%} busy"
        ),
        other_cores=watch.work.other_cores,
        dirty_bytes=dirty_bytes,
    )


def now_ms() -> int:
    return time.time_ns() // 1_000_000
