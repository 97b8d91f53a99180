"""Contests with given runs: who runs when, how long each is warmed up, and which runs were disturbed."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.figures.figures import Bar
from benchmarks.harness.contest import Contest, Run, Runs
from benchmarks.harness.plan import Plan
from benchmarks.harness.servers import Server
from processes.odradek_broker import OdradekBroker

PLAN = Plan(runs=2, warm_s=40, warm_s_max=100, rewarm_s=5)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    broker = OdradekBroker(tmp_path / "unused")
    ours, theirs = (Server(name, "1", broker, broker.close, Path()) for name in ("Odradek", "Kafka"))
    yield ours, theirs
    broker.close()


def run_of(speed: float = 60.0, seconds: float = 12.0, other_cores: float = 0.0, dirty_bytes: int = 0) -> Run:
    return Run(seconds, speed, {"MB/s": speed}, "so fast", other_cores, dirty_bytes)


def contest(plan: Plan = PLAN, say: Callable[[str], None] = lambda line: None) -> Contest:
    return Contest(plan, say)


def test_runs_alternate_and_each_is_warm_before_its_own(pair: tuple[Server, Server]) -> None:
    order: list[str] = []

    def run(server: Server) -> Run:
        order.append(server.name)
        return run_of()

    def slice_of(server: Server) -> Run:
        order.append(f"slice {server.name}")
        return run_of(seconds=3.0)

    runs = contest(Plan(runs=2, warm_s=6, warm_s_max=100, rewarm_s=5)).hold("x", run, *pair, slice_of=slice_of)
    slices = [*["slice Odradek"] * 2, *["slice Kafka"] * 2]
    again = [*slices[:2], "Odradek", *slices[2:], "Kafka"]
    assert order == [*slices, *again, *again]
    assert (len(runs.ours), len(runs.theirs)) == (2, 2)


def test_a_third_contender_takes_its_turn_and_counts(pair: tuple[Server, Server], tmp_path: Path) -> None:
    third = Server("Third", "1", pair[0].process, lambda: None, tmp_path)
    order: list[str] = []

    def run(server: Server) -> Run:
        order.append(server.name)
        return run_of(other_cores=0.3 if server is third else 0.0)

    def slice_of(server: Server) -> Run:
        return run_of()

    plan = Plan(runs=2, warm_s=6, warm_s_max=100, rewarm_s=5)
    runs = contest(plan).hold("x", run, *pair, slice_of=slice_of, beside=third)
    assert order == ["Odradek", "Kafka", "Third"] * 2
    assert (len(runs.beside), runs.disturbed_count, runs.is_disturbed) == (2, 2, True)
    assert runs.notes[-1].startswith("x: 2 of 6 runs")


def test_the_workload_itself_warms_up_unless_something_else_is_given(pair: tuple[Server, Server]) -> None:
    count = 0

    def run(server: Server) -> Run:
        nonlocal count
        count += server.name == "Kafka"
        return run_of()

    contest().hold("x", run, *pair)
    assert count == 4 + 2 * 2, "48 s at first, then one slice of 12 s before each run"


def warm_up(pair: tuple[Server, Server], speeds: list[float]) -> tuple[int, list[str]]:
    """How many slices of 12 s Kafka's warm-up took, and the notes."""
    rest = iter(speeds)

    def slice_of(server: Server) -> Run:
        return run_of(next(rest)) if server.name == "Kafka" else run_of()

    plan = Plan(runs=0, warm_s=40, warm_s_max=100, rewarm_s=0)
    runs = contest(plan).hold("x", lambda server: run_of(), *pair, slice_of=slice_of)
    return len(speeds) - len(list(rest)), runs.notes


def test_a_warm_up_lasts_forty_seconds_even_when_steady_at_once(pair: tuple[Server, Server]) -> None:
    taken, notes = warm_up(pair, [60.0] * 20)
    assert taken == 4
    assert notes[:2] == [f"x: {server} 1 was steady after 48 s under load" for server in ("Odradek", "Kafka")]


def test_a_warm_up_goes_on_until_two_slices_agree(pair: tuple[Server, Server]) -> None:
    taken, _notes = warm_up(pair, [10, 20, 30, 40, 50, 60, 61, 1, 1, 1])
    assert taken == 7


def test_a_warm_up_that_never_gets_steady_ends_and_says_so(pair: tuple[Server, Server]) -> None:
    taken, notes = warm_up(pair, [10, 20] * 10)
    assert taken == 9
    assert notes[1] == "x: Kafka 1 was NOT STEADY after 108 s under load"


def test_runs_beside_other_work_or_dirty_pages_are_counted_and_leave_the_result_open() -> None:
    quiet = [run_of(other_cores=0.2, dirty_bytes=50_000_000)] * 5
    assert not Runs(quiet, quiet).is_disturbed
    assert not Runs([*quiet[1:], run_of(other_cores=0.3)], quiet).is_disturbed, "one in ten is borne by medians"
    disturbed = Runs([*quiet[1:], run_of(other_cores=0.3)], [*quiet[1:], run_of(dirty_bytes=50_000_001)])
    assert disturbed.disturbed_count == 2
    assert disturbed.is_disturbed


def test_a_run_says_what_it_met() -> None:
    run = run_of(other_cores=0.1, dirty_bytes=3_400_000)
    assert str(run) == "so fast, 3 MB dirty before, 0.10 cores busy otherwise"
    assert str(run_of(other_cores=0.25)).endswith("0.25 cores busy otherwise: disturbed")


def test_figures_and_statements_are_made_from_a_quantity_of_all_runs() -> None:
    runs = Runs([run_of(3.0), run_of(5.0), run_of(4.0)], [run_of(2.0)])
    figure = runs.figure("MB/s", "speed", "MB/s", Bar("≥", 2.0))
    assert (figure.ratio, figure.is_met, figure.ours.spread) == (2.0, True, (3.0, 5.0))
    statement = runs.statement("MB/s", "speed", "MB/s", Bar("≥", 4.1))
    assert (statement.ours.median, statement.theirs and statement.theirs.median, statement.is_met) == (4.0, 2.0, False)
    assert Runs([run_of()]).statement("MB/s", "speed", "MB/s").theirs is None


def test_a_contest_with_nobody_beside_is_warmed_up_once(pair: tuple[Server, Server]) -> None:
    count = 0

    def run(server: Server) -> Run:
        nonlocal count
        count += 1
        return run_of()

    runs = contest().hold_alone("x", run, pair[0])
    assert (count, len(runs.ours), runs.theirs) == (3, 2, [])
