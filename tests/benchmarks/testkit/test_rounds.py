"""Rounds are counted, told and kept by name."""

import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from benchmarks.harness.bench import Bench
from benchmarks.harness.plan import Plan
from benchmarks.testkit.installed import Project
from benchmarks.testkit.rounds import hold_rounds, hold_worker_rounds, outcome_of


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def bench(tmp_path: Path, said: list[str]) -> Iterator[Bench]:
    with Bench(Plan.small(), tmp_path, [], said.append) as bench:
        yield bench


def test_every_round_counts(bench: Bench, said: list[str]) -> None:
    numbers = count(1)
    runs = hold_rounds(bench, "name", 3, lambda: {"speed": next(numbers)})
    assert runs.statement("speed", "speed", "s").ours.values == (1, 2, 3)
    assert said[2].startswith("name 3/3: speed: 3")
    assert outcome_of("name", runs).notes[0] == "name: from the installed wheel, 3 rounds"


def test_the_first_round_of_a_worker_does_not_count(bench: Bench, tmp_path: Path) -> None:
    """It answers how many lines it has been told."""
    (tmp_path / "worker.py").write_text("import sys\nfor n, line in enumerate(sys.stdin, 1): print(n, flush=True)\n")
    project, others = Project(Path(sys.executable), tmp_path), count(1)
    runs = hold_worker_rounds(bench, "name", project, ["a", "b"], lambda: {"other": next(others)})
    assert [run.values for run in runs.ours] == [{"a": 3, "b": 4, "other": 2}]
