"""What bounds a produce run outside of the broker: the generator against a sink, without and with a file behind it.

The first figure shows that the generator is not the limit; the second what receiving and writing alone cost here.
"""

import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.figures import Summary
from benchmarks.frames import Load
from benchmarks.load import run_load
from benchmarks.machine import settle_pages
from benchmarks.produce import MEGABYTE, Plan
from benchmarks.sink import running_sink


def measure_limits(plan: Plan, directory: Path, say: Callable[[str], None]) -> tuple[Summary, Summary]:
    """MB/s against the bare sink, and against the sink that writes to a file in `directory`."""
    load = Load("sink", plan.run_bytes, time.time_ns() // 1_000_000, record_bytes=plan.record_bytes)
    file = directory / "sink"
    bare = Summary(tuple(_speed(load, None) for _ in range(plan.runs)))
    writing = Summary(tuple(_speed(load, file) for _ in range(plan.runs)))
    for name, summary in (("a sink", bare), ("a sink that writes to a file", writing)):
        lowest, highest = summary.spread
        say(f"generator against {name}: {summary.median:,.0f} MB/s [{lowest:,.0f}–{highest:,.0f}]")
    return bare, writing


def _speed(load: Load, file: Path | None) -> float:
    settle_pages()
    with running_sink(load, file) as port:
        result = run_load("127.0.0.1", port, load)
    if file is not None:
        written = file.stat().st_size
        file.unlink()
        assert written == load.produced_bytes, f"the sink wrote {written} of {load.produced_bytes} bytes"
    return load.produced_bytes / MEGABYTE / result.seconds
