"""Transactions of kafka-python, aiokafka, confluent-kafka and Java, on one broker and three: all of one is there or
nothing, for every client that reads what is committed, and whoever comes second fences the first."""

from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import TopicPartition as ConfluentPartition
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition

from odradek.testing import Kafka, cluster
from processes.apache_kafka import java_command, quick_jvm
from processes.jars import APACHE_KAFKA, LATER_CLIENTS
from tests.compat.clusters import Ours, broker_count
from tests.compat.foreign_process import ForeignProcess
from tests.compat.groups_at import committed
from tests.compat.kit_cluster import KitCluster
from tests.compat.transactional_clients import Maker, aiokafka, confluent_kafka, kafka_python

pytestmark = [pytest.mark.compat, pytest.mark.only_in_compat, pytest.mark.timeout(300)]

CLIENTS: Final = [kafka_python, aiokafka, confluent_kafka]
PARTITIONS: Final = 3
COPIED: Final = 3_000
NEWEST_OF_3_9: Final = {"Produce": 11, "Fetch": 17, "EndTxn": 4, "TxnOffsetCommit": 4, "Metadata": 12}
COPIER: Final = "org.apache.kafka.tools.TransactionalMessageCopier"


def make_topic(bootstrap: str, name: str, partitions: int = PARTITIONS, replicas: int = 1) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        admin.create_topics({name: {"num_partitions": partitions, "replication_factor": replicas}})
    finally:
        admin.close()


def read_by_kafka_python(bootstrap: str, topic: str, partitions: int, isolation: str) -> list[bytes]:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, isolation_level=isolation, auto_offset_reset="earliest")
    try:
        places = [TopicPartition(topic, index) for index in range(partitions)]
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        values: list[bytes] = []
        while any((consumer.position(place) or 0) < ends[place] for place in places):
            for records in consumer.poll(timeout_ms=1_000).values():
                values += [record.value for record in records]
        return values
    finally:
        consumer.close()


def read_by_librdkafka(bootstrap: str, topic: str, partitions: int) -> list[bytes]:
    """What is committed."""
    consumer = ConfluentConsumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    try:
        consumer.assign([ConfluentPartition(topic, index, 0) for index in range(partitions)])
        values: list[bytes] = []
        ended = 0
        while ended < partitions:
            message: Any = consumer.poll(20.0)
            assert message is not None, f"no end of {topic} after {len(values)} records"
            if message.error():
                ended += 1
            else:
                values.append(message.value())
        return values
    finally:
        consumer.close()


@pytest.mark.parametrize("client", CLIENTS)
def test_a_transaction_is_all_there_or_not_at_all(broker: Ours, client: Maker) -> None:
    topic = f"all-or-nothing-{client.__name__}"
    make_topic(broker.bootstrap, topic, replicas=broker_count(broker))
    expected: list[bytes] = []
    with client(broker.bootstrap, topic) as producer:
        for number in range(6):
            values = [b"%d-%d" % (number, index) for index in range(4)]
            producer.begin()
            for index, value in enumerate(values):
                producer.send(topic, value, index % PARTITIONS)
            if number % 3 == 1:
                producer.abort()
            else:
                producer.commit()
                expected += values
    found = read_by_kafka_python(broker.bootstrap, topic, PARTITIONS, "read_committed")
    assert sorted(found) == sorted(expected)
    assert sorted(read_by_librdkafka(broker.bootstrap, topic, PARTITIONS)) == sorted(expected)
    assert len(read_by_kafka_python(broker.bootstrap, topic, PARTITIONS, "read_uncommitted")) == 24


@pytest.mark.parametrize("client", CLIENTS)
def test_offsets_count_with_their_transaction(broker: Ours, client: Maker) -> None:
    topic = f"with-offsets-{client.__name__}"
    make_topic(broker.bootstrap, topic, replicas=broker_count(broker))
    with client(broker.bootstrap, topic) as producer:
        for offset, is_commit in ((5, True), (7, False)):
            producer.begin()
            producer.send(topic, b"x", 0)
            producer.send_offsets(f"group-of-{topic}", topic, {0: offset, 2: offset})
            if is_commit:
                producer.commit()
            else:
                producer.abort()
    assert committed(broker.bootstrap, f"group-of-{topic}") == {0: 5, 2: 5}


@pytest.mark.parametrize("client", CLIENTS)
def test_whoever_comes_second_fences_the_first(broker: Ours, client: Maker) -> None:
    topic = f"fenced-{client.__name__}"
    make_topic(broker.bootstrap, topic, replicas=broker_count(broker))
    with client(broker.bootstrap, topic) as first:
        first.begin()
        first.send(topic, b"first", 0)
        with client(broker.bootstrap, topic) as second:
            second.begin()
            second.send(topic, b"second", 0)
            second.commit()
        with pytest.raises(Exception, match=r"(?i)fenced|epoch|newer"):
            first.commit()
    assert read_by_kafka_python(broker.bootstrap, topic, PARTITIONS, "read_committed") == [b"second"]


# -- Java: transaction version 2 --------------------------------------------------------------------------------------


