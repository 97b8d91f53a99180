"""Tests of the kind that a project has hundreds of: a topic of its own, records, a consumer in a group, an assertion.

TESTKIT_CLIENT is the client by which they do so, TESTKIT_TESTS how many there are. One cluster is for all of them, and
each test makes its clients and closes them.
"""

import asyncio
import os
import time
from collections.abc import Callable, Iterator

import confluent_kafka
import kafka as kafka_python
import pytest

from odradek import Consumer, Producer
from odradek.testing import Kafka, cluster

CLIENT = os.environ.get("TESTKIT_CLIENT", "Odradek")
TESTS = int(os.environ.get("TESTKIT_TESTS", "1"))
VALUES = [b"first", b"second", b"third"]
TIMEOUT_S = 10.0


@pytest.fixture(scope="session")
def kafka() -> Iterator[Kafka]:
    with cluster(brokers=3) as kafka:
        yield kafka


@pytest.fixture
def topic(kafka: Kafka, number: int) -> str:
    kafka.create_topic(f"orders-{number}")
    return f"orders-{number}"


@pytest.mark.parametrize("number", range(TESTS))
def test_what_is_produced_is_consumed(kafka: Kafka, topic: str) -> None:
    assert ROUND_TRIPS[CLIENT](kafka.bootstrap_servers, topic) == VALUES


# -- the clients: each produces the values, and returns what a member of a new group consumes --------------------------


def by_odradek(servers: str, topic: str) -> list[bytes | None]:
    async def round_trip() -> list[bytes | None]:
        async with Producer(bootstrap_servers=servers) as producer:
            for delivery in [await producer.send(topic, value) for value in VALUES]:
                await delivery
        seen: list[bytes | None] = []
        async with Consumer(
            bootstrap_servers=servers, group_id=topic, topics=[topic], auto_offset_reset="earliest"
        ) as consumer:
            deadline_s = time.monotonic() + TIMEOUT_S
            while len(seen) < len(VALUES) and time.monotonic() < deadline_s:
                seen += [record.value for record in await consumer.get_batch()]
        return seen

    return asyncio.run(round_trip())


def by_kafka_python(servers: str, topic: str) -> list[bytes | None]:
    with kafka_python.KafkaProducer(bootstrap_servers=servers, acks="all") as producer:
        for sent in [producer.send(topic, value) for value in VALUES]:
            sent.get(TIMEOUT_S)
    seen: list[bytes | None] = []
    with kafka_python.KafkaConsumer(
        topic, bootstrap_servers=servers, group_id=topic, auto_offset_reset="earliest"
    ) as consumer:
        deadline_s = time.monotonic() + TIMEOUT_S
        while len(seen) < len(VALUES) and time.monotonic() < deadline_s:
            for records in consumer.poll(timeout_ms=500).values():
                seen += [record.value for record in records]
    return seen


def by_confluent_kafka(servers: str, topic: str) -> list[bytes | None]:
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "acks": "all"})
    for value in VALUES:
        producer.produce(topic, value)
    assert producer.flush(TIMEOUT_S) == 0
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": servers, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    seen: list[bytes | None] = []
    try:
        consumer.subscribe([topic])
        deadline_s = time.monotonic() + TIMEOUT_S
        while len(seen) < len(VALUES) and time.monotonic() < deadline_s:
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                seen.append(message.value())
    finally:
        consumer.close()
    return seen


ROUND_TRIPS: dict[str, Callable[[str, str], list[bytes | None]]] = {
    "Odradek": by_odradek,
    "kafka-python": by_kafka_python,
    "confluent-kafka": by_confluent_kafka,
}
