"""The session's options, and what it says when there is no Java."""

import shutil

import click
import pytest
from pyspark.sql import SparkSession

from odradek.spark_jobs.session import open_session


def nothing(_name: str) -> None:
    """Finds no command."""


def test_without_java_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence, before pyspark tries and fails."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(shutil, "which", nothing)
    with pytest.raises(click.ClickException, match="needs Java 17 or newer"):
        open_session("none")


@pytest.mark.java
def test_the_session_is_utc_with_the_connector(session: SparkSession) -> None:
    """Whatever the machine's zone is, times are read and written in UTC; the Kafka connector is loaded."""
    assert session.conf.get("spark.sql.session.timeZone") == "UTC"
    assert session.conf.get("spark.sql.shuffle.partitions") == "2"
    assert "spark-sql-kafka-0-10" in str(session.sparkContext.getConf().get("spark.jars"))