def copier(
    bootstrap: str, source: str, target: str, directory: Path, *, clients: tuple[str, ...] = ()
) -> ForeignProcess:
    """Copies in transactions of 100, in a group, and aborts some at random, until it has copied all. `clients`: those
    of another release, as coordinates."""
    words = (
        *("--broker-list", bootstrap, "--input-topic", source, "--output-topic", target, "--input-partition", "-1"),
        *("--transaction-size", "100", "--transactional-id", f"copier-of-{source}"),
        *("--consumer-group", f"copiers-of-{source}"),
        *("--group-mode", "--use-group-metadata", "--enable-random-aborts", "--max-messages", str(COPIED)),
    )
    options = ("-Xmx96m", *(() if clients else quick_jvm()))
    jars = (clients, APACHE_KAFKA) if clients else (APACHE_KAFKA,)
    command = java_command(COPIER, *words, jvm_options=options, log_level="error", jars=jars)
    return ForeignProcess(command, directory)


def fill(bootstrap: str, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    try:
        for number in range(COPIED):
            producer.send(topic, b"%d" % number, partition=number % PARTITIONS)
        producer.flush()
    finally:
        producer.close()


def asked_of(kafka: Kafka) -> set[tuple[str, int]]:
    """What its brokers were asked: APIs and their versions."""
    return {(each.api, each.version) for each in kafka.requests()}


def assert_each_once(found: Collection[bytes]) -> None:
    assert sorted(map(int, found)) == list(range(COPIED))


def test_javas_copier_copies_each_record_exactly_once(broker: Ours, tmp_path: Path) -> None:
    source, target = "to-be-copied", "copied"
    for topic in (source, target):
        make_topic(broker.bootstrap, topic, replicas=broker_count(broker))
    fill(broker.bootstrap, source)
    with copier(broker.bootstrap, source, target, tmp_path) as process:
        process.printed_until(lambda lines: any("ShutdownComplete" in line for line in lines))
    assert_each_once(read_by_kafka_python(broker.bootstrap, target, PARTITIONS, "read_committed"))


def test_the_clients_of_kafka_4_4_use_what_is_new_in_it(tmp_path: Path) -> None:
    """They say whom they mean, and commit offsets in transactions by topic ids."""
    source, target = "to-be-copied", "copied"
    with cluster(brokers=1, topics={source: PARTITIONS, target: PARTITIONS}, subprocess=True) as kafka:
        fill(kafka.bootstrap_servers, source)
        with copier(kafka.bootstrap_servers, source, target, tmp_path, clients=LATER_CLIENTS) as process:
            process.printed_until(lambda lines: any("ShutdownComplete" in line for line in lines))
        assert_each_once(read_by_kafka_python(kafka.bootstrap_servers, target, PARTITIONS, "read_committed"))
        asked = asked_of(kafka)
    assert {("ApiVersions", 5), ("TxnOffsetCommit", 6), ("Produce", 13), ("EndTxn", 5), ("Fetch", 18)} <= asked


def test_java_speaks_the_older_protocol_to_a_broker_that_acts_as_an_older_release(tmp_path: Path) -> None:
    """By the versions of what it asks; it copies exactly once all the same."""
    source, target = "to-be-copied", "copied"
    with cluster(brokers=1, topics={source: PARTITIONS, target: PARTITIONS}, act_as="3.9", subprocess=True) as kafka:
        fill(kafka.bootstrap_servers, source)
        with copier(kafka.bootstrap_servers, source, target, tmp_path) as process:
            process.printed_until(lambda lines: any("ShutdownComplete" in line for line in lines))
        assert_each_once(read_by_kafka_python(kafka.bootstrap_servers, target, PARTITIONS, "read_committed"))
        asked = asked_of(kafka)
    assert {("Produce", 11), ("AddPartitionsToTxn", 3), ("EndTxn", 4), ("TxnOffsetCommit", 4), ("Fetch", 17)} <= asked
    assert not any(version > NEWEST_OF_3_9[api] for api, version in asked if api in NEWEST_OF_3_9)


def test_javas_copier_goes_on_where_the_broker_was_killed(tmp_path: Path) -> None:
    source, target = "to-be-copied", "copied"
    with KitCluster(1, tmp_path / "data", {}) as broker:
        for topic in (source, target):
            make_topic(broker.bootstrap, topic)
        fill(broker.bootstrap, source)
        with copier(broker.bootstrap, source, target, tmp_path / "copier") as process:
            for count in (COPIED // 5, COPIED // 2):
                process.printed_until(partial(_has_copied, count))
                broker.kill()
                broker.start()
            process.printed_until(lambda lines: any("ShutdownComplete" in line for line in lines))
        assert_each_once(read_by_kafka_python(broker.bootstrap, target, PARTITIONS, "read_committed"))


def _has_copied(count: int, lines: Collection[str]) -> bool:
    """By what the copier said last."""
    told = [line for line in lines if '"totalProcessed":' in line]
    return bool(told) and int(told[-1].split('"totalProcessed":')[1].split(",")[0]) >= count
