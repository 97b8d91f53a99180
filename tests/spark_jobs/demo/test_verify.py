"""What is read of topics with transactions, the statistics without Spark, by hand-computed values, and the comparison,
which must see every difference."""

import asyncio
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from odradek import Producer, serving_in_thread
from odradek.spark_jobs.daily import DailyDelays
from odradek.spark_jobs.demo.load import create_topics
from odradek.spark_jobs.demo.verify import Results, differences, read_records, statistics_without_spark
from odradek.spark_jobs.flight_data import Flight

DAY = date(2013, 7, 10)
KEY = ("UA", DAY)
RESULT = DailyDelays("UA", DAY, 5, 1, 2, 125, 31.25, 87.25, 100)


def flights(*delays: int | None, time_hour: str = "2013-07-10T23:00:00Z") -> list[Flight]:
    """Flights of one carrier; None for a cancelled one."""
    return [{"carrier": "UA", "time_hour": time_hour, "dep_delay": delay} for delay in delays]


def test_statistics_of_one_day() -> None:
    """Four departures and a cancelled flight: -4, 14, 15 and 100 minutes, of which the last two are late."""
    assert differences({KEY: RESULT}, statistics_without_spark(flights(100, -4, None, 15, 14))) == []


def test_statistics_of_one_departure_and_of_none() -> None:
    """One delay is mean, percentile and maximum; without a departure there is none of them."""
    one = DailyDelays("UA", DAY, 1, 0, 0, 7, 7.0, 7.0, 7)
    none = DailyDelays("UA", date(2013, 7, 11), 2, 2, 0, 0, None, None, None)
    found = statistics_without_spark(flights(7) + flights(None, None, time_hour="2013-07-11T00:00:00Z"))
    assert found == {KEY: one, ("UA", date(2013, 7, 11)): none}


def test_equal_results_do_not_differ() -> None:
    """Also when a float differs in the last digit, as another order of adding makes it."""
    assert RESULT.mean_delay is not None
    assert differences({KEY: RESULT}, {KEY: replace(RESULT, mean_delay=RESULT.mean_delay * (1 + 1e-12))}) == []


@pytest.mark.parametrize(
    "changed",
    [
        replace(RESULT, flights=6),
        replace(RESULT, cancelled=0),
        replace(RESULT, late=3),
        replace(RESULT, delay_sum=124),
        replace(RESULT, mean_delay=31.2500001),
        replace(RESULT, mean_delay=None),
        replace(RESULT, p95_delay=87.0),
        replace(RESULT, max_delay=None),
    ],
)
def test_a_changed_value_is_named(changed: DailyDelays) -> None:
    """One line, with carrier, day and the name of the value."""
    (name,) = [name for name in DailyDelays.__slots__ if getattr(changed, name) != getattr(RESULT, name)]
    (line,) = differences({KEY: RESULT}, {KEY: changed})
    assert line.startswith(f"UA 2013-07-10: {name} is ")


def test_missing_and_unexpected_results_are_named() -> None:
    """A lost result and one too many are differences, too."""
    other: Results = {("AA", DAY): replace(RESULT, carrier="AA")}
    assert differences({KEY: RESULT}, other) == ["AA 2013-07-10: a result without flights", "UA 2013-07-10: no result"]


# -- the topic -------------------------------------------------------------------------------------------------------


async def write_transactions(bootstrap: str) -> None:
    """Partition 0: a and its marker, b, which is aborted, and its marker; partition 1: c and its marker."""
    async with Producer(bootstrap, transactional_id="some") as producer:
        async with producer.transaction() as txn:
            await txn.send_batch("some", [b"a"], partition=0)
            await txn.send_batch("some", [b"c"], partition=1)
        txn = producer.transaction()
        await txn.begin()
        await txn.send_batch("some", [b"b"], partition=0)
        await txn.abort()


@pytest.mark.compat
def test_a_topic_is_read_to_its_end_where_that_is_a_marker_or_aborted() -> None:
    with serving_in_thread(memory=True) as broker:
        create_topics(broker.bootstrap_servers, "some", partitions=3)
        asyncio.run(write_transactions(broker.bootstrap_servers))

        def found(*how: Any) -> list[tuple[int, int, bytes]]:
            records = read_records(broker.bootstrap_servers, "some", *how)
            return sorted((record.partition, record.offset, record.value) for record in records)

        a, b, c = (0, 0, b"a"), (0, 2, b"b"), (1, 0, b"c")
        assert found() == [a, b, c]
        assert found("read_committed") == [a, c]
        some = {0: range(1, 3), 1: range(0), 2: range(0)}
        assert found("read_uncommitted", some) == [b]
        assert found("read_committed", some) == []
        assert found("read_uncommitted", {0: range(1), 1: range(0), 2: range(0)}) == [a]
