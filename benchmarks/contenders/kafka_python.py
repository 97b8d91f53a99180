"""kafka-python: `send` from one thread, its own thread sends; then every future is asked for its result.

Without a key it takes a random partition for each record, unless it is given its `StickyPartitioner`, with which it was
faster (55,000 against 46,000 records/s), so it is given that. Its checksum is that of the crc32c package, in C.
"""

from importlib import import_module
from importlib.metadata import version
from typing import Any

from kafka import KafkaProducer

from benchmarks.contenders.client_load import Pair
from benchmarks.contenders.job import (
    BATCH_BYTES,
    DELIVERY_TIMEOUT_S,
    LINGER_MS,
    Client,
    ContenderFailed,
    Job,
    Stopwatch,
    Timing,
)

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


def client() -> Client:
    if import_module("kafka.record.util").crc32c_c is None:
        raise ContenderFailed(
            "kafka-python runs without the crc32c package: install it, or it is slower than it need be"
        )
    return Client("kafka-python", version("kafka-python"), {"send": send}, "with crc32c")
