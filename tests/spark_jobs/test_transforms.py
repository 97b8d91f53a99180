"""The transforms on DataFrames alone: hand-made rows for the rules, real flights for the statistics as a whole."""

# pyspark's createDataFrame has overloads for optional libraries that are not installed here.
# pyright: reportUnknownMemberType=false

import json
import os
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from odradek.spark_jobs.daily import DailyDelays, reduce_to_last
from odradek.spark_jobs.demo.verify import differences, statistics_without_spark
from odradek.spark_jobs.flight_data import COLUMNS, Flight, order_of, read_flights, record_of
from odradek.spark_jobs.transforms import (
    FLIGHT_SCHEMA,
    as_flight_records,
    as_result_records,
    daily_delays,
    dead_letters,
    good_flights,
    in_event_order,
    last_results,
    late_copy,
    parse_flights,
)

pytestmark = [
    pytest.mark.java,
    # pyspark leaves the socket of each `collect` to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

REAL_COUNT = 5_000
SOURCE_SCHEMA = "key binary, value binary, topic string, partition int, offset long"


def flight(**changed: int | str | None) -> Flight:
    """A flight that left a minute late, with some columns changed."""
    line = "2013,1,1,517,516,1,830,819,11,UA,1545,N14228,EWR,IAH,227,1400,5,16,2013-01-01T10:00:00Z"
    values: list[int | str] = [kind(text) for kind, text in zip(COLUMNS.values(), line.split(","), strict=True)]
    return {**dict(zip(COLUMNS, values, strict=True)), **changed}


def table(session: SparkSession, flights: Sequence[Flight]) -> DataFrame:
    return session.createDataFrame([tuple(row.values()) for row in flights], FLIGHT_SCHEMA)


def records(session: SparkSession, values: Sequence[bytes | None]) -> DataFrame:
    """Values as the Kafka source gives them: key `k`, topic `t`, partition 3, offsets from 100."""
    rows = [(b"k", value, "t", 3, 100 + index) for index, value in enumerate(values)]
    return session.createDataFrame(rows, SOURCE_SCHEMA)


def value_of(**changed: int | str | None) -> bytes:
    return record_of(flight(**changed))[1]


@pytest.fixture(scope="module")
def real_flights() -> list[Flight]:
    """Flights of the table's first days, some of them cancelled, in the table's order, which is not the event order."""
    return list(islice(read_flights(), REAL_COUNT))


# -- load ------------------------------------------------------------------------------------------------------------


def test_in_event_order_sorts_one_partition(session: SparkSession, real_flights: list[Flight]) -> None:
    """However the table is split, its flights end up in one partition, in the order that plain Python gives."""
    ordered = in_event_order(table(session, real_flights).repartition(4))
    assert ordered.select(F.spark_partition_id()).distinct().count() == 1
    expected = sorted(order_of(row) for row in real_flights)
    assert [(row["time_hour"], row["carrier"], row["flight"]) for row in ordered.collect()] == expected
    limited = in_event_order(table(session, real_flights).repartition(4), 10)
    assert [(row["time_hour"], row["carrier"], row["flight"]) for row in limited.collect()] == expected[:10]


def test_flight_records_equal_those_without_spark(session: SparkSession, real_flights: list[Flight]) -> None:
    """Key and value are byte for byte what `record_of` makes, nulls included; all go to partition 0."""
    assert any(row["dep_time"] is None for row in real_flights)
    found = as_flight_records(table(session, real_flights)).collect()
    assert [(row["key"].encode(), row["value"].encode()) for row in found] == [record_of(row) for row in real_flights]
    assert {row["partition"] for row in found} == {0}


def test_late_copy_is_the_last_flight_so_many_days_earlier(session: SparkSession) -> None:
    """Only the time moves; with a limit it is the last of the limited flights."""
    flights = [flight(time_hour=f"2013-03-{day:02}T23:00:00Z", flight=day) for day in (20, 31, 25)]
    (late,) = late_copy(table(session, flights), 10).collect()
    assert late.asDict() == {**flights[1], "time_hour": "2013-03-21T23:00:00Z"}
    (late,) = late_copy(table(session, flights), 10, row_count_max=2).collect()
    assert (late["flight"], late["time_hour"]) == (25, "2013-03-15T23:00:00Z")


# -- parsing ---------------------------------------------------------------------------------------------------------


def test_what_does_not_parse_is_rejected_with_a_reason(session: SparkSession) -> None:
    """Each kind of bad value gets its reason and does not end the query; rows beside it stay good."""
    types = "not a JSON object of the expected types"
    time = "time_hour is not a time like 2013-01-01T10:00:00Z"
    cases: list[tuple[bytes | None, str | None]] = [
        (value_of(), None),
        (None, "no value"),
        (b"", types),
        (b"{", types),
        (b"\xff\xfe", types),
        (b"[1]", types),
        (b'"text"', types),
        (b"null", types),
        (value_of() + b" x", types),
        (value_of() + b"}", types),
        (value_of() + value_of(), types),
        (value_of() + b"," + value_of(), types),
        (b" " + value_of() + b"\n", None),
        (value_of().replace(b'"', b"'"), types),
        (value_of().replace(b"517", b'"early"'), types),
        (value_of().replace(b"517", b"1e99"), types),
        (value_of(carrier=None), "carrier is missing"),
        (value_of(carrier="  "), "carrier is missing"),
        (b"{}", "carrier is missing"),
        (value_of(time_hour=None), "time_hour is missing"),
        (value_of(time_hour="yesterday"), time),
        (value_of(time_hour="2013-02-30T10:00:00Z"), time),
        (value_of(time_hour="2013-01-01T10:00:00"), time),
        (value_of(time_hour="+22013-01-01T10:00:00Z"), time),
        (b'{"carrier":"UA","time_hour":"2013-01-01T10:00:00Z","gate":7}', None),
    ]
    parsed = parse_flights(records(session, [value for value, _ in cases]))
    found = {row["offset"]: row["reason"] for row in parsed.select("offset", "reason").collect()}
    assert [(value, found[100 + index]) for index, (value, _) in enumerate(cases)] == cases
    assert good_flights(parsed).count() == 3


def test_dead_letters_keep_key_and_value_and_name_reason_and_origin(session: SparkSession) -> None:
    """Bytes pass unchanged, valid text or not; the headers say why and where from."""
    (letter,) = dead_letters(parse_flights(records(session, [value_of(), b"\xff{"]))).collect()
    assert (bytes(letter["key"]), bytes(letter["value"])) == (b"k", b"\xff{")
    assert {header["key"]: bytes(header["value"]).decode() for header in letter["headers"]} == {
        "reason": "not a JSON object of the expected types",
        "source.topic": "t",
        "source.partition": "3",
        "source.offset": "101",
    }


# -- statistics ------------------------------------------------------------------------------------------------------


def results_of(records_: DataFrame) -> list[DailyDelays]:
    daily = daily_delays(good_flights(parse_flights(records_)))
    return [DailyDelays.from_json(row["value"]) for row in as_result_records(daily).collect()]


def test_days_are_utc_whatever_zone_the_time_is_written_in(session: SparkSession) -> None:
    """The last second of a UTC day and the first of the next are apart, also when written with an offset."""
    times = ("2013-01-01T23:59:59Z", "2013-01-01T18:59:59-05:00", "2013-01-02T00:00:00Z", "2013-01-02T05:30:00+05:30")
    found = results_of(records(session, [value_of(time_hour=time) for time in times]))
    assert sorted((result.day.isoformat(), result.flights) for result in found) == [
        ("2013-01-01", 2),
        ("2013-01-02", 2),
    ]


def test_cancelled_flights_are_counted_apart(session: SparkSession) -> None:
    """They take no part in delays, and a day with nothing else has none; late are fifteen minutes, not fourteen."""
    gone = {"dep_time": None, "dep_delay": None}
    flights = [value_of(dep_delay=delay) for delay in (-4, 14, 15, 100)] + [value_of(**gone)]
    flights += [value_of(carrier="AA", **gone)]
    american, united = sorted(results_of(records(session, flights)), key=lambda result: result.carrier)
    assert (american.flights, american.cancelled, american.late, american.delay_sum) == (1, 1, 0, 0)
    assert (american.mean_delay, american.p95_delay, american.max_delay) == (None, None, None)
    assert (united.flights, united.cancelled, united.late, united.delay_sum) == (5, 1, 2, 125)
    assert (united.mean_delay, united.max_delay) == (31.25, 100)
    assert united.p95_delay == pytest.approx(15 + 0.85 * 85)


def test_real_flights_give_the_statistics_computed_without_spark(
    session: SparkSession, real_flights: list[Flight]
) -> None:
    """Over the table's first days, through JSON and back, every value of every carrier and day is equal."""
    found = reduce_to_last(results_of(records(session, [record_of(row)[1] for row in real_flights])))
    expected = statistics_without_spark(real_flights)
    assert len(expected) > 60
    assert differences(expected, found) == []


def test_result_records_are_keyed_by_carrier_and_day(session: SparkSession) -> None:
    """The key names what the value is about, so log compaction keeps one record per result."""
    daily = daily_delays(good_flights(parse_flights(records(session, [value_of(dep_delay=None, dep_time=None)]))))
    (record,) = as_result_records(daily).collect()
    assert record["key"] == "UA|2013-01-01"
    assert json.loads(record["value"])["mean_delay"] is None


# -- report ----------------------------------------------------------------------------------------------------------


def test_last_results_goes_by_offset_not_by_position(session: SparkSession) -> None:
    """Rows come from Spark in any order; the greatest offset of a key counts, as a number and not as text."""
    rows = [(b"a", b"new", 10), (b"a", b"old", 9), (b"b", b"only", 0)]
    topic = session.createDataFrame(rows, "key binary, value binary, offset long").repartition(2)
    assert sorted(row["value"] for row in last_results(topic).collect()) == ["new", "only"]


# -- the stream ------------------------------------------------------------------------------------------------------


def test_a_row_ten_days_late_is_dropped_by_the_watermark(session: SparkSession, tmp_path: Path) -> None:
    """On a stream of files, one a batch, a row that is one day late counts and rows that are ten days late do not.

    Late is what the watermark has passed after the batch before: the first late row comes right after the row that
    moved it, the second one after a row that did not.
    """
    times = ("2013-01-11T10", "2013-01-21T10", "2013-01-11T10", "2013-01-20T12", "2013-01-11T11")
    for number, time in enumerate(times):
        (tmp_path / f"{number}.json").write_bytes(value_of(time_hour=f"{time}:00:00Z"))
        # The source takes files by modification time.
        stamp = 1_700_000_000 + number
        os.utime(tmp_path / f"{number}.json", (stamp, stamp))
    source = session.readStream.schema("value string").option("maxFilesPerTrigger", 1).text(str(tmp_path))
    stream = daily_delays(good_flights(parse_flights(source.select(F.col("value").cast("binary").alias("value")))))
    query = (
        as_result_records(stream).writeStream.format("memory").queryName("late").outputMode("update")
        .trigger(availableNow=True).start()
    )  # fmt: skip
    try:
        assert query.awaitTermination(60)
        dropped = [operator.numRowsDroppedByWatermark for p in query.recentProgress for operator in p.stateOperators]
        assert sum(dropped) == 2
        last = reduce_to_last(DailyDelays.from_json(row["value"]) for row in session.table("late").collect())
        assert [(day.isoformat(), result.flights) for (_, day), result in last.items()] == [
            ("2013-01-11", 1),
            ("2013-01-20", 1),
            ("2013-01-21", 1),
        ]
    finally:
        query.stop()
        session.catalog.dropTempView("late")
