"""Spark's Kafka source on topics with transactions: batch and streaming read what is committed, once each, and get past
aborted records and markers, also where these are all there is, or the last there is.

Spark reads by offsets: it cuts ranges of them, asks for a record at each, and takes what it cannot get for lost data,
unless the broker's answers move it past that.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

import pytest
from kafka import KafkaAdminClient
from pyspark.sql import SparkSession

from tests.compat.clusters import Ours, broker_count
from tests.compat.spark_source import read, shared_session
from tests.compat.transactional_clients import TransactionalProducer, aiokafka, confluent_kafka

pytestmark = [
    pytest.mark.compat,
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    # pyspark leaves the sockets of collect() to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

COMMITTED: Final = {"kafka.isolation.level": "read_committed"}
SIZE: Final = 10
"""Records of a transaction, in one partition."""
TRANSACTIONS: Final = 8
OFFSETS: Final = TRANSACTIONS * (SIZE + 1)
"""Of the partition that `fill` writes: with a marker for each transaction."""
OFFSETS_A_TRIGGER: Final = 7
"""Less than a transaction: some micro-batches have aborted records only, and some begin or end at a marker."""
STREAM_S: Final = 120


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with shared_session() as session:
        yield session


def producer_for(broker: Ours, topic: str) -> AbstractContextManager[TransactionalProducer]:
    """One for a new topic of three partitions."""
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    try:
        admin.create_topics({topic: {"num_partitions": 3, "replication_factor": broker_count(broker)}})
    finally:
        admin.close()
    return confluent_kafka(broker.bootstrap, f"writer-of-{topic}")


def send(producer: TransactionalProducer, topic: str, partition: int, name: str) -> list[str]:
    values = [f"{name}-{number}" for number in range(SIZE)]
    for value in values:
        producer.send(topic, value.encode(), partition)
    return values


def fill(producer: TransactionalProducer, topic: str, label: str = "") -> list[str]:
    """Transactions in partition 0, every second of which is aborted, the last too; one that is aborted is all there is
    in partition 1, and partition 2 is empty. Returns what is committed."""
    expected: list[str] = []
    for number in range(TRANSACTIONS):
        producer.begin()
        values = send(producer, topic, 0, f"{label}{number}")
        if number == TRANSACTIONS - 1:
            send(producer, topic, 1, f"{label}alone")
        if number % 2:
            producer.abort()
        else:
            producer.commit()
            expected += values
    return expected


def values_of(rows: Sequence[object]) -> list[str]:
    return sorted(bytes(row["value"]).decode() for row in rows)  # type: ignore[index]


@pytest.mark.parametrize("fail_on_data_loss", ["true", "false"])
def test_a_table_has_what_is_committed(spark: SparkSession, broker: Ours, fail_on_data_loss: str) -> None:
    topic = f"spark-table-{fail_on_data_loss}"
    with producer_for(broker, topic) as producer:
        expected = fill(producer, topic)
    options = {"failOnDataLoss": fail_on_data_loss}
    rows = read(spark, broker, topic, **options, **COMMITTED).select("value").collect()
    assert values_of(rows) == sorted(expected)
    assert read(spark, broker, topic, **options).count() == (TRANSACTIONS + 1) * SIZE


def test_ranges_may_begin_and_end_at_markers_and_aborted_records(spark: SparkSession, broker: Ours) -> None:
    topic = "spark-ranges-of-transactions"
    with producer_for(broker, topic) as producer:
        fill(producer, topic)
    found = [
        read(
            spark, broker, topic, startingOffsets=f'{{"{topic}": {{"0": {start}, "1": -2, "2": -2}}}}',
            endingOffsets=f'{{"{topic}": {{"0": {end}, "1": -1, "2": -1}}}}', **COMMITTED,
        ).count()
        for start, end in (
            (SIZE, SIZE + 1),  # the marker of a commit
            (SIZE - 1, 2 * SIZE),  # one record, its marker, and aborted records
            (OFFSETS - 1, OFFSETS),  # the marker of an abort, the last there is
            (SIZE + 2, SIZE + 4),  # in the middle of aborted records
        )
    ]  # fmt: skip
    assert found == [0, 1, 0, 0]


def test_an_open_transaction_ends_the_table(spark: SparkSession, broker: Ours) -> None:
    """What comes after it is not there for this reader, whoever wrote it; nobody waits for it."""
    topic = "spark-open"
    with producer_for(broker, topic) as producer, aiokafka(broker.bootstrap, "waits") as other:
        expected = fill(producer, topic)
        other.begin()
        in_time = send(other, topic, 0, "open")  # each is acknowledged before the next
        producer.begin()
        later = send(producer, topic, 0, "later")
        producer.commit()
        assert values_of(read(spark, broker, topic, **COMMITTED).collect()) == sorted(expected)
        other.commit()
        rows = read(spark, broker, topic, **COMMITTED).collect()
        assert values_of(rows) == sorted(expected + in_time + later)


def test_a_stream_reads_what_is_committed_once_and_ends(spark: SparkSession, broker: Ours, tmp_path: Path) -> None:
    """In micro-batches smaller than a transaction, and on from the checkpoint, where the last is a marker."""
    topic = "spark-stream-of-transactions"
    source = {
        "kafka.bootstrap.servers": broker.bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(OFFSETS_A_TRIGGER),
        **COMMITTED,
    }

    def run() -> None:
        """Until what was there at its start is through."""
        frame = spark.readStream.format("kafka").options(**source).load().select("value")
        query = (
            frame.writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "sink"))
        )
        assert query.awaitTermination(STREAM_S), query.lastProgress

    def found() -> list[str]:
        return values_of(spark.read.parquet(str(tmp_path / "sink")).collect())

    with producer_for(broker, topic) as producer:
        expected = fill(producer, topic)
        run()
        assert found() == sorted(expected)
        run()
        assert found() == sorted(expected)
        expected += fill(producer, topic, "more-")
        run()
        assert found() == sorted(expected)
