"""Gaps between acknowledgements, in histories made by hand."""

import pytest

from odradek.testing.sim.checking.history import Acknowledged, Polled, Record
from tests.cluster.gaps import Figures, FiguresByKind, longest_gap_ms


def acknowledged(at_ms: float, partition: int = 0) -> Record:
    return Acknowledged(at_ms, int(at_ms), "t", partition, int(at_ms))


def test_the_longest_gap_is_that_of_the_partition_that_waited_longest() -> None:
    records = [acknowledged(at_ms) for at_ms in (0, 100, 200, 300, 400)]
    records += [acknowledged(at_ms, partition=1) for at_ms in (50, 350)]
    assert longest_gap_ms(records, 0, 400) == 300


def test_a_gap_counts_where_it_reaches_into_the_time_that_is_asked_about() -> None:
    records = [acknowledged(at_ms) for at_ms in (0, 500, 510, 520, 1_500)]
    assert longest_gap_ms(records, 505, 515) == 10
    assert longest_gap_ms(records, 400, 515) == 500
    assert longest_gap_ms(records, 515, 600) == 980
    assert longest_gap_ms(records, 2_000, 3_000) == 0


def test_what_is_read_does_not_count() -> None:
    polled = Polled(50.0, 40.0, "c", "t", 0, 0, [(0, 1)])
    assert longest_gap_ms([acknowledged(0), polled, acknowledged(100)], 0, 100) == 100


def test_a_row_says_how_often_and_how_long() -> None:
    figures = Figures("SIGKILL, leader", [250.0, 1_500.0, 750.0], acknowledged_count=12_345)
    assert figures.row() == "| SIGKILL, leader | 3 | 12,345 | 0.75 s | 1.50 s | none |\n"
    assert Figures("nothing yet", finding_count=2).row() == "| nothing yet | 0 | 0 | – | – | 2 |\n"


def test_each_kind_has_its_own_rounds_and_acknowledgements(capsys: pytest.CaptureFixture[str]) -> None:
    figures, counts, gaps = FiguresByKind(), iter((10, 30, 30, 35)), iter((100.0, 300.0, 2_000.0, 4_000.0))
    for what in ("SIGKILL", "SIGSTOP"):
        figures.measure(what, 2, lambda: next(gaps), lambda: next(counts))
    figures.report(1)
    assert capsys.readouterr().out.splitlines() == [
        "| SIGKILL | 2 | 20 | 0.20 s | 0.30 s | 1 |",
        "| SIGSTOP | 2 | 5 | 3.00 s | 4.00 s | 1 |",
    ]
