"""A report makes what is not finished, finds what is, and prints both: with measurements of a line each."""

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.figures.figures import Bar, Figure, Summary
from benchmarks.harness.bench import Bench, Measurement
from benchmarks.harness.plan import Plan
from benchmarks.harness.report import Report
from benchmarks.harness.results import Outcome, Results, Stamp, Unavailable
from benchmarks.host.machine import Machine

STAMP = Stamp("abc1234", Plan().to_json(), "two cores", "CPython", [])
IDLE = Machine("2026-11-21", "abc1234", "two cores", "CPython", busy_cores=0.0)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(Plan(), tmp_path, [], lambda line: None)


@pytest.fixture
def new_report(tmp_path: Path) -> Callable[..., Report]:
    def new(machine: Machine = IDLE) -> Report:
        return Report(Results(tmp_path / "results.jsonl"), STAMP, machine, lambda line: None)

    return new


def measurement(name: str, made: list[str], outcome: Outcome | Exception, *, is_paired: bool = True) -> Measurement:
    def measure(bench: Bench) -> Outcome:
        made.append(name)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return Measurement(name, "log", f"about {name}", measure, is_paired)


def line(name: str, ours: float, bound: float = 1.0) -> Figure:
    return Figure(name, "MB/s", Summary((ours,)), Summary((2.0,)), Bar("≥", bound))


def outcome(name: str, ours: float = 3.0) -> Outcome:
    made = Outcome(notes=[f"note of {name}"])
    made.add(line(name, ours))
    return made


def test_what_is_finished_is_not_repeated(bench: Bench, new_report: Callable[..., Report]) -> None:
    made: list[str] = []
    both = [measurement(name, made, outcome(name)) for name in ("produce", "fetch")]
    new_report().measure(bench, both[:1])
    report = new_report()
    report.measure(bench, both)
    assert made == ["produce", "fetch"]
    assert [entry.name for entry in report.entries] == ["produce", "fetch"]
    assert report.is_met
    report.measure(bench, both, again=True)
    assert made == ["produce", "fetch", "produce", "fetch"]


def test_those_without_the_pair_are_made_first_and_printed_in_their_place(
    bench: Bench, new_report: Callable[..., Report]
) -> None:
    made: list[str] = []
    report = new_report()
    report.measure(
        bench,
        [measurement("a", made, outcome("a")), measurement("b", made, outcome("b"), is_paired=False)],
    )
    assert made == ["b", "a"]
    rows = [row.split("|")[1].strip() for row in report.text().splitlines() if row.startswith("| ")]
    assert rows[2:] == ["a, MB/s", "b, MB/s"]


def test_what_cannot_be_measured_is_told_and_is_not_met(bench: Bench, new_report: Callable[..., Report]) -> None:
    report = new_report()
    report.measure(bench, [measurement("compaction", [], Unavailable("nothing is compacted"))])
    assert "compaction is NOT MEASURED: nothing is compacted" in report.text()
    assert not report.is_met


def test_a_failure_ends_it_and_what_was_finished_before_is_kept(
    bench: Bench, new_report: Callable[..., Report]
) -> None:
    made: list[str] = []
    both = [measurement("a", made, outcome("a")), measurement("b", made, ValueError("broken"))]
    report = new_report()
    with pytest.raises(ValueError, match="broken"):
        report.measure(bench, both)
    assert "| a, MB/s" in report.text()
    new_report().measure(bench, both[:1])
    assert made == ["a", "b"]


def test_a_machine_that_was_not_idle_leaves_every_bar_open(bench: Bench, new_report: Callable[..., Report]) -> None:
    report = new_report(Machine("d", "abc1234", "two cores", "CPython", busy_cores=1.0))
    report.measure(bench, [measurement("a", [], outcome("a"))])
    assert not report.is_met
    assert "nothing is decided about a" in report.text()
    assert "open" in report.text()


def test_a_missed_bar_is_not_met(bench: Bench, new_report: Callable[..., Report]) -> None:
    report = new_report()
    report.measure(bench, [measurement("a", [], outcome("a", ours=1.0))])
    assert not report.is_met
    assert "MISSED" in report.text()
