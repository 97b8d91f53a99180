"""A generator that is hardly faster than the servers says so; a small one is measured against both sinks."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from benchmarks.figures.figures import Summary
from benchmarks.harness import limits
from benchmarks.harness.bench import Bench
from benchmarks.harness.contest import Run, Runs
from benchmarks.harness.limits import Limit, generator_limit, generator_speed, verdict
from benchmarks.harness.plan import Plan
from benchmarks.load.frames import Load
from benchmarks.load.load import LoadResult


def run_of(speed: float) -> Run:
    return Run(1.0, speed, {"MB/s": speed}, "", 0.0)


def test_a_generator_has_to_be_a_fifth_faster_than_the_fastest_run() -> None:
    sink = Summary((1200.0, 1300.0, 1100.0))
    assert verdict("MB/s", sink, 1000.0) == "generator against a sink 1,200 [1,100–1,300] MB/s, fastest run 1,000"
    assert verdict("MB/s", sink, 1001.0).endswith("fastest run 1,001: THE GENERATOR MAY BE THE LIMIT")


def test_the_fastest_of_all_runs_counts_and_ours_are_held_against_the_writing_sink() -> None:
    limit = Limit(bare=Summary((1000.0,)), writing=Summary((500.0,)))
    assert "THE GENERATOR" in limit.note("x", Runs([run_of(300.0)], [run_of(200.0), run_of(900.0)]))
    assert "THE GENERATOR" not in limit.note("x", Runs([run_of(300.0)], [run_of(200.0)]))
    fraction = limit.fraction("x", [run_of(300.0), run_of(200.0), run_of(400.0)])
    assert (fraction.ours.median, fraction.ours.spread) == (0.6, (0.4, 0.8))


def test_both_sinks_are_measured_as_often_as_planned(tmp_path: Path) -> None:
    said: list[str] = []
    bench = Bench(Plan(runs=2), tmp_path, [], said.append)
    load = Load("sink", 40 * 16 * 1024, 0, connections=2, partitions=2)
    limit = generator_limit(bench, load)
    assert (len(limit.bare.values), len(limit.writing.values)) == (2, 2)
    assert min(limit.bare.values) > 0
    assert [line.split(":")[0] for line in said] == [
        "generator against a sink",
        "generator against a sink that writes to a file",
    ]
    assert list(tmp_path.iterdir()) == []


def test_requests_may_be_counted_instead_of_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty requests of 16 KiB in two seconds."""

    def running_sink(load: Load, file: Path | None) -> AbstractContextManager[int]:
        del load, file
        return nullcontext(0)

    def run_load(host: str, port: int, load: Load) -> LoadResult:
        del host, port
        return LoadResult(2.0, 1.0, load.batch_count)

    monkeypatch.setattr(limits, "running_sink", running_sink)
    monkeypatch.setattr(limits, "run_load", run_load)
    bench = Bench(Plan(runs=1), tmp_path, [], lambda line: None)
    load = Load("sink", 40 * 16 * 1024, 0)
    assert generator_speed(bench, load, "requests/s").median == 20.0
    assert generator_speed(bench, load, "MB/s").median == pytest.approx(0.32768)
