"""How the cost of producing grows: with partitions, connections, the size of batches and that of records.

One thing is varied, all else is as in the figure for batches of 16 KiB: one connection, five requests in flight,
records of about 1 KiB. The server's CPU time is stated for a request and for a gigabyte, of Odradek alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from benchmarks.figures.figures import Summary
from benchmarks.figures.table import markdown
from benchmarks.harness.bench import Bench
from benchmarks.harness.contest import Run, summary
from benchmarks.harness.results import Outcome
from benchmarks.harness.servers import Server
from benchmarks.load.frames import Load
from benchmarks.produce import now_ms, run_produce

KIBIBYTE = 1024


@dataclass(frozen=True, slots=True)
class Series:
    """What is varied, and the loads with it. Their topics and amounts are set for each run."""

    name: str
    title: str
    loads: tuple[tuple[str, Load], ...]


PLAIN = Load("", 0, 0)
SERIES = (
    Series(
        "growth-partitions",
        "partitions, in turn over one connection",
        tuple((f"{count:,}", replace(PLAIN, partitions=count, spread=count)) for count in (1, 10, 100, 1000)),
    ),
    Series(
        "growth-connections",
        "connections, each to a partition of its own",
        tuple((f"{count:,}", replace(PLAIN, partitions=count, connections=count)) for count in (1, 8, 64, 256)),
    ),
    Series(
        "growth-batches",
        "size of a batch",
        tuple(
            (f"{kibibytes:,} KiB", replace(PLAIN, batch_bytes=kibibytes * KIBIBYTE))
            for kibibytes in (1, 4, 16, 64, 256, 1024)
        ),
    ),
    Series(
        "growth-records",
        "size of a record, in batches of 16 KiB",
        tuple((f"{size:,} B", replace(PLAIN, record_bytes=size)) for size in (100, 1024, 8192)),
    ),
)


def measure_growth(bench: Bench, series: Series) -> Outcome:
    """Raises LoadFailed, LogDiffers, KafkaError, OSError."""
    outcome = Outcome()
    rows: list[list[str]] = []
    ours, _theirs = bench.pair()
    for value, plain in series.loads:
        runs = bench.contest.hold_alone(f"{series.name}, {value}", partial(run_once, bench, plain), ours)
        quantities = [summary(runs.ours, name) for name in ("MB/s", "µs/request", "s/GB")]
        rows.append([value, *(cell(quantity, digits) for quantity, digits in zip(quantities, (0, 1, 2), strict=True))])
        outcome.notes += runs.notes
        outcome.is_disturbed = outcome.is_disturbed or runs.is_disturbed
    outcome.tables.append(table(series, rows))
    return outcome


def run_once(bench: Bench, plain: Load, server: Server) -> Run:
    """One run of a load into a topic of its own. Raises what `run_produce` raises."""
    load = replace(plain, topic=bench.topic("growth"), total_bytes=bench.plan.growth_bytes, timestamp_ms=now_ms())
    return run_produce(server, load)


def table(series: Series, rows: Sequence[Sequence[str]]) -> str:
    head = [series.title, "MB/s", "server CPU, µs a request", "s/GB"]
    return f"How Odradek's cost grows with the {series.title}:\n\n{markdown(head, rows)}"


def cell(values: Summary, digits: int) -> str:
    lowest, highest = values.spread
    return f"{values.median:,.{digits}f} [{lowest:,.{digits}f}–{highest:,.{digits}f}]"
