"""Small runs to two processes are measured, read back from the leaders, and leave nothing; rows are judged."""

import pytest

from benchmarks.cores.produce import LARGE, SMALL, add_rows, by_one_process, run_cores_produce
from benchmarks.figures.figures import Figure
from benchmarks.harness.cluster_servers import Cluster
from benchmarks.harness.contest import Run, Runs
from benchmarks.harness.plan import MEBIBYTE, Plan
from benchmarks.harness.results import Outcome
from benchmarks.produce import Shape


def test_the_loads_are_the_issues() -> None:
    loads = [shape.load(Plan(), "t", Plan().run_bytes) for shape in (SMALL, LARGE)]
    assert [(load.batch_bytes, load.connections, load.partitions) for load in loads] == [
        (16 * 1024, 8, 8),
        (1024 * 1024, 8, 8),
    ]
    assert {load.produced_bytes for load in loads} == {1 << 30}


@pytest.mark.parametrize("shape", [SMALL, LARGE], ids=lambda shape: str(shape.name))
def test_a_run_after_another_load_is_measured_and_leaves_nothing(processes: Cluster, shape: Shape) -> None:
    plan = Plan()
    dirt = shape.load(plan, f"{shape.name}-dirt", 8 * MEBIBYTE)
    run = run_cores_produce(processes, shape.load(plan, f"{shape.name}-run", 16 * MEBIBYTE), dirt)
    assert run.seconds == pytest.approx(16 * 1.048576 / run.speed)
    assert run.values["s/GB"] > run.values["store s/GB"] >= 0
    for member in processes.members.values():
        assert list(member.data_dir.glob(f"{shape.name}-*")) == []


def runs_of(ours: float, theirs: float, alone: float) -> Runs:
    def run(cpu: float) -> Run:
        return Run(1.0, 1 / cpu, {"MB/s": 1 / cpu, "s/GB": cpu, "store s/GB": 0.01}, "", 0.0)

    return Runs([run(ours), run(2 * ours)], [run(theirs)] * 2, [run(alone), run(2 * alone)])


def test_a_run_is_compared_with_that_of_one_process_in_its_round() -> None:
    assert by_one_process(runs_of(4.0, 5.0, 8.0), "s/GB").values == (0.5, 0.5)
    assert by_one_process(runs_of(4.0, 5.0, 8.0), "MB/s").values == (2.0, 2.0)


@pytest.mark.parametrize(("ours", "alone", "is_met"), [(4.0, 4.0, True), (4.0, 3.0, False), (9.0, 9.0, False)])
def test_cpu_is_judged_by_kafkas_and_by_that_of_one_process(ours: float, alone: float, is_met: bool) -> None:
    outcome = Outcome()
    add_rows(outcome, runs_of(ours, 10.0, alone), "produce", SMALL, is_dirty=True)
    speed, cpu, *_ = outcome.lines
    assert isinstance(speed, Figure)
    assert isinstance(cpu, Figure)
    assert (speed.bar, cpu.bar) == (SMALL.dirty_bar, outcome.lines[1].bar)
    assert outcome.are_bars_met is is_met
    unjudged = Outcome()
    add_rows(unjudged, runs_of(9.0, 1.0, 1.0), "produce", SMALL, is_dirty=False)
    assert unjudged.are_bars_met
