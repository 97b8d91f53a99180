"""Transactions a second: of 1 and of 100 records of 100 B, by 1 and by 16 producers, of a client of another's.

Each run is a new process of the client, with transactional ids and a topic of 12 partitions of its own; a quarter of
its time is not measured. Afterwards the topic has to hold every record of every transaction that was committed, and no
open one. Where there are three brokers, all logs have three replicas and min.insync.replicas 2.
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

from benchmarks.figures.figures import Bar
from benchmarks.harness.bench import Bench
from benchmarks.harness.contest import Run
from benchmarks.harness.results import Outcome
from benchmarks.host.machine import settle_pages
from benchmarks.host.work import Watch
from benchmarks.transactions.transaction_load import CLIENTS, Client, TransactionLoad, run_transactions
from benchmarks.transactions.transaction_topic import (
    Contender,
    bootstrap_of,
    pids_of,
    require_committed,
    transaction_servers,
    transaction_topic,
)

BAR: Final = Bar("≥", 1.0)
WARM_SHARE: Final = 0.25
SLICE_SHARE: Final = 0.5
"""Of a run: as much is a slice of the warm-up."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a figure's load looks like."""

    client: Client
    records: int
    producers: int
    is_of_cluster: bool

    @property
    def name(self) -> str:
        return f"{'cluster-' * self.is_of_cluster}transactions-{self.client}-{self.records}-{self.producers}"

    @property
    def title(self) -> str:
        brokers = "three brokers, RF 3" if self.is_of_cluster else "one broker"
        return f"transactions of {self.records}, producers: {self.producers}, {CLIENTS[self.client]}, {brokers}"


SHAPES: Final = tuple(
    Shape(client, records, producers, is_of_cluster)
    for is_of_cluster in (False, True)
    for client in CLIENTS
    for records in (1, 100)
    for producers in (1, 16)
)


def measure_rate(bench: Bench, shape: Shape) -> Outcome:
    """Raises LoadFailed, LogDiffers, KafkaError, OSError, TimeoutError."""
    seconds = bench.plan.transactions_s
    run = partial(commit_once, bench, shape, seconds)
    slice_of = partial(commit_once, bench, shape, SLICE_SHARE * seconds)
    outcome = Outcome()
    with contenders(bench, shape) as (ours, theirs):
        runs = bench.contest.hold(shape.name, run, ours, theirs, slice_of=slice_of)
    outcome.add(runs.figure("transactions/s", shape.title, "transactions/s", BAR))
    outcome.add(runs.figure("ms", f"server CPU for {shape.name}", "ms a transaction", digits=2))
    outcome.notes += runs.notes
    outcome.is_disturbed = runs.is_disturbed
    return outcome


@contextmanager
def contenders(bench: Bench, shape: Shape) -> Generator[tuple[Contender, Contender]]:
    """Those that the figure is of, running."""
    if shape.is_of_cluster:
        yield bench.clusters()
    else:
        with transaction_servers(bench, shape.name) as pair:
            yield pair


def commit_once(bench: Bench, shape: Shape, seconds: float, contender: Contender) -> Run:
    """One run, read back. Raises LoadFailed, LogDiffers, KafkaError, OSError, TimeoutError."""
    topic = bench.topic(shape.name)
    warm_s = WARM_SHARE * seconds
    load = TransactionLoad(
        bootstrap_of(contender), topic, topic, shape.producers, shape.records, warm_s, seconds - warm_s
    )
    with transaction_topic(contender, topic) as places:
        dirty_bytes = settle_pages()
        with Watch(*pids_of(contender)) as watch:
            told = run_transactions(shape.client, load)
        require_committed(places, topic, told.committed * shape.records)
    cpu_ms = 1000 * watch.work.server / told.committed
    text = f"{told.per_s:,.0f} transactions/s, server CPU {cpu_ms:.2f} ms each"
    values = {"transactions/s": told.per_s, "ms": cpu_ms}
    return Run(seconds, told.per_s, values, text, watch.work.other_cores, dirty_bytes)
