"""Latencies come out in milliseconds and by name; a small run against a real Odradek is measured and read back."""

from array import array
from pathlib import Path

import pytest

from benchmarks.harness.bench import Bench
from benchmarks.harness.plan import Plan
from benchmarks.harness.servers import running_odradek
from benchmarks.latency import ARRIVAL, PRODUCE, Steady, after_discarding, latency_values, own_latency, run_steady
from benchmarks.load.pace import NS_PER_S, Paced


def test_shares_are_those_of_the_nearest_rank() -> None:
    values = latency_values(array("q", [number * 1_000_000 for number in range(1000, 0, -1)]))
    assert values == {"p50": 500.0, "p99": 990.0, "p99.9": 999.0, "max": 1000.0}


def test_the_first_seconds_are_left_out() -> None:
    pace = ARRIVAL.pace("t", 3.0)
    paced = Paced(7 * NS_PER_S, array("q", range(3000)))
    assert list(after_discarding(paced, pace, 1.0)) == list(range(1000, 3000))


def test_the_issues_rates_are_sent() -> None:
    assert (PRODUCE.rate_per_s, ARRIVAL.rate_per_s) == (5000, 1000)
    assert (PRODUCE.judged, ARRIVAL.judged) == (("p50", "p99"), ("p99",))
    assert PRODUCE.pace("t", 70.0).count == 350_000


@pytest.mark.parametrize("steady", [PRODUCE, ARRIVAL], ids=lambda steady: str(steady.name))
def test_a_run_is_measured_against_a_real_broker_and_against_a_sink(tmp_path: Path, steady: Steady) -> None:
    bench = Bench(Plan(discarded_s=0.1, measured_s=0.4), tmp_path, [], lambda line: None)
    with running_odradek(tmp_path / "data") as server:
        run = run_steady(bench, steady, server, 0.1, 0.4)
        assert list(server.data_dir.glob(f"{steady.name}-*")) == []
    assert 0 < run.values["p50"] <= run.values["p99"] <= run.values["max"]
    assert run.speed == run.values["p50"]
    assert own_latency(bench, steady).startswith(f"{steady.name}: the generator against an echo sink p50 ")
