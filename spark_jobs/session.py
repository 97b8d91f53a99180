"""The Spark session of every job: Kafka connector, UTC, and sizes for a laptop.

Connector: pyspark 4.0.x runs with `spark-sql-kafka-0-10_2.13:4.0.0` (it brings kafka-clients 3.9); the Ivy that pyspark
bundles resolves it on first use. `python -m odradek.spark_jobs.session` does only that, so a set-up step can get it
over with.

Time zone: the session is UTC, whatever the machine is. Spark cuts day windows at UTC midnight in any case; the zone
decides how a day is written, and must not differ between two runs of a query.
"""

import os
import shutil
import sys

import click
from pyspark.sql import SparkSession

CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"


def open_session(app_name: str, *, master: str = "local[*]", shuffle_partitions: int = 4) -> SparkSession:
    """A session with the Kafka connector; `shuffle_partitions` is also the number of state stores of a new query.

    Raises click.ClickException when there is no Java.
    """
    if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
        raise click.ClickException("Spark needs Java 17 or newer: install a JRE, or let JAVA_HOME name one.")
    builder = SparkSession.builder.appName(app_name).master(master)
    for name, value in session_options(shuffle_partitions).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    # WARN would repeat, per batch, that Kafka clients' options like `group.id` were overridden by the connector.
    session.sparkContext.setLogLevel("ERROR")
    return session


def session_options(shuffle_partitions: int) -> dict[str, str]:
    """Spark's options by name; `docs/spark.md` gives the reasons."""
    return {
        "spark.jars.packages": CONNECTOR,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(shuffle_partitions),
        # Allowing several stateful operators makes Spark judge lateness by the watermark of one batch earlier, so that
        # a row may be late by the length of a batch, and still counts. There is only one here.
        "spark.sql.streaming.statefulOperator.allowMultiple": "false",
        # The driver and its blocks stay on this machine unless the master says otherwise.
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.pyspark.python": sys.executable,
    }


if __name__ == "__main__":
    open_session("odradek: resolve the Kafka connector").stop()
    print(f"Spark's Kafka connector is here: {CONNECTOR}")
