"""The flight table read without Spark: all of it once, compared with facts counted from the CSV file by other means."""

import json
from pathlib import Path

import pytest

from odradek.spark_jobs.flight_data import (
    COLUMNS,
    FLIGHT_COUNT,
    Flight,
    airline_names,
    extract_table,
    order_of,
    read_flights,
    record_of,
    records_in_order,
)


@pytest.fixture(scope="module")
def flights() -> list[Flight]:
    return list(read_flights())


def test_the_first_row_of_the_table(flights: list[Flight]) -> None:
    """Text columns stay text, all others are numbers: the table's first line, as the package prints it."""
    line = "2013,1,1,517,515,2,830,819,11,UA,1545,N14228,EWR,IAH,227,1400,5,15,2013-01-01T10:00:00Z"
    assert ",".join(str(value) for value in flights[0].values()) == line
    texts = [name for name, value in flights[0].items() if isinstance(value, str)]
    assert texts == ["carrier", "tailnum", "origin", "dest", "time_hour"]


def test_counts_and_missing_values(flights: list[Flight]) -> None:
    """336,776 rows; `NA` stands 8,255 times for a departure that never was, 2,512 times for an unknown aircraft."""
    assert len(flights) == FLIGHT_COUNT == 336_776
    missing = {name: sum(flight[name] is None for flight in flights) for name in COLUMNS}
    assert {name: count for name, count in missing.items() if count} == {
        "dep_time": 8_255,
        "dep_delay": 8_255,
        "arr_time": 8_713,
        "arr_delay": 9_430,
        "tailnum": 2_512,
        "air_time": 9_430,
    }
    assert all((flight["dep_time"] is None) == (flight["dep_delay"] is None) for flight in flights)


def test_the_event_order_is_total(flights: list[Flight]) -> None:
    """No two flights share hour, carrier and number, so every sort by them gives one order."""
    assert len({order_of(flight) for flight in flights}) == FLIGHT_COUNT


def test_records_in_order(flights: list[Flight]) -> None:
    """Records are keyed by carrier, hold the row as JSON with nulls, and come in event order, the first N of them."""
    records = records_in_order(20_000)
    ordered = sorted(flights, key=order_of)
    assert [json.loads(value) for _, value in records] == ordered[:20_000]
    assert [key.decode() for key, _ in records] == [flight["carrier"] for flight in ordered[:20_000]]
    assert any(b'"dep_time":null' in value for _, value in records)


def test_a_record_keeps_the_column_order(flights: list[Flight]) -> None:
    """The JSON object lists the columns as the table does, without spaces."""
    key, value = record_of(flights[0])
    assert key == b"UA"
    assert value.startswith(b'{"year":2013,"month":1,"day":1,"dep_time":517,')
    assert list(json.loads(value)) == list(COLUMNS)


def test_airline_names() -> None:
    """Names come without legal forms, which is all that is taken off."""
    names = airline_names()
    assert len(names) == 16
    assert (names["UA"], names["WN"], names["FL"]) == ("United Air Lines", "Southwest Airlines", "AirTran Airways")
    assert (names["B6"], names["MQ"]) == ("JetBlue Airways", "Envoy Air")


def test_extract_table(tmp_path: Path) -> None:
    """Spark gets the CSV as a file in the directory it names."""
    path = extract_table(tmp_path)
    assert path == tmp_path / "flights.csv"
    with path.open(encoding="utf-8") as table:
        assert next(table).rstrip("\n").split(",") == list(COLUMNS)
