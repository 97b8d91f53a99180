"""kafka-python: `send` from one thread, its own thread sends, then every future is asked for its result; and `poll`.

Without a key it takes a random partition for each record, unless it is given its `StickyPartitioner`, with which it was
faster (55,000 against 46,000 records/s), so it is given that. Its checksum is that of the crc32c package, in C.

`poll` with 10,000 records was faster than iteration (119,000 to 158,000 against 113,000 to 121,000 records/s of 100 B).
"""

from importlib import import_module
from importlib.metadata import version
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from benchmarks.contenders.client_load import PARTITION_COUNT, Pair
from benchmarks.contenders.job import (
    BATCH_BYTES,
    DELIVERY_TIMEOUT_S,
    LINGER_MS,
    Client,
    ContenderFailed,
    Job,
    Reading,
    Stopwatch,
    Timing,
)
from benchmarks.contenders.reading import BATCH_RECORDS, SILENCE_S, group_of, read, went_silent

STICKY: Any = import_module("kafka.partitioner.sticky").StickyPartitioner


def send(job: Job) -> Timing:
    warm, timed = job.load.split()
    with producer_of(job) as producer:
        send_all(producer, job.load.topic, warm)
        with Stopwatch() as watch:
            send_all(producer, job.load.topic, timed)
    return watch.timing


def producer_of(job: Job) -> KafkaProducer:
    return KafkaProducer(
        bootstrap_servers=job.bootstrap,
        acks="all",
        enable_idempotence=True,
        linger_ms=LINGER_MS,
        batch_size=BATCH_BYTES,
        partitioner=STICKY(),
    )


def send_all(producer: KafkaProducer, topic: str, records: list[Pair]) -> None:
    futures = [producer.send(topic, value, key) for value, key in records]
    for future in futures:
        if future.get(DELIVERY_TIMEOUT_S).offset < 0:
            raise ContenderFailed("kafka-python acknowledged a record without an offset")


def poll(job: Job) -> Reading:
    consumer = consumer_of(job)
    reading = read(job.load, lambda wanted: take_polled(consumer, wanted))
    consumer.close()
    return reading


def consumer_of(job: Job) -> KafkaConsumer:
    consumer = KafkaConsumer(
        bootstrap_servers=job.bootstrap, group_id=group_of(job), auto_offset_reset="earliest", check_crcs=True
    )
    consumer.assign([TopicPartition(job.load.topic, number) for number in range(PARTITION_COUNT)])
    return consumer


def take_polled(consumer: KafkaConsumer, wanted: int) -> int:
    count = total = 0
    while count < wanted:
        found = consumer.poll(timeout_ms=int(SILENCE_S * 1000), max_records=min(BATCH_RECORDS, wanted - count))
        if not found:
            raise went_silent("kafka-python", count, wanted)
        for records in found.values():
            for record in records:
                total += record.offset + record.timestamp + record.key[-1] + record.value[-1]
            count += len(records)
    return total


def client() -> Client:
    if import_module("kafka.record.util").crc32c_c is None:
        raise ContenderFailed(
            "kafka-python runs without the crc32c package: install it, or it is slower than it need be"
        )
    return Client(
        "kafka-python",
        version("kafka-python"),
        {"send": send},
        "with crc32c",
        consuming={"poll": poll},
    )
