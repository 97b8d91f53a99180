"""Percentiles by hand, two clients in turn against a real Odradek, and the figures that come of given latencies."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.clients.latency import Rate, Waiting, latency_figures, percentile
from benchmarks.clients.runs import Disturbances, Topics
from benchmarks.harness.servers import Server
from processes.odradek_broker import OdradekBroker


@pytest.fixture
def odradek(tmp_path: Path) -> Iterator[Server]:
    with OdradekBroker(tmp_path / "data") as broker:
        yield Server("Odradek", "0", broker, broker.terminate, broker.data_dir)


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([5.0], 0.5, 5.0),
        ([5.0], 0.99, 5.0),
        ([4.0, 1.0, 3.0, 2.0], 0.5, 2.0),
        ([4.0, 1.0, 3.0, 2.0, 5.0], 0.5, 3.0),
        ([float(number) for number in range(1, 21)], 0.99, 20.0),  # of twenty, the slowest
        ([float(number) for number in range(100, 0, -1)], 0.99, 99.0),
        ([float(number) for number in range(1, 2001)], 0.99, 1980.0),
        ([float(number) for number in range(1, 11)], 1.0, 10.0),
    ],
)
def test_a_percentile_is_the_value_of_the_nearest_rank(values: list[float], share: float, expected: float) -> None:
    assert percentile(values, share) == expected


def test_sends_are_measured_one_client_after_the_other_and_read_back(odradek: Server) -> None:
    said: list[str] = []
    rate = Rate(200, 0.25)
    waiting = Waiting(Topics(), Disturbances(), said.append, "asyncio", [rate])
    done = waiting.measure([odradek], ["aiokafka", "aiokafka"], runs=1)
    (first, second) = done[odradek, "aiokafka", rate]
    for took in (first, second):
        assert len(took) == 50
        assert all(0 < seconds < 10 for seconds in took)
    assert len(said) == 2
    assert waiting.disturbances.runs == {"latency": 2}
    assert waiting.identities == {"aiokafka": "aiokafka 0.14.0 with its C extension"}


def test_at_one_a_second_all_send_in_the_same_seconds_in_turn(odradek: Server) -> None:
    rate = Rate(1, 1.0)
    waiting = Waiting(Topics(), Disturbances(), lambda line: None, "asyncio", [rate])
    done = waiting.measure([odradek], ["aiokafka", "aiokafka"], runs=1)
    assert [len(took) for took in done[odradek, "aiokafka", rate]] == [1, 1]
    assert waiting.disturbances.runs == {"latency": 1}, "one run of both"


def test_figures_are_medians_of_each_runs_percentiles(odradek: Server) -> None:
    rate = Rate(100, 1.0)
    runs = [[0.001] * 98 + [slow] * 2 for slow in (0.010, 0.030, 0.020)]
    done = {(odradek, "Odradek", rate): runs, (odradek, "aiokafka", rate): [[0.002] * 100]}
    half, most = latency_figures(done, odradek, [rate])
    assert (half.name, half.ours.median, half.theirs.median) == ("latency p50 beside aiokafka, 100/s", 1.0, 2.0)
    assert (most.name, most.ours.median, most.ours.spread) == ("latency p99 beside aiokafka, 100/s", 20.0, (10.0, 30.0))
    assert half.is_met
    assert not most.is_met
    assert latency_figures({(odradek, "aiokafka", rate): [[0.002]]}, odradek, [rate]) == []
