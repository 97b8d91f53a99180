"""The jobs over a broker: load, stream, report, with dead letters, a row that is too late, and a second run.

Before that, without broker and Spark: how the queries' reports are counted. A broker is started by the command that the
demo uses. Everything runs in the tests' one Spark session, on the first flights of the year, in many small
micro-batches.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import cast

import pytest
from kafka import KafkaProducer
from kafka.consumer.fetcher import ConsumerRecord
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from odradek.spark_jobs.daily import DailyDelays, reduce_to_last
from odradek.spark_jobs.delays import DEAD_LETTERS, STATISTICS, DelayOptions, Totals, follow, run_delays
from odradek.spark_jobs.demo.broker_process import BrokerProcess, odradek_command
from odradek.spark_jobs.demo.load import create_topics
from odradek.spark_jobs.demo.verify import differences, read_back, read_records, statistics_without_spark
from odradek.spark_jobs.flight_data import order_of, read_flights, records_in_order
from odradek.spark_jobs.load import LoadOptions, load
from odradek.spark_jobs.report import read_results
from odradek.spark_jobs.sources import Kafka

pytestmark = [
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    # pyspark leaves the socket of each `collect` to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

# Two weeks, so that the watermark has long passed a row that is ten days late.
ROW_COUNT = 12_000
BATCH_ROWS = 4_000

STATE_COUNTS = (
    "numRowsTotal",
    "numRowsUpdated",
    "allUpdatesTimeMs",
    "numRowsRemoved",
    "allRemovalsTimeMs",
    "commitTimeMs",
    "memoryUsedBytes",
    "numShufflePartitions",
    "numStateStoreInstances",
)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    directory = tmp_path_factory.mktemp("broker")
    with BrokerProcess(odradek_command, directory / "data", directory / "log") as broker:
        broker.start()
        yield Kafka(broker.address, {"client.id": "odradek-tests"})


def delays(session: SparkSession, kafka: Kafka, checkpoint: Path, prefix: str) -> Totals:
    """Runs the job over the topics of that prefix."""
    return run_delays(
        session,
        DelayOptions(
            kafka=kafka,
            topic=f"{prefix}-flights",
            result_topic=f"{prefix}-delays",
            dead_letter_topic=f"{prefix}-dead",
            checkpoint=str(checkpoint),
            max_offsets_per_trigger=BATCH_ROWS,
        ),
    )


def load_flights(session: SparkSession, kafka: Kafka, prefix: str, late_by_days: int | None = None) -> int:
    create_topics(kafka.bootstrap_servers, *(f"{prefix}-{kind}" for kind in ("flights", "delays", "dead")))
    return load(session, LoadOptions(kafka, f"{prefix}-flights", ROW_COUNT, late_by_days))


def header(record: ConsumerRecord, name: str) -> str:
    (value,) = [value for key, value in record.headers if key == name and value is not None]
    return value.decode()


def progress(name: str, batch_id: int, rows: int, *, executed: bool = True, dropped: int = 0) -> StreamingQueryProgress:
    """As Spark reports it: for a batch that was executed, or for finding nothing new."""
    state: dict[str, object] = {**dict.fromkeys(STATE_COUNTS, 0), "operatorName": "", "customMetrics": dict[str, int]()}
    source: dict[str, object] = {
        **dict.fromkeys(("description", "startOffset", "endOffset", "latestOffset"), ""),
        **dict.fromkeys(("inputRowsPerSecond", "processedRowsPerSecond"), 0.0),
        "numInputRows": rows,
    }
    told: dict[str, object] = {
        "id": "c7e6a2b0-4a3c-4a55-9d57-3f0b8d6b6f00",
        "runId": "c7e6a2b0-4a3c-4a55-9d57-3f0b8d6b6f01",
        "name": name,
        "timestamp": "2026-01-01T00:00:00.000Z",
        "batchId": batch_id,
        "batchDuration": 1,
        "durationMs": {"latestOffset": 1, "triggerExecution": 1, **({"addBatch": 1} if executed else {})},
        "stateOperators": [{**state, "numRowsDroppedByWatermark": dropped}] if name == STATISTICS else [],
        "sources": [source],
        "sink": {"description": "", "numOutputRows": rows if executed else -1},
    }
    return StreamingQueryProgress.fromJson(told)


class ScriptedQuery:
    """A query that reports what it is told to, one list for each time that it is looked at, and then ends."""

    def __init__(self, name: str, *reports: list[StreamingQueryProgress]) -> None:
        self.name = name
        self.recentProgress: list[StreamingQueryProgress] = []
        self._reports = list(reports)

    def awaitTermination(self, timeout: int) -> bool:
        assert timeout > 0
        if self._reports:
            self.recentProgress = self._reports.pop(0)
        return not self._reports


def test_follow_counts_each_micro_batch_once() -> None:
    """Seen twice it counts once; finding nothing new is no micro-batch, though it bears the number of the next one."""
    first, idle = progress(STATISTICS, 0, 10), progress(STATISTICS, 1, 0, executed=False)
    second = progress(STATISTICS, 1, 7, dropped=2)
    statistics = ScriptedQuery(STATISTICS, [first], [first, idle], [idle, second])
    letters = ScriptedQuery(
        DEAD_LETTERS, [progress(DEAD_LETTERS, 0, 3)], [progress(DEAD_LETTERS, 1, 0, executed=False)]
    )
    seen: list[StreamingQueryProgress] = []
    totals = follow([cast(StreamingQuery, statistics), cast(StreamingQuery, letters)], seen.append)
    assert totals == Totals(batch_count=2, row_count=17, dropped_by_watermark=2, dead_letter_count=3)
    assert [(report.name, report.batchId) for report in seen] == [(STATISTICS, 0), (DEAD_LETTERS, 0), (STATISTICS, 1)]


def test_load_delays_and_dead_letters(session: SparkSession, kafka: Kafka, tmp_path: Path) -> None:
    """Results equal those without Spark, nothing is dropped, and what does not parse is in the dead-letter topic.

    Before that, Spark's sink wrote the same bytes in the same order as plain Python makes them. A second run finds
    nothing new; a third one sees only what came since, and updates the day it belongs to.
    """
    assert load_flights(session, kafka, "good") == ROW_COUNT
    loaded = read_records(kafka.bootstrap_servers, "good-flights")
    assert [(record.key, record.value) for record in loaded] == records_in_order(ROW_COUNT)
    bad = {b"{": "not a JSON object of the expected types", b'{"flight":1}': "carrier is missing"}
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        for value in bad:
            producer.send("good-flights", key=b"bad", value=value).get(timeout=30)

    totals = delays(session, kafka, tmp_path / "checkpoint", "good")
    # Four batches with rows, and Spark may add one without, to let the watermark catch up.
    assert totals.batch_count in {4, 5}
    assert (totals.row_count, totals.dropped_by_watermark, totals.dead_letter_count) == (ROW_COUNT + 2, 0, 2)
    expected = statistics_without_spark(islice(sorted(read_flights(), key=order_of), ROW_COUNT))
    results = read_results(session, kafka, "good-delays")
    assert differences(expected, {(result.carrier, result.day): result for result in results}) == []
    records = list(read_records(kafka.bootstrap_servers, "good-delays"))
    assert len(records) > len(expected), "no day was updated, so reducing to the last record was not tested"
    assert reduce_to_last(DailyDelays.from_json(record.value) for record in records) == {
        (result.carrier, result.day): result for result in results
    }
    letters = list(read_records(kafka.bootstrap_servers, "good-dead"))
    assert [(letter.key, letter.value) for letter in letters] == [(b"bad", value) for value in bad]
    assert [header(letter, "reason") for letter in letters] == list(bad.values())
    assert [header(letter, "source.offset") for letter in letters] == [str(ROW_COUNT), str(ROW_COUNT + 1)]

    again = delays(session, kafka, tmp_path / "checkpoint", "good")
    assert (again.row_count, again.dead_letter_count) == (0, 0)

    last = results[-1]
    one_more = f'{{"carrier":"{last.carrier}","time_hour":"{last.day}T23:00:00Z"}}'
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        producer.send("good-flights", value=one_more.encode()).get(timeout=30)
    third = delays(session, kafka, tmp_path / "checkpoint", "good")
    assert (third.row_count, third.dead_letter_count) == (1, 0)
    updated = read_results(session, kafka, "good-delays")[-1]
    assert (updated.flights, updated.cancelled) == (last.flights + 1, last.cancelled + 1)


def test_a_row_ten_days_late_is_the_only_one_dropped(session: SparkSession, kafka: Kafka, tmp_path: Path) -> None:
    """With topic and checkpoint of its own, the one extra row after all others shows up as 1."""
    assert load_flights(session, kafka, "late", late_by_days=10) == ROW_COUNT + 1
    totals = delays(session, kafka, tmp_path / "checkpoint", "late")
    assert (totals.row_count, totals.dropped_by_watermark, totals.dead_letter_count) == (ROW_COUNT + 1, 1, 0)
    assert read_back(kafka.bootstrap_servers, "late-dead", lambda _count: None).count == 0
