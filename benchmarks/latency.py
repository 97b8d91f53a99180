"""How long something takes at a steady rate, from the moment at which it was due: p50 and p99.

- `latency`: a Produce of one record of 1 KiB, acks=all, 5,000 a second. The records go over four connections in turn,
  each to a partition of its own: both brokers answer the requests of one connection one after the other, and with a
  single one it would be that which is measured.
- `arrival`: the way of such a record to a consumer that waits in a Fetch, 1,000 a second, over one connection each.

Apache Kafka is warmed up by slices of the same load until their p50 is steady. What a generator adds itself is measured
against a sink that answers at once.
"""

from array import array
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from benchmarks.clients.latency import percentile
from benchmarks.figures.figures import Bar
from benchmarks.harness.bench import Bench
from benchmarks.harness.contest import Run
from benchmarks.harness.readback import compare_log
from benchmarks.harness.results import Outcome
from benchmarks.harness.servers import Server
from benchmarks.host.machine import settle_pages
from benchmarks.host.work import Watch
from benchmarks.load.arrival_sink import running_arrival_sink
from benchmarks.load.frames import Load
from benchmarks.load.pace import NS_PER_S, Pace, Paced, paced_load
from benchmarks.load.paced import run_paced
from benchmarks.load.sink import running_sink
from benchmarks.load.wire import create_topic, delete_topic
from benchmarks.produce import now_ms

RECORD_BYTES = 1024
SLICE_S = 10.0
NS_PER_MS = 1_000_000
BAR = Bar("≤", 0.7)
SHARES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "max": 1.0}


@dataclass(frozen=True, slots=True)
class Steady:
    """A load at a steady rate, the generator that sends it, and the sink which shows how late that is itself."""

    name: str
    title: str
    rate_per_s: int
    connections: int
    module: str
    sink: Callable[[Load], AbstractContextManager[int]]
    judged: tuple[str, ...]

    def pace(self, topic: str, seconds: float) -> Pace:
        return paced_load(
            topic, seconds, self.rate_per_s, now_ms(), connections=self.connections, record_bytes=RECORD_BYTES
        )


PRODUCE = Steady(
    "latency",
    "Produce at 5,000/s of 1 KiB, acks=all",
    5000,
    connections=4,
    module="benchmarks.load.paced",
    sink=running_sink,
    judged=("p50", "p99"),
)
ARRIVAL = Steady(
    "arrival",
    "produce to long-polling consumer, 1,000/s of 1 KiB",
    1000,
    connections=1,
    module="benchmarks.load.arrivals",
    sink=running_arrival_sink,
    judged=("p99",),
)


def measure_latency(bench: Bench, steady: Steady) -> Outcome:
    """Raises LoadFailed, LogDiffers, KafkaError, OSError."""
    plan = bench.plan
    outcome = Outcome(notes=[own_latency(bench, steady)])
    runs = bench.contest.hold(
        steady.name,
        lambda server: run_steady(bench, steady, server, plan.discarded_s, plan.measured_s),
        *bench.pair(),
        slice_of=lambda server: run_steady(bench, steady, server, 0.0, min(SLICE_S, plan.measured_s)),
    )
    for share in ("p50", "p99"):
        bar = BAR if share in steady.judged else None
        outcome.add(runs.figure(share, f"{steady.title}, {share}", "ms", bar, 3))
    outcome.notes += runs.notes
    outcome.is_disturbed = runs.is_disturbed
    return outcome


def own_latency(bench: Bench, steady: Steady) -> str:
    """What the generator takes against a sink that answers at once."""
    plan = bench.plan
    pace = steady.pace("sink", plan.discarded_s + plan.measured_s)
    with steady.sink(pace.load) as port:
        paced = run_paced("127.0.0.1", port, pace, steady.module)
    values = latency_values(after_discarding(paced, pace, plan.discarded_s))
    note = f"{steady.name}: the generator against an echo sink {text_of(values)}"
    bench.say(note)
    return note


def run_steady(bench: Bench, steady: Steady, server: Server, discarded_s: float, measured_s: float) -> Run:
    """One run into a topic of its own, read back. Raises LoadFailed, LogDiffers, KafkaError, OSError."""
    pace = steady.pace(bench.topic(steady.name), discarded_s + measured_s)
    load = pace.load
    with server.wire() as wire:
        create_topic(wire, load.topic, load.partitions)
        dirty = settle_pages()
        with Watch(server.process.pid) as watch:
            paced = run_paced(server.process.host, server.process.port, pace, steady.module)
        compare_log(wire, load)
        delete_topic(wire, load.topic)
    server.wait_gone(load.topic)
    values = latency_values(after_discarding(paced, pace, discarded_s))
    return Run(
        seconds=discarded_s + measured_s,
        speed=values["p50"],
        values=values,
        text=f"{text_of(values)}, server {watch.work.server / watch.work.clock:.0%} of a core",
        other_cores=watch.work.other_cores,
        dirty_bytes=dirty,
    )


def after_discarding(paced: Paced, pace: Pace, discarded_s: float) -> "array[int]":
    return paced.due_from(pace, paced.begin_ns + round(discarded_s * NS_PER_S), 2**63)


def latency_values(latencies_ns: "array[int]") -> dict[str, float]:
    """In milliseconds, by name. At least one is needed."""
    ordered = sorted(latencies_ns)
    return {name: percentile(ordered, share) / NS_PER_MS for name, share in SHARES.items()}


def text_of(values: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.3f} ms" for name, value in values.items())
