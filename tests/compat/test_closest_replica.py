"""Consumers read from the replica in their own rack (KIP-392): librdkafka and Java's client against three brokers.

librdkafka's statistics name the broker that it fetches a partition from, beside its leader. Java's client logs to whom
a leader sends it, together with an answer that holds no records, and it reads them all.
"""

import json
import re
import time
from collections.abc import Callable, Generator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from odradek.broker.replication.closest_replica import RACK_AWARE
from processes.apache_kafka import run_tool
from tests.compat.clusters import THREE_BROKERS, Ours, ours

pytestmark = [pytest.mark.compat, pytest.mark.three_brokers, pytest.mark.timeout(120)]

COUNT = 1_000
PATIENCE_S = 30.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Generator[Ours]:
    directory = tmp_path_factory.mktemp("closest")
    with ours(THREE_BROKERS, directory, **{"replica.selector.class": RACK_AWARE, "num.partitions": "1"}) as running:
        yield running


def send(cluster: Ours, topic: str, start: int, end: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for number in range(start, end):
        producer.produce(topic, b"value %d" % number)
    assert producer.flush(30) == 0


class Reader:
    """librdkafka in a rack: what it reads, and from whom."""

    def __init__(self, cluster: Ours, topic: str, rack: str, offset: int = 0) -> None:
        self.values: list[bytes] = []
        self.leader = self.read_from = -1
        self._topic = topic
        self._consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "client.rack": rack,
                "statistics.interval.ms": 100,
                "stats_cb": self._note,
            }
        )
        self._consumer.assign([TopicPartition(topic, 0, offset)])

    def _note(self, text: str) -> None:
        partition: dict[str, Any] = json.loads(text)["topics"].get(self._topic, {"partitions": {}})["partitions"]
        if "0" in partition:
            self.leader, self.read_from = partition["0"]["leader"], partition["0"]["broker"]

    def read_until(self, count: int, read_from: int | None = None) -> None:
        """Until it has so many records, and reads from this broker if one is given."""
        self._poll_while(lambda: len(self.values) < count or read_from not in (None, self.read_from))

    def hear_who_leads(self) -> None:
        """Until statistics have named the leader."""
        self._poll_while(lambda: self.leader < 0)

    def _poll_while(self, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while is_so():
            assert time.monotonic() < deadline, (len(self.values), self.leader, self.read_from)
            message = self._consumer.poll(0.1)
            if message is not None:
                assert message.error() is None, message.error()
                value = message.value()
                assert value is not None
                self.values.append(value)

    def close(self) -> None:
        self._consumer.close()


@pytest.mark.telling
def test_a_consumer_reads_from_its_rack_and_goes_on_there(cluster: Ours) -> None:
    """What there is, and what comes while it waits at the end."""
    send(cluster, "racks", 0, COUNT)
    readers = {number: Reader(cluster, "racks", f"rack-{number}") for number in (1, 2, 3)}
    try:
        for number, reader in readers.items():
            reader.read_until(COUNT, read_from=number)
        send(cluster, "racks", COUNT, 2 * COUNT)
        for number, reader in readers.items():
            reader.read_until(2 * COUNT, read_from=number)
            assert reader.values == [b"value %d" % each for each in range(2 * COUNT)]
        assert len({reader.leader for reader in readers.values()}) == 1
    finally:
        for reader in readers.values():
            reader.close()


def test_a_consumer_that_begins_at_the_end_waits_in_its_rack(cluster: Ours) -> None:
    """Apache Kafka sends it there whether or not there is anything to read."""
    send(cluster, "quiet", 0, 1)
    readers = {number: Reader(cluster, "quiet", f"rack-{number}", 1) for number in (1, 2, 3)}
    try:
        for number, reader in readers.items():
            reader.read_until(0, read_from=number)
        send(cluster, "quiet", 1, 2)
        for reader in readers.values():
            reader.read_until(1)
            assert reader.values == [b"value 1"]
    finally:
        for reader in readers.values():
            reader.close()


def test_a_rack_where_nobody_is_reads_from_the_leader(cluster: Ours) -> None:
    send(cluster, "elsewhere", 0, COUNT)
    reader = Reader(cluster, "elsewhere", "rack-9")
    try:
        reader.read_until(COUNT)
        reader.hear_who_leads()
        assert reader.read_from in (-1, reader.leader)
    finally:
        reader.close()


@pytest.mark.java
def test_javas_consumer_reads_from_its_rack(cluster: Ours) -> None:
    send(cluster, "java-racks", 0, COUNT)
    sent_to: dict[int, set[int]] = {}
    for number in (1, 2, 3):
        said = run_tool(
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            *("--bootstrap-server", cluster.bootstrap, "--command-property", f"client.rack=rack-{number}"),
            *("--topic", "java-racks", "--partition", "0", "--offset", "earliest"),
            *("--max-messages", str(COUNT), "--timeout-ms", "60000"),
            log_level="debug",
        )
        values = [line for line in said.splitlines() if re.fullmatch(r"value \d+", line)]
        assert values == [f"value {each}" for each in range(COUNT)]
        sent_to[number] = {
            int(broker_id) for broker_id in re.findall(r"preferred read replica for partition \S+-0 to (\d+)", said)
        }
    [leader] = [number for number, brokers in sent_to.items() if not brokers]
    assert {number: brokers for number, brokers in sent_to.items() if number != leader} == {
        number: {number} for number in (1, 2, 3) if number != leader
    }
