"""The results as a table for the terminal, one line a carrier, within 80 columns; no Spark."""

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from odradek.spark_jobs.daily import LATE_MINUTES, CarrierSummary, DailyDelays, summarise
from odradek.spark_jobs.flight_data import airline_names

COLUMNS = ("flights", "cancelled", "late", "mean", "longest", "worst day")


def print_table(results: Sequence[DailyDelays], console: Console | None = None) -> None:
    """One line a carrier, the most flights first."""
    (console or Console()).print(table(results))


def table(results: Sequence[DailyDelays]) -> Table:
    """The results by carrier: shares of flights, delays in minutes, the day with the worst mean and that mean."""
    drawn = Table(
        title="Departures from New York by carrier, 2013",
        caption=f"late: {LATE_MINUTES} minutes or more; mean, longest, worst day: minutes; days in UTC",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    drawn.add_column("carrier", no_wrap=True)
    for name in COLUMNS:
        drawn.add_column(name, justify="right", no_wrap=True)
    names = airline_names()
    for summary in summarise(results):
        drawn.add_row(names.get(summary.carrier, summary.carrier), *_cells(summary))
    return drawn


def _cells(summary: CarrierSummary) -> tuple[str, ...]:
    worst = summary.worst_day
    return (
        f"{summary.flights:,}",
        f"{summary.cancelled_share:.1%}",
        "–" if summary.late_share is None else f"{summary.late_share:.1%}",
        "–" if summary.mean_delay is None else f"{summary.mean_delay:.1f}",
        "–" if summary.max_delay is None else f"{summary.max_delay:,}",
        "–" if worst is None else f"{worst.day:%d %b} {worst.mean_delay:4.0f}",
    )
