"""Spark for the compatibility tests: a session, and frames of its Kafka source."""

from collections.abc import Generator
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession

from odradek.spark_jobs.session import open_session
from tests.compat.clusters import Ours


@contextmanager
def shared_session() -> Generator[SparkSession]:
    """A session of two threads; where tests of the jobs have one already, it is theirs, and they stop it."""
    others = SparkSession.getActiveSession()
    session = open_session("odradek compat", master="local[2]", shuffle_partitions=2)
    yield session
    if others is None:
        session.stop()


def read(spark: SparkSession, broker: Ours, topic: str, **options: str) -> DataFrame:
    asked = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, "includeHeaders": "true", **options}
    return spark.read.format("kafka").options(**asked).load()
