"""One result of the delay job, and what is made of many: plain values, without Spark.

A result record: key = `carrier|day`, value = a JSON object with the fields of `DailyDelays`, where the day is the
window's start in UTC. The sink runs in update mode, so a key comes again with every micro-batch that changed its
window, and once more when a batch is repeated after a crash; the last record of a key counts, which is also the one
that log compaction keeps.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

# The US Department of Transportation calls a flight late from 15 minutes on.
LATE_MINUTES = 15


@dataclass(frozen=True, slots=True)
class DailyDelays:
    """Departures of one carrier in one UTC day; delays in minutes, negative when early.

    `flights` counts all scheduled ones, `cancelled` those without a departure delay, which in this table are those that
    never left; the delays are those of the others, hence None without any. `p95_delay` interpolates linearly between
    neighbours, as numpy and Spark's exact `percentile` do.
    """

    carrier: str
    day: date
    flights: int
    cancelled: int
    late: int
    delay_sum: int
    mean_delay: float | None
    p95_delay: float | None
    max_delay: int | None

    @classmethod
    def from_json(cls, text: str | bytes) -> "DailyDelays":
        """Reads a result record's value; raises ValueError or KeyError for anything else."""
        fields = json.loads(text)
        return cls(
            carrier=fields["carrier"],
            day=date.fromisoformat(fields["day"]),
            flights=fields["flights"],
            cancelled=fields["cancelled"],
            late=fields["late"],
            delay_sum=fields["delay_sum"],
            mean_delay=fields["mean_delay"],
            p95_delay=fields["p95_delay"],
            max_delay=fields["max_delay"],
        )


def reduce_to_last(results: Iterable[DailyDelays]) -> dict[tuple[str, date], DailyDelays]:
    """The last result per carrier and day, of results in offset order; sorted by carrier, then day."""
    last = {(result.carrier, result.day): result for result in results}
    return dict(sorted(last.items()))


@dataclass(frozen=True, slots=True)
class CarrierSummary:
    """All days of one carrier together."""

    carrier: str
    flights: int
    cancelled: int
    late: int
    delay_sum: int
    max_delay: int | None
    worst_day: DailyDelays | None

    @property
    def departed(self) -> int:
        return self.flights - self.cancelled

    @property
    def mean_delay(self) -> float | None:
        return self.delay_sum / self.departed if self.departed else None

    @property
    def late_share(self) -> float | None:
        return self.late / self.departed if self.departed else None

    @property
    def cancelled_share(self) -> float:
        return self.cancelled / self.flights


def summarise(results: Iterable[DailyDelays]) -> list[CarrierSummary]:
    """One summary per carrier, the most flights first. `worst_day`: worst mean among days of 5 departures or more."""
    days_of: dict[str, list[DailyDelays]] = {}
    for result in results:
        days_of.setdefault(result.carrier, []).append(result)
    summaries = [_summary(carrier, days) for carrier, days in days_of.items()]
    return sorted(summaries, key=lambda summary: (-summary.flights, summary.carrier))


def _summary(carrier: str, days: list[DailyDelays]) -> CarrierSummary:
    busy = [day for day in days if day.flights - day.cancelled >= 5]
    return CarrierSummary(
        carrier=carrier,
        flights=sum(day.flights for day in days),
        cancelled=sum(day.cancelled for day in days),
        late=sum(day.late for day in days),
        delay_sum=sum(day.delay_sum for day in days),
        max_delay=max((day.max_delay for day in days if day.max_delay is not None), default=None),
        worst_day=max(busy, key=lambda day: day.mean_delay or 0.0, default=None),
    )
