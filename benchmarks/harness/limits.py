"""What bounds a produce run outside of the broker: the generator against a sink, without and with a file behind it.

The first figure shows that the generator is not the limit; the second what receiving and writing alone cost here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures.figures import Statement, Summary
from benchmarks.harness.bench import Bench
from benchmarks.harness.contest import Run, Runs
from benchmarks.harness.plan import MEGABYTE
from benchmarks.host.machine import settle_pages
from benchmarks.load.frames import Load
from benchmarks.load.load import run_load
from benchmarks.load.sink import running_sink

FASTER_BY_MIN = 1.2
"""A generator that is not this much faster than the fastest server may have held it back."""


@dataclass(frozen=True, slots=True)
class Limit:
    """MB/s against the bare sink, and against the sink that writes to a file."""

    bare: Summary
    writing: Summary

    def note(self, name: str, runs: Runs) -> str:
        fastest = max(run.values["MB/s"] for run in (*runs.ours, *runs.theirs))
        return f"{name}: {verdict('MB/s', self.bare, fastest)}; against one that writes to a file {_text(self.writing)}"

    def fraction(self, name: str, runs: Sequence[Run]) -> Statement:
        """How much of the writing sink's speed the runs reached."""
        fractions = Summary(tuple(run.values["MB/s"] / self.writing.median for run in runs))
        return Statement(name, "", fractions, digits=2)


def verdict(unit: str, sink: Summary, fastest: float) -> str:
    """What a generator reached against a sink, and whether that is enough beside the fastest of all servers' runs."""
    warning = "" if sink.median >= FASTER_BY_MIN * fastest else ": THE GENERATOR MAY BE THE LIMIT"
    return f"generator against a sink {_text(sink)} {unit}, fastest run {fastest:,.0f}{warning}"


def _text(summary: Summary) -> str:
    lowest, highest = summary.spread
    return f"{summary.median:,.0f} [{lowest:,.0f}–{highest:,.0f}]"


def generator_limit(bench: Bench, load: Load) -> Limit:
    """Raises LoadFailed, OSError."""
    file = bench.directory / "sink"
    return Limit(generator_speed(bench, load, "MB/s"), generator_speed(bench, load, "MB/s", file))


def generator_speed(bench: Bench, load: Load, unit: str, file: Path | None = None) -> Summary:
    """What the generator reaches against a sink, in MB/s or requests/s. Raises LoadFailed, OSError."""
    amount = load.produced_bytes / MEGABYTE if unit == "MB/s" else load.batch_count
    summary = Summary(tuple(amount / _seconds(load, file) for _ in range(bench.plan.runs)))
    bench.say(f"generator against a sink{'' if file is None else ' that writes to a file'}: {_text(summary)} {unit}")
    return summary


def _seconds(load: Load, file: Path | None) -> float:
    settle_pages()
    with running_sink(load, file) as port:
        result = run_load("127.0.0.1", port, load)
    if file is not None:
        written = file.stat().st_size
        file.unlink()
        assert written == load.produced_bytes, f"the sink wrote {written} of {load.produced_bytes} bytes"
    return result.seconds
