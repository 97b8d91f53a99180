"""A few commits of each kind go to a real etcd and to a supervisor's store, and cost something."""

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.scale.store_costs import StoreCost, socket_store_costs, store_costs


@pytest.mark.parametrize("costs_of", [store_costs, socket_store_costs])
def test_each_kind_of_commit_is_measured(tmp_path: Path, costs_of: Callable[[Path, int], list[StoreCost]]) -> None:
    costs = costs_of(tmp_path / "store", 40)
    assert [(each.name, each.commits) for each in costs] == [
        ("single", 40),
        ("together", 32),
        ("full", 4),
        ("watched", 4),
    ]
    assert all(each.per_s > 0 for each in costs)


def test_cost_is_told_by_commit() -> None:
    cost = StoreCost("full", 100, 0.5, 0.2)
    assert (cost.per_s, cost.store_ms) == (200, 2.0)
