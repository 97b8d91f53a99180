"""One Spark session for all tests here: starting one takes about five seconds on two cores."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from odradek.spark_jobs.session import open_session


@pytest.fixture(scope="session")
def session() -> Iterator[SparkSession]:
    """A local session as the jobs open it, with two threads."""
    opened = open_session("odradek tests", master="local[2]", shuffle_partitions=2)
    yield opened
    opened.stop()
