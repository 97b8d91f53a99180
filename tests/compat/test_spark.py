"""Spark's own Kafka sink and source against one broker and three: batch and streaming, values and offsets checked.

What the sink wrote is read by kafka-python, and what the source reads was partly written by kafka-python, so that no
mistake common to sink and source can hide. Spark uses no group; its sink is idempotent with acks=all by default.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tests.compat.clusters import Ours
from tests.compat.spark_source import read, shared_session

pytestmark = [
    pytest.mark.compat,
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    # pyspark leaves the sockets of collect() and first() to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

T0 = 1_700_000_000_000
TRIGGERS = 5


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with shared_session() as session:
        yield session


def numbers(spark: SparkSession, start: int, end: int) -> DataFrame:
    """Records for the sink: value `value <number>`, a hundred different keys, and a header."""
    return spark.range(start, end).select(
        f.concat(f.lit("key "), f.col("id") % 100).alias("key"),
        f.concat(f.lit("value "), f.col("id")).alias("value"),
        f.array(f.struct(f.lit("number").alias("key"), f.col("id").cast("string").cast("binary").alias("value"))).alias(
            "headers"
        ),
    )


def write(broker: Ours, frame: DataFrame, topic: str) -> None:
    options = {"kafka.bootstrap.servers": broker.bootstrap, "topic": topic, "includeHeaders": "true"}
    frame.write.format("kafka").options(**options).save()


def values_by_spark(frame: DataFrame) -> Counter[bytes]:
    """The values of a source's frame; the offsets of each partition are contiguous from 0."""
    rows = frame.select("partition", "offset", "value").collect()
    assert_contiguous([(row["partition"], row["offset"]) for row in rows])
    return Counter(bytes(row["value"]) for row in rows)


def values_by_kafka_python(broker: Ours, topic: str, count: int) -> Counter[bytes]:
    """`count` values of the topic, which holds no more; offsets are contiguous from 0."""
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id=None, auto_offset_reset="earliest")
    try:
        partitions = [TopicPartition(topic, index) for index in sorted(consumer.partitions_for_topic(topic) or ())]
        consumer.assign(partitions)
        assert sum(consumer.end_offsets(partitions).values()) == count
        places: list[tuple[int, int]] = []
        values: Counter[bytes] = Counter()
        while len(places) < count:
            polled = consumer.poll(timeout_ms=10_000, max_records=5_000)
            assert polled, f"{len(places)} of {count} records came"
            for records in polled.values():
                for record in records:
                    assert record.value is not None
                    values[record.value] += 1
                    places.append((record.partition, record.offset))
        assert_contiguous(places)
        return values
    finally:
        consumer.close()


def assert_contiguous(places: list[tuple[int, int]]) -> None:
    counts = Counter(partition for partition, _ in places)
    assert sorted(places) == [
        (partition, offset) for partition in sorted(counts) for offset in range(counts[partition])
    ]


def expected_values(start: int, end: int) -> Counter[bytes]:
    return Counter(b"value %d" % number for number in range(start, end))


@pytest.fixture(scope="module")
def written(spark: SparkSession, broker: Ours, record_count: int) -> str:
    """A topic that Spark's sink wrote."""
    write(broker, numbers(spark, 0, record_count), "spark-batch")
    return "spark-batch"


@pytest.mark.telling
def test_what_the_sink_wrote_is_there_once(broker: Ours, written: str, record_count: int) -> None:
    assert values_by_kafka_python(broker, written, record_count) == expected_values(0, record_count)


@pytest.mark.telling
def test_the_source_reads_a_topic_as_a_table(
    spark: SparkSession, broker: Ours, written: str, record_count: int
) -> None:
    """Keys, values and headers, and both partitions with all their offsets."""
    frame = read(spark, broker, written).cache()
    assert values_by_spark(frame) == expected_values(0, record_count)
    assert frame.select("partition").distinct().count() == 2
    number = f.substring(f.col("value").cast("string"), 7, 20)
    matching = (f.col("headers")[0]["key"] == "number") & (f.col("headers")[0]["value"].cast("string") == number)
    matching &= f.col("key").cast("string") == f.concat(f.lit("key "), number.cast("long") % 100)
    assert frame.where(matching).count() == record_count


def test_the_source_keeps_to_offsets_and_timestamps(spark: SparkSession, broker: Ours) -> None:
    """Records of kafka-python, one a second, from and to where the options say; the end is exclusive."""
    with KafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(100):
            producer.send("spark-ranges", b"value %d" % number, partition=0, timestamp_ms=T0 + number * 1_000)
        for number in range(50):
            producer.send("spark-ranges", b"other %d" % number, partition=1, timestamp_ms=T0 + number * 1_000)

    def found(**options: str) -> list[tuple[int, int]]:
        rows = read(spark, broker, "spark-ranges", **options).select("partition", "offset").collect()
        return sorted((row["partition"], row["offset"]) for row in rows)

    assert found(
        startingOffsets='{"spark-ranges": {"0": 40, "1": -2}}', endingOffsets='{"spark-ranges": {"0": 43, "1": 2}}'
    ) == [(0, 40), (0, 41), (0, 42), (1, 0), (1, 1)]
    assert found(
        startingOffsetsByTimestamp=f'{{"spark-ranges": {{"0": {T0 + 97_500}, "1": {T0 + 49_000}}}}}',
        endingOffsets="latest",
    ) == [(0, 98), (0, 99), (1, 49)]


def test_a_stream_goes_from_topic_to_topic_and_on_from_its_checkpoint(
    spark: SparkSession, broker: Ours, record_count: int, tmp_path: Path
) -> None:
    """availableNow in several micro-batches; again without news; and again with as many records more."""

    def run() -> list[int]:
        """The sizes of the micro-batches of one run, until what was there at its start is through."""
        source = {
            "kafka.bootstrap.servers": broker.bootstrap,
            "subscribe": "spark-from",
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": str(record_count // TRIGGERS),
        }
        sink = {
            "kafka.bootstrap.servers": broker.bootstrap,
            "topic": "spark-to",
            "checkpointLocation": str(tmp_path / "checkpoint"),
        }
        frame = spark.readStream.format("kafka").options(**source).load().select("key", "value")
        query = frame.writeStream.format("kafka").options(**sink).trigger(availableNow=True).start()
        query.awaitTermination()
        return [progress.numInputRows for progress in query.recentProgress]

    write(broker, numbers(spark, 0, record_count), "spark-from")
    batches = run()
    assert sum(batches) == record_count
    assert len(batches) >= TRIGGERS
    assert values_by_kafka_python(broker, "spark-to", record_count) == expected_values(0, record_count)
    assert sum(run()) == 0
    write(broker, numbers(spark, record_count, 2 * record_count), "spark-from")
    assert sum(run()) == record_count
    assert values_by_spark(read(spark, broker, "spark-to")) == expected_values(0, 2 * record_count)
