"""What each further partition costs is compared with those before, and a real Odradek is counted with a few."""

from math import inf
from pathlib import Path

import pytest

from benchmarks.empty_partitions import Cost, cost_of, create_until, growth, table
from benchmarks.figures.figures import Summary
from benchmarks.harness.bench import Bench
from benchmarks.harness.plan import Plan
from benchmarks.harness.servers import running_odradek


def costs(*medians: float) -> tuple[list[Cost], list[Summary]]:
    summaries = [Summary((median,)) for median in medians]
    return [Cost(count, one, one, one) for count, one in zip((1000, 5000, 10_000), summaries, strict=True)], summaries


@pytest.mark.parametrize(
    ("medians", "expected"),
    [
        ((40.0, 80.0, 130.0), 1.0),  # 10 for each thousand, before and after
        ((40.0, 80.0, 180.0), 2.0),
        ((40.0, 80.0, 80.0), 0.0),
        ((40.0, 40.0, 41.0), inf),  # something after nothing is not linear
        ((40.0, 40.0, 40.0), 0.0),
        ((40.0, 80.0, 70.0), 0.0),
    ],
)
def test_growth_is_that_of_the_last_partitions_by_that_of_those_before(
    medians: tuple[float, float, float], expected: float
) -> None:
    assert growth(*costs(*medians)).median == pytest.approx(expected)


def test_a_real_broker_is_counted(tmp_path: Path) -> None:
    bench = Bench(Plan(runs=1, idle_s=0.0), tmp_path, [], lambda line: None)
    topics: dict[str, int] = {}
    with running_odradek(tmp_path / "data") as server:
        create_until(server, topics, 3)
        create_until(server, topics, 7)
        assert sum(topics.values()) == 7
        cost = cost_of(bench, server, topics)
    assert cost.partitions == 7
    assert cost.megabytes.median > 1
    assert cost.descriptors.median > 3
    assert cost.start_s.median > 0
    assert table([cost]).splitlines()[2].split("|")[1].strip() == "7"
