"""Real consumers read a backlog with a large `fetch.min.bytes`: no answer waits while the log holds more.

The wait of a Fetch is longer here than a test may take, so that a single one fails it. The batches are of some 16 KB,
of which no number is exactly the limit of a partition.
"""

import time
from collections.abc import Callable
from typing import Final

import confluent_kafka
import kafka
import pytest

from tests.compat.clusters import Ours

pytestmark = pytest.mark.compat

TOPIC: Final = "backlog"
MEBIBYTE: Final = 1 << 20
COUNT: Final = 6 * 1024
"""Records of 1 KB."""
READ: Final = COUNT - 2 * 1024
"""What is left is less than a further answer may wait for."""
WAIT_MS: Final = 60_000
PATIENCE_S: Final = 20.0


def with_kafka_python(bootstrap: str) -> int:
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap,
        fetch_min_bytes=MEBIBYTE,
        fetch_max_wait_ms=WAIT_MS,
        request_timeout_ms=2 * WAIT_MS,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    try:
        consumer.assign([kafka.TopicPartition(TOPIC, 0)])
        count, deadline = 0, time.monotonic() + PATIENCE_S
        while count < READ and time.monotonic() < deadline:
            count += sum(map(len, consumer.poll(timeout_ms=200).values()))
        return count
    finally:
        consumer.close()


def with_confluent_kafka(bootstrap: str) -> int:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "backlogs",
            "fetch.min.bytes": MEBIBYTE,
            "fetch.wait.max.ms": WAIT_MS,
            "socket.timeout.ms": 2 * WAIT_MS,
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])
        count, deadline = 0, time.monotonic() + PATIENCE_S
        while count < READ and time.monotonic() < deadline:
            count += len(consumer.consume(500, 0.2))
        return count
    finally:
        consumer.close()


@pytest.mark.parametrize("read", [with_kafka_python, with_confluent_kafka])
def test_a_backlog_is_read_without_waits(broker: Ours, read: Callable[[str], int]) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap, batch_size=16_384, linger_ms=50)
    for _ in range(COUNT):
        producer.send(TOPIC, value=bytes(1000), partition=0)
    producer.flush()
    producer.close()
    assert read(broker.bootstrap) >= READ
