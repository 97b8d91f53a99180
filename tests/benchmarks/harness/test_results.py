"""Finished measurements come back from disk for the very same conditions, and for no others."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.figures.figures import Bar, Figure, Statement, Summary
from benchmarks.harness.plan import Plan
from benchmarks.harness.results import Finished, Outcome, Results, Stamp

STAMP = Stamp("abc1234", Plan().to_json(), "two cores", "CPython", ["record.validation=full"])


def outcome() -> Outcome:
    made = Outcome(notes=["Kafka was steady"], tables=["a table"])
    made.add(Figure("speed", "MB/s", Summary((3.0, 4.0)), Summary((1.0,)), Bar("≥", 3.0)))
    made.add(Statement("lag", "ms", Summary((7.0,)), None, Bar("≤", 50.0)))
    return made


def finished(name: str = "produce", stamp: Stamp = STAMP, made: Outcome | None = None) -> Finished:
    return Finished(name, stamp, "2026-11-21 22:30 UTC", made or outcome())


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(tmp_path / "build" / "results.jsonl")


def test_what_was_kept_is_found_as_it_was(results: Results) -> None:
    assert results.find("produce", STAMP) is None
    results.keep(finished())
    results.keep(finished("fetch"))
    assert Results(results.path).find("produce", STAMP) == finished()


@pytest.mark.parametrize(
    "other",
    [
        replace(STAMP, commit="abc1235"),
        replace(STAMP, plan=Plan.small().to_json()),
        replace(STAMP, hardware="four cores"),
        replace(STAMP, software="PyPy"),
        replace(STAMP, settings=[]),
    ],
)
def test_it_holds_for_the_same_conditions_only(results: Results, other: Stamp) -> None:
    results.keep(finished())
    assert results.find("produce", other) is None
    assert results.find("fetch", STAMP) is None


@pytest.mark.parametrize("commit", ["abc1234+", "none"])
def test_files_that_no_commit_describes_are_measured_again(results: Results, commit: str) -> None:
    stamp = replace(STAMP, commit=commit)
    results.keep(finished(stamp=stamp))
    assert results.find("produce", stamp) is None


def test_what_was_disturbed_or_is_missing_is_measured_again(results: Results) -> None:
    results.keep(finished(made=Outcome(is_disturbed=True)))
    results.keep(finished(made=Outcome(missing="no groups")))
    assert results.find("produce", STAMP) is None
    results.keep(finished())
    results.keep(finished(made=Outcome(is_disturbed=True)))
    assert results.find("produce", STAMP) == finished(), "an earlier good one still holds"


def test_the_latest_counts(results: Results) -> None:
    results.keep(finished())
    later = replace(finished(), date="2026-11-22 01:00 UTC")
    results.keep(later)
    assert results.find("produce", STAMP) == later


def test_half_a_line_and_lines_of_another_form_are_passed_over(results: Results) -> None:
    results.keep(finished())
    whole = results.path.read_text()
    results.path.write_text('{"name": "produce"}\n' + whole + whole[:100])
    assert results.find("produce", STAMP) == finished()


def test_an_outcome_knows_whether_all_bars_are_met() -> None:
    made = outcome()
    assert made.are_bars_met
    made.add(Statement("lag", "ms", Summary((51.0,)), None, Bar("≤", 50.0)))
    assert not made.are_bars_met
    made.add(Statement("more", "ms", Summary((1.0,)), None, Bar("≤", 50.0)))
    assert not made.are_bars_met
