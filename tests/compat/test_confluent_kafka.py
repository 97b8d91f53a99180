"""confluent-kafka (librdkafka) against one broker and three: idempotent or not, each codec, read back by `assign`."""

import time
from collections import Counter
from typing import Any

import confluent_kafka.admin
import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from tests.compat.clusters import Ours, broker_count, eventually
from tests.compat.watermarks import watermarks

pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]


def send(broker: Ours, topic: str, count: int, **settings: Any) -> None:
    errors: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            errors.append(error)

    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5, **settings})
    for number in range(count):
        producer.produce(topic, b"value %d" % number, key=b"%d" % (number % 100), on_delivery=delivered)
        if number % 1000 == 0:
            producer.poll(0)
    assert producer.flush(60) == 0
    assert errors == []


def read_back(broker: Ours, topic: str, count: int) -> Counter[bytes]:
    """All values, `count` of them. Without a coordinator: `assign` at explicit offsets, auto-commit off."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "unused", "enable.auto.commit": False})
    partitions = sorted(consumer.list_topics(topic, 10).topics[topic].partitions)

    def ends_now() -> dict[int, int]:
        return {index: watermarks(consumer, topic, index)[1] for index in partitions}

    eventually(lambda: sum(ends_now().values()), count)  # which is a moment later, unless acks=all
    ends = ends_now()
    consumer.assign([TopicPartition(topic, index, 0) for index in partitions])
    expected = dict.fromkeys(partitions, 0)
    values: Counter[bytes] = Counter()
    while expected != ends:
        left = sum(ends.values()) - sum(expected.values())
        for message in consumer.consume(min(left, 5000), 10):
            assert message.error() is None, message.error()
            index, value = message.partition(), message.value()
            assert index is not None
            assert value is not None
            assert message.offset() == expected[index]
            expected[index] += 1
            values[bytes(value)] += 1
    started = time.monotonic()
    consumer.close()
    assert time.monotonic() - started < 5, "it did not wait for a coordinator"
    return values


@pytest.mark.parametrize(
    "settings",
    [
        {},
        pytest.param({"enable.idempotence": True}, marks=pytest.mark.telling),
        {"acks": 0},
        {"acks": 1},
        {"compression.type": "gzip"},
        {"compression.type": "snappy"},
        {"compression.type": "lz4"},
        {"compression.type": "zstd"},
    ],
    ids=lambda settings: "-".join(map(str, settings.values())) or "defaults",
)
def test_produce_and_consume(broker: Ours, record_count: int, settings: dict[str, Any]) -> None:
    topic = "-".join(["rd", *map(str, settings), *map(str, settings.values())])
    send(broker, topic, record_count, **settings)
    assert read_back(broker, topic, record_count) == Counter(b"value %d" % number for number in range(record_count))


@pytest.mark.telling
def test_admin_calls(broker: Ours) -> None:
    module: Any = confluent_kafka.admin  # its annotations are incomplete
    admin = module.AdminClient({"bootstrap.servers": broker.bootstrap})
    replicas = broker_count(broker)
    new_topic = module.NewTopic("rd-admin", 3, replicas, config={"segment.bytes": "1048576"})
    for future in admin.create_topics([new_topic]).values():
        future.result(10)
    partitions = admin.list_topics("rd-admin", 10).topics["rd-admin"].partitions.values()
    assert [(len(each.replicas), len(each.isrs)) for each in partitions] == [(replicas, replicas)] * 3
    assert len({each.leader for each in partitions}) == replicas, "leaders are spread"
    resource = module.ConfigResource(module.ConfigResource.Type.TOPIC, "rd-admin")
    [described] = admin.describe_configs([resource]).values()
    assert described.result(10)["segment.bytes"].value == "1048576"
    for future in admin.delete_topics(["rd-admin"]).values():
        future.result(10)
    assert "rd-admin" not in admin.list_topics(timeout=10).topics, "asking for all topics sends trailing bytes"
