"""The picture: what is computed for it, by value, and that a PNG of the promised size is written."""

import struct
from datetime import date, timedelta
from math import isnan
from pathlib import Path

import pytest

from odradek.spark_jobs.daily import DailyDelays
from odradek.spark_jobs.picture import Day, by_day, draw_year, noted_days

FIRST = date(2013, 1, 1)


def delays(carrier: str, day: int, flights: int, cancelled: int, delay_sum: int) -> DailyDelays:
    mean = delay_sum / (flights - cancelled) if flights > cancelled else None
    return DailyDelays(carrier, FIRST + timedelta(days=day), flights, cancelled, 0, delay_sum, mean, mean, None)


def test_by_day_adds_carriers_up_and_leaves_no_gap() -> None:
    """The mean is weighted by departures; a day without any departure has none, with or without cancelled flights."""
    days = by_day([delays("UA", 0, 9, 1, 80), delays("AA", 0, 2, 0, 40), delays("UA", 2, 3, 3, 0)])
    assert [day.day for day in days] == [FIRST + timedelta(days=number) for number in range(3)]
    assert (days[0].mean_delay, days[0].cancelled_share) == (12.0, 1 / 11)
    assert isnan(days[1].mean_delay) and days[1].cancelled_share == 0.0
    assert isnan(days[2].mean_delay) and days[2].cancelled_share == 1.0


def test_noted_days_are_the_worst_and_keep_their_distance() -> None:
    """The runner-up next to the worst day is passed over; a day without departures never counts."""
    means = {0: 50.0, 1: 49.0, 40: 30.0, 41: float("nan"), 200: 31.0, 201: 10.0}
    days = [Day(FIRST + timedelta(days=number), mean, 0.0) for number, mean in means.items()]
    assert [day.mean_delay for day in noted_days(days)] == [50.0, 31.0, 30.0]


@pytest.mark.parametrize("day_count", [1, 30, 365])
def test_draw_year_writes_a_png(tmp_path: Path, day_count: int) -> None:
    """For a day, a month and a year, some of it without departures, the file is a PNG of 1,680 by 1,140."""
    results = [delays(carrier, day, 9, day % 10, 90) for day in range(day_count) for carrier in ("UA", "AA", "??")]
    path = tmp_path / "year.png"
    draw_year(results, path)
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", content[16:24]) == (1_680, 1_140)


def test_draw_year_draws_a_day_on_which_all_was_cancelled(tmp_path: Path) -> None:
    """The only day has no mean delay; the picture is still drawn."""
    draw_year([delays("UA", 0, 3, 3, 0)], tmp_path / "day.png")
    assert (tmp_path / "day.png").stat().st_size > 1_000


def test_draw_year_refuses_nothing(tmp_path: Path) -> None:
    """Without results there is an error and no file."""
    with pytest.raises(ValueError, match="no results"):
        draw_year([], tmp_path / "none.png")
    assert not (tmp_path / "none.png").exists()
