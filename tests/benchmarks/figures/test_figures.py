"""Medians, ratios and bars, by numbers worked out by hand."""

import json

import pytest

from benchmarks.figures.figures import Bar, Figure, Line, Statement, Summary, is_steady, line_from_json, line_to_json


def test_a_summary_is_the_median_with_the_lowest_and_the_highest() -> None:
    assert Summary((5.0, 1.0, 9.0)).median == 5.0
    assert Summary((5.0, 1.0, 9.0, 6.0)).median == 5.5
    assert Summary((5.0, 1.0, 9.0)).spread == (1.0, 9.0)


def test_a_bar_holds_in_its_own_direction() -> None:
    assert Bar("≥", 1.0).is_met(1.0)
    assert Bar("≥", 1.0).is_met(3.0)
    assert not Bar("≥", 1.0).is_met(0.99)
    assert Bar("≤", 0.15).is_met(0.15)
    assert Bar("≤", 0.15).is_met(0.01)
    assert not Bar("≤", 0.15).is_met(0.16)


def test_a_ratio_is_ours_by_theirs_and_judged_before_it_is_rounded() -> None:
    figure = Figure("start", "s", Summary((0.1504,)), Summary((1.0, 1.0, 7.0)), Bar("≤", 0.15), digits=2)
    assert figure.ratio == 0.1504
    assert not figure.is_met
    assert Figure("cpu", "s", Summary((9.0,)), Summary((1.0,))).is_met, "without a bar nothing is missed"


def test_a_statement_is_judged_by_its_own_median() -> None:
    lag = Statement("lag", "ms", Summary((51.0, 50.0, 2.0)), Summary((500.0,)), Bar("≤", 50.0))
    assert lag.is_met
    assert not Statement("lag", "ms", Summary((50.1,)), None, Bar("≤", 50.0)).is_met
    assert Statement("lag", "ms", Summary((50.1,))).is_met, "without a bar nothing is missed"


@pytest.mark.parametrize(
    "line",
    [
        Figure("a", "s", Summary((1.5, 2.0)), Summary((3.0,)), Bar("≤", 0.15), 2),
        Figure("b", "MB/s", Summary((1.5,)), Summary((3.0,))),
        Statement("c", "", Summary((1.5,)), None, Bar("≤", 2.0), 1),
        Statement("d", "ms", Summary((1.5,)), Summary((2.5, 3.5)), None, 1),
    ],
    ids=lambda line: str(line.name),
)
def test_a_line_comes_back_from_json_as_it_was(line: Line) -> None:
    assert line_from_json(json.loads(json.dumps(line_to_json(line)))) == line


@pytest.mark.parametrize(
    ("slices", "steady"),
    [
        ([], False),
        ([60.0], False),
        ([60.0, 62.0], True),
        ([62.0, 60.0], True),
        ([60.0, 60.0, 40.0], False),  # only the last two count, and these differ
        ([10.0, 60.0, 61.0], True),
        ([95.0, 100.0], False),  # exactly 5 % is not less than 5 %
    ],
)
def test_a_warm_up_is_steady_when_its_last_two_slices_differ_by_under_five_percent(
    slices: list[float], steady: bool
) -> None:
    assert is_steady(slices) is steady
