"""kafka-python 3 against one broker and three: its defaults, each acks and codec, admin calls; everything read back."""

from collections import Counter
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

from tests.compat.clusters import Ours, broker_count, eventually

pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]


def send(broker: Ours, topic: str, count: int, **settings: Any) -> None:
    """Sends `count` keyed records and raises the first error of any of them."""
    with KafkaProducer(bootstrap_servers=broker.bootstrap, **settings) as producer:
        futures = [
            producer.send(topic, key=b"%d" % (number % 100), value=b"value %d" % number) for number in range(count)
        ]
        producer.flush()
        for future in futures:
            future.get(timeout=30)


def read_back(broker: Ours, topic: str, count: int) -> Counter[bytes]:
    """The values of the topic, read without a group; it has `count` of them, with contiguous offsets. They may come in
    a moment later than the last acknowledgement, unless that was one of acks=all."""
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id=None, auto_offset_reset="earliest")
    try:
        partitions = [TopicPartition(topic, index) for index in sorted(consumer.partitions_for_topic(topic) or ())]
        consumer.assign(partitions)
        eventually(lambda: sum(consumer.end_offsets(partitions).values()), count)
        ends = consumer.end_offsets(partitions)
        expected = dict.fromkeys(partitions, 0)
        values: Counter[bytes] = Counter()
        while any(expected[partition] < ends[partition] for partition in partitions):
            for partition, records in consumer.poll(timeout_ms=1000, max_records=5000).items():
                for record in records:
                    assert record.offset == expected[partition]
                    expected[partition] += 1
                    values[record.value] += 1
        return values
    finally:
        consumer.close()


def expected_values(count: int) -> Counter[bytes]:
    return Counter(b"value %d" % number for number in range(count))


@pytest.mark.telling
def test_with_its_default_settings(broker: Ours, record_count: int) -> None:
    send(broker, "kp-defaults", record_count)
    assert read_back(broker, "kp-defaults", record_count) == expected_values(record_count)


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_with_each_acks(broker: Ours, record_count: int, acks: int | str) -> None:
    topic = f"kp-acks-{acks}"
    send(broker, topic, record_count, acks=acks, enable_idempotence=False)
    assert read_back(broker, topic, record_count) == expected_values(record_count)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_with_each_codec(broker: Ours, record_count: int, codec: str) -> None:
    topic = f"kp-{codec}"
    send(broker, topic, record_count, compression_type=codec)
    assert read_back(broker, topic, record_count) == expected_values(record_count)


def test_it_takes_the_broker_for_kafka_4_3(broker: Ours) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        assert producer.config["api_version"] == (4, 3)


@pytest.mark.telling
def test_topics_are_created_described_enlarged_and_deleted(broker: Ours) -> None:
    replicas = broker_count(broker)
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic("kp-admin", 3, replicas)])
        [description] = admin.describe_topics(["kp-admin"])
        assert [len(each["replica_nodes"]) for each in description["partitions"]] == [replicas] * 3
        admin.create_partitions({"kp-admin": 5})
        assert len(admin.describe_topics(["kp-admin"])[0]["partitions"]) == 5
        admin.delete_topics(["kp-admin"])
        assert "kp-admin" not in admin.list_topics()
        admin.create_topics([NewTopic("kp-admin", 1, replicas)])
        assert len(admin.describe_topics(["kp-admin"])[0]["partitions"]) == 1


def test_timestamps_headers_and_offsets_by_time(broker: Ours) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(100):
            headers = [("number", b"%d" % number), ("empty", b"")]
            producer.send("kp-times", b"v", partition=0, timestamp_ms=1_000 + number * 10, headers=headers)
    partition = TopicPartition("kp-times", 0)
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id=None, auto_offset_reset="earliest")
    try:
        consumer.assign([partition])
        found = consumer.offsets_for_times({partition: 1_495})[partition]
        assert found is not None
        assert (found.offset, found.timestamp) == (50, 1_500)
        assert consumer.offsets_for_times({partition: 10_000})[partition] is None
        consumer.seek(partition, 50)
        record = consumer.poll(timeout_ms=10_000)[partition][0]
        assert (record.offset, record.timestamp) == (50, 1_500)
        assert list(record.headers) == [("number", b"50"), ("empty", b"")]
    finally:
        consumer.close()
