"""Result records without Spark: read, reduced to the last per key, summed up by carrier; all on hand-made values."""

from datetime import date

import pytest

from odradek.spark_jobs.daily import DailyDelays, reduce_to_last, summarise


def delays(
    carrier: str, day: int, flights: int, *, cancelled: int = 0, late: int = 0, delay_sum: int = 0
) -> DailyDelays:
    departed = flights - cancelled
    mean = delay_sum / departed if departed else None
    return DailyDelays(carrier, date(2013, 1, day), flights, cancelled, late, delay_sum, mean, mean, delay_sum or None)


def test_from_json_reads_what_the_job_writes() -> None:
    """Nulls stay None, whole and fractional numbers keep their kind."""
    text = (
        b'{"carrier":"AA","day":"2013-02-09","flights":3,"cancelled":3,"late":0,"delay_sum":0,'
        b'"mean_delay":null,"p95_delay":null,"max_delay":null}'
    )
    assert DailyDelays.from_json(text) == DailyDelays("AA", date(2013, 2, 9), 3, 3, 0, 0, None, None, None)
    with_delay = text.replace(b'"mean_delay":null', b'"mean_delay":1.5')
    assert DailyDelays.from_json(with_delay).mean_delay == 1.5


@pytest.mark.parametrize("text", [b"[]", b"{}", b'{"carrier":"AA","day":"soon"}', b"", b'"x"'])
def test_from_json_refuses_anything_else(text: bytes) -> None:
    """Other JSON, other objects and no JSON raise, and never give half a result."""
    with pytest.raises((ValueError, KeyError, TypeError)):
        DailyDelays.from_json(text)


def test_reduce_to_last_keeps_the_last_of_each_key_in_sorted_order() -> None:
    """Later records replace earlier ones of the same carrier and day only."""
    first, other, last = delays("UA", 2, 1), delays("AA", 3, 5), delays("UA", 2, 4)
    reduced = reduce_to_last([first, other, last, delays("AA", 1, 2)])
    assert list(reduced) == [("AA", date(2013, 1, 1)), ("AA", date(2013, 1, 3)), ("UA", date(2013, 1, 2))]
    assert reduced["UA", date(2013, 1, 2)] is last


def test_summarise_adds_up_and_orders_by_flights() -> None:
    """Shares count departures, the mean is weighted by them, and the worst day needs five departures."""
    few = delays("UA", 1, 4, delay_sum=400)
    busy = delays("UA", 2, 10, cancelled=2, late=4, delay_sum=160)
    summaries = summarise([few, busy, delays("AA", 1, 3, cancelled=3), delays("UA", 3, 6, delay_sum=0)])
    assert [summary.carrier for summary in summaries] == ["UA", "AA"]
    united, american = summaries
    assert (united.flights, united.cancelled, united.late, united.max_delay) == (20, 2, 4, 400)
    assert united.mean_delay == 560 / 18
    assert united.late_share == 4 / 18
    assert united.cancelled_share == 2 / 20
    assert united.worst_day is busy
    assert (american.mean_delay, american.late_share, american.max_delay, american.worst_day) == (None,) * 4
    assert american.cancelled_share == 1.0
