"""Each broker of a supervisor answers at a time of its own; another one costs memory; every row is told by a run."""

from pathlib import Path

from benchmarks.cores.core_servers import supervised
from benchmarks.cores.start import ROWS, answers_after_start, run_cores_start, start_alone, together
from benchmarks.harness.bench import Bench
from benchmarks.harness.plan import Plan
from benchmarks.host.machine import proportional_bytes


def test_both_answer_and_what_all_have_is_more_than_what_the_supervisor_has(tmp_path: Path) -> None:
    supervisor = supervised(tmp_path / "data")
    try:
        first, second = answers_after_start(supervisor)
        assert 0 < first < 30
        assert 0 < second < 30
        assert together(supervisor) > 2 * proportional_bytes(supervisor.pid)
        supervisor.stop()
    finally:
        supervisor.close()


def test_a_run_tells_every_row(tmp_path: Path) -> None:
    with Bench(Plan(idle_s=0.0), tmp_path, [], lambda line: None) as bench:
        run = run_cores_start(bench, tmp_path / "run")
        alone = start_alone(bench, tmp_path / "alone")
    assert {*run, "alone"} == set(ROWS)
    assert 0 < run["again, first"] <= run["again"]
    assert 10 < run["more"] < 100
    assert 0 < alone < 30
