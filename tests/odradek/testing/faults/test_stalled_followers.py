"""Followers that get nothing really leave the in-sync set, so that acks=all really fails, and come back afterwards."""

import logging
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, Message, Producer

from odradek.broker.replication import isr_writer
from odradek.testing import Kafka, cluster
from odradek.testing.hosting.hosted_cluster import HostedCluster


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    with cluster(topics=["others"], config={"min.insync.replicas": "2"}) as kafka:
        yield kafka


def in_sync(kafka: Kafka, topic: str, partition: int = 0) -> set[int]:
    async def ask(contents: object) -> set[int]:
        return set((await (await kafka.contents.admin()).describe_topic(topic)).partitions[partition].isr)

    return kafka.run(ask)


def told_of(producer: Producer, topic: str) -> KafkaError | None:
    """What the application is told of a record."""
    told: list[KafkaError | None] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        told.append(error)

    producer.produce(topic, b"a", on_delivery=delivered)
    producer.flush(10)
    [error] = told
    return error


def sizes_told(caplog: pytest.LogCaptureFixture) -> list[int]:
    """Of the in-sync sets that leaders have written, in their order: as "in sync are [1, 2], were [1]"."""
    return [text.split("were")[0].count(",") for text in caplog.messages if "in sync are" in text]


def test_acks_all_fails_while_followers_are_stalled_and_not_afterwards(
    kafka: Kafka, caplog: pytest.LogCaptureFixture
) -> None:
    kafka.create_topic("orders")
    settings = {"bootstrap.servers": kafka.bootstrap_servers, "retries": 0, "log_level": 0, "linger.ms": 0}
    producer = Producer(settings)
    assert told_of(producer, "orders") is None
    with kafka.faults.stall_follower("orders", 0) as fault:
        assert str(fault) == "stall followers of orders-0, 0 time(s)"
        fault.wait_for_count(2)
        kafka.wait_for(lambda: len(in_sync(kafka, "orders")) == 1, "the leader is alone")
        error = told_of(producer, "orders")
        assert error is not None
        assert error.code() == KafkaError.NOT_ENOUGH_REPLICAS
        kafka.produce("others", ["a"])
        assert in_sync(kafka, "others") == {1, 2, 3}
        assert told_of(Producer(settings | {"acks": 1}), "orders") is None
        caplog.set_level(logging.INFO, isr_writer.__name__)
    kafka.wait_for(lambda: in_sync(kafka, "orders") == {1, 2, 3}, "all are in sync")
    assert sizes_told(caplog) in ([2, 3], [3]), "nobody leaves again"
    assert told_of(producer, "orders") is None
    assert len(kafka.records("orders", 3)) == 3


def test_one_follower_is_stalled_in_two_partitions_and_comes_back_in_each_by_itself(kafka: Kafka) -> None:
    kafka.create_topic("bills", 2)
    for partition in (0, 1):
        kafka.move_leader("bills", partition, 1)
    first, second = (kafka.faults.stall_follower("bills", partition, broker=2) for partition in (0, 1))
    kafka.produce("bills", [{"value": b"a", "partition": 0}, {"value": b"b", "partition": 1}])
    first.wait_for_count(1)
    second.wait_for_count(1)
    kafka.wait_for(lambda: in_sync(kafka, "bills", 0) == in_sync(kafka, "bills", 1) == {1, 3}, "broker 2 is out")
    first.undo()
    kafka.wait_for(lambda: in_sync(kafka, "bills", 0) == {1, 2, 3}, "it is back")
    assert in_sync(kafka, "bills", 1) == {1, 3}
    second.undo()
    kafka.wait_for(lambda: in_sync(kafka, "bills", 1) == {1, 2, 3}, "it is back in both")


def test_what_was_on_its_way_when_the_stall_began_does_not_arrive(kafka: Kafka) -> None:
    """The follower's Fetch waits for records already, and is answered without them."""
    kafka.create_topic("quiet")
    kafka.move_leader("quiet", 0, 1)
    kafka.produce("quiet", ["a"])
    with kafka.faults.stall_follower("quiet", broker=3):
        kafka.produce("quiet", ["b"])
        hosted = kafka.cluster
        assert isinstance(hosted, HostedCluster)
        ends = {
            node_id: next(
                each.log.log_end_offset
                for each in hosted.brokers[node_id].place.context().partitions
                if each.topic == "quiet"
            )
            for node_id in (1, 2, 3)
        }
        assert ends == {1: 2, 2: 2, 3: 1}
