"""`python -m odradek.spark_jobs.flights load | delays | report`: the jobs' commands. docs/spark.md shows each."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click
from pyspark.sql.streaming.listener import StreamingQueryProgress

from odradek.spark_jobs.delays import DEAD_LETTERS, DelayOptions, run_delays
from odradek.spark_jobs.load import LoadOptions, load
from odradek.spark_jobs.report import read_results
from odradek.spark_jobs.session import open_session
from odradek.spark_jobs.sources import AVAILABLE_NOW, Kafka
from odradek.spark_jobs.table import print_table

KAFKA_HELP = "NAME=VALUE for all Kafka clients, with Kafka's own names (security.protocol, …); repeatable."
Command = TypeVar("Command", bound=Callable[..., None])


def _common_options(command: Command) -> Command:
    for option in (
        click.option("--master", default="local[*]", show_default=True, help="Spark master."),
        click.option("--kafka", "pairs", multiple=True, callback=_as_pairs, help=KAFKA_HELP),
        click.option("--bootstrap-servers", default="127.0.0.1:9092", show_default=True, metavar="HOST:PORT,…"),
    ):
        command = option(command)
    return command


def _as_pairs(_context: click.Context, _parameter: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE")
        pairs[name] = value
    return pairs


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Delay statistics of New York's flights of 2013, over a Kafka-compatible broker."""


@main.command("load")
@_common_options
@click.option("--topic", default="flights", show_default=True)
@click.option("--limit", type=click.IntRange(min=1), help="Only the first N flights by time.")
@click.option("--late-by-days", type=click.IntRange(min=1), help="Afterwards one more row, so late.")
def load_command(
    master: str, pairs: dict[str, str], bootstrap_servers: str, topic: str, limit: int | None, late_by_days: int | None
) -> None:
    """Writes the flights to a topic of one partition, ordered by time."""
    session = open_session("odradek: load flights", master=master)
    row_count = load(session, LoadOptions(Kafka(bootstrap_servers, pairs), topic, limit, late_by_days))
    click.echo(f"{row_count:,} flights written to {topic}")


@main.command("delays")
@_common_options
@click.option("--topic", default="flights", show_default=True)
@click.option("--result-topic", default="flight-delays", show_default=True)
@click.option("--dead-letter-topic", default="flights-dead-letters", show_default=True)
@click.option("--checkpoint", required=True, help="Directory for progress and state; it belongs to these topics.")
@click.option("--trigger", default=AVAILABLE_NOW, show_default=True, help="That, or an interval like '10 seconds'.")
@click.option("--max-offsets-per-trigger", type=click.IntRange(min=1), default=24_000, show_default=True)
@click.option("--starting-offsets", default="earliest", show_default=True, help="Where a new checkpoint begins.")
@click.option("--shuffle-partitions", type=click.IntRange(min=1), default=4, show_default=True)
def delays_command(
    master: str,
    pairs: dict[str, str],
    bootstrap_servers: str,
    topic: str,
    result_topic: str,
    dead_letter_topic: str,
    checkpoint: str,
    trigger: str,
    max_offsets_per_trigger: int,
    starting_offsets: str,
    shuffle_partitions: int,
) -> None:
    """Streams delay statistics per carrier and day to a result topic.

    Rows that do not parse go to the dead-letter topic, with the reason. The checkpoint is created on the first run and
    resumed from afterwards; the number of shuffle partitions stays what it was on the first run.
    """
    options = DelayOptions(
        kafka=Kafka(bootstrap_servers, pairs),
        topic=topic,
        result_topic=result_topic,
        dead_letter_topic=dead_letter_topic,
        checkpoint=checkpoint,
        trigger=trigger,
        max_offsets_per_trigger=max_offsets_per_trigger,
        starting_offsets=starting_offsets,
    )
    session = open_session("odradek: flight delays", master=master, shuffle_partitions=shuffle_partitions)
    totals = run_delays(session, options, _print_progress)
    click.echo(f"{totals.row_count:,} rows in {totals.batch_count} micro-batches")
    click.echo(f"rows dropped by watermark: {totals.dropped_by_watermark}")
    click.echo(f"rows sent to {dead_letter_topic}: {totals.dead_letter_count}")


def _print_progress(progress: StreamingQueryProgress) -> None:
    if progress.name == DEAD_LETTERS:
        if progress.sink.numOutputRows > 0:
            click.echo(f"dead letters, batch {progress.batchId}: {progress.sink.numOutputRows}")
        return
    watermark = progress.eventTime.get("watermark", "none")
    click.echo(
        f"batch {progress.batchId}: {progress.numInputRows:,} rows, {progress.sink.numOutputRows:,} results, "
        f"watermark {watermark}, {progress.batchDuration / 1000:.1f} s"
    )


@main.command("report")
@_common_options
@click.option("--result-topic", default="flight-delays", show_default=True)
@click.option("--picture", type=click.Path(dir_okay=False, path_type=Path), default="flight-delays.png")
def report_command(
    master: str, pairs: dict[str, str], bootstrap_servers: str, result_topic: str, picture: Path
) -> None:
    """Prints the last result per carrier and day, summed up by carrier, and draws the year."""
    # Matplotlib takes half a second to import, which the other commands need not pay.
    from odradek.spark_jobs.picture import draw_year

    session = open_session("odradek: flight report", master=master)
    results = read_results(session, Kafka(bootstrap_servers, pairs), result_topic)
    if not results:
        raise click.ClickException(f"{result_topic} holds no results yet: run `delays` first.")
    print_table(results)
    draw_year(results, picture)
    click.echo(f"picture: {picture.resolve()}")


if __name__ == "__main__":
    main()
