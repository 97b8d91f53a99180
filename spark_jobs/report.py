"""The job `report`: the result topic -> the last result per carrier and day, for `table` and `picture`."""

from pyspark.sql import SparkSession

from odradek.spark_jobs.daily import DailyDelays, reduce_to_last
from odradek.spark_jobs.sources import Kafka, read_topic
from odradek.spark_jobs.transforms import last_results


def read_results(session: SparkSession, kafka: Kafka, result_topic: str) -> list[DailyDelays]:
    """The last result per carrier and day, sorted by both."""
    rows = last_results(read_topic(session, kafka, result_topic)).collect()
    return list(reduce_to_last(DailyDelays.from_json(row["value"]) for row in rows).values())
