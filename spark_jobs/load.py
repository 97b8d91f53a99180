"""The job `load`: the flight table -> a topic, through Spark's Kafka sink, in one task and in order of event time."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from odradek.spark_jobs.sources import Kafka, flight_table, write_topic
from odradek.spark_jobs.transforms import as_flight_records, in_event_order, late_copy


@dataclass(frozen=True, slots=True)
class LoadOptions:
    kafka: Kafka
    topic: str
    row_count_max: int | None = None
    # Days that one extra row, written after all others, lies behind the last; None: no such row.
    late_by_days: int | None = None


def load(session: SparkSession, options: LoadOptions) -> int:
    """Writes the flights and returns how many rows were written. The late row goes last, as a write of its own."""
    with tempfile.TemporaryDirectory(prefix="odradek-flights-") as directory:
        flights = flight_table(session, Path(directory))
        row_count = _write_counted(in_event_order(flights, options.row_count_max), options)
        if options.late_by_days is not None:
            row_count += _write_counted(late_copy(flights, options.late_by_days, options.row_count_max), options)
    return row_count


def _write_counted(flights: DataFrame, options: LoadOptions) -> int:
    # Counted by a query of its own: Spark never fills an Observation of what the Kafka batch sink writes, and waiting
    # for it never ends (seen with pyspark 4.0.5).
    row_count = flights.count()
    write_topic(as_flight_records(flights), options.kafka, options.topic)
    return row_count
