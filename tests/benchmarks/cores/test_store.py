"""A few commits go to a supervisor's store, and a table says what each kind cost."""

from pathlib import Path

from benchmarks.cores.store import measure_cores_store
from benchmarks.harness.bench import Bench
from benchmarks.harness.plan import Plan


def test_each_kind_of_commit_has_a_row(tmp_path: Path) -> None:
    with Bench(Plan(scale_commits=32), tmp_path, [], lambda line: None) as bench:
        (table,) = measure_cores_store(bench).tables
    assert table.startswith("What commits cost the supervisor:")
    assert table.count("\n") == 7
