"""The table of the report, rendered for a terminal of 80 columns and compared as text."""

import io
from datetime import date

from rich.console import Console

from odradek.spark_jobs.daily import DailyDelays
from odradek.spark_jobs.table import print_table


def rendered(*results: DailyDelays) -> list[list[str]]:
    """The words of each line."""
    text = io.StringIO()
    print_table(results, Console(file=text, width=80))
    return [line.split() for line in text.getvalue().splitlines()]


def test_a_carrier_is_one_line_within_80_columns() -> None:
    """Nothing is wrapped or cut, even with the longest name and large numbers."""
    day = DailyDelays("EV", date(2013, 7, 10), 58_665, 665, 11_600, 5_800_000, 100.0, 480.0, 1_301)
    words = ["ExpressJet", "Airlines", "58,665", "1.1%", "20.0%", "100.0", "1,301", "10", "Jul", "100"]
    assert words in rendered(day)


def test_a_carrier_without_departures_and_without_a_known_name() -> None:
    """What cannot be computed is a dash, an unknown carrier its code."""
    day = DailyDelays("ZZ", date(2013, 7, 10), 2, 2, 0, 0, None, None, None)
    assert ["ZZ", "2", "100.0%", "–", "–", "–", "–"] in rendered(day)
