"""A few commits of each kind go to a real etcd, and cost something."""

from pathlib import Path

from benchmarks.scale.store_costs import StoreCost, store_costs


def test_each_kind_of_commit_is_measured(tmp_path: Path) -> None:
    costs = store_costs(tmp_path / "etcd", 40)
    assert [(each.name, each.commits) for each in costs] == [
        ("single", 40),
        ("together", 32),
        ("full", 4),
        ("watched", 4),
    ]
    assert all(each.per_s > 0 for each in costs)


def test_cost_is_told_by_commit() -> None:
    cost = StoreCost("full", 100, 0.5, 0.2)
    assert (cost.per_s, cost.etcd_ms) == (200, 2.0)
