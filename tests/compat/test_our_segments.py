"""Apache Kafka's own tool reads a data directory that a broker of ours wrote, and has nothing to complain about.

kafka-python and librdkafka write through `odradek serve`: two topics, every codec, idempotent, 1 MiB segments that
roll, and for each codec three times SIGKILL while librdkafka has batches under way. After a clean stop every partition
holds as many records as were sent to it. That DumpLogSegments finds damage done by hand is shown on copies.
"""

import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic

from odradek.protocol.batches.compression import Codec
from processes.dump_log_segments import dump_log_segments
from processes.odradek_broker import OdradekBroker
from tests.compat.damage import DAMAGES, damage

pytestmark = [pytest.mark.compat, pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(300)]

PARTITION_COUNTS = {"orders": 3, "payments": 2}
PARTITIONS = [(topic, index) for topic, count in PARTITION_COUNTS.items() for index in range(count)]
CODECS = [codec.name.lower() for codec in Codec]
SECONDS_TO_DELIVER = 60


@dataclass
class Written:
    """A data directory whose broker has stopped, and how many records each `<topic>-<partition>` was sent."""

    data_dir: Path
    record_counts: dict[str, int] = field(default_factory=dict[str, int])

    def sent(self, topic: str, index: int) -> None:
        name = f"{topic}-{index}"
        self.record_counts[name] = self.record_counts.get(name, 0) + 1


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, record_count: int) -> Iterator[Written]:
    written = Written(tmp_path_factory.mktemp("segments") / "data")
    rng = random.Random(11)
    count_each = max(500, record_count // 10)
    with OdradekBroker(written.data_dir, "--set", "log.segment.bytes=1048576") as broker:
        with KafkaAdminClient(bootstrap_servers=broker.bootstrap) as admin:
            admin.create_topics([NewTopic(topic, count, 1) for topic, count in PARTITION_COUNTS.items()])
        for codec in CODECS:
            send_with_kafka_python(broker, codec, count_each, rng, written)
            send_with_librdkafka_over_a_kill(broker, codec, count_each, rng, written)
        assert broker.terminate() == 0
    yield written


def send_with_kafka_python(broker: OdradekBroker, codec: str, count: int, rng: random.Random, written: Written) -> None:
    """Idempotent and acks=all, which are its defaults. Closed before any kill."""
    compression = None if codec == "none" else codec
    with KafkaProducer(bootstrap_servers=broker.bootstrap, compression_type=compression) as producer:
        futures = [producer.send(topic, value(rng), partition=index) for topic, index in places(count, written)]
        producer.flush()
        for future in futures:
            future.get(timeout=SECONDS_TO_DELIVER)


def send_with_librdkafka_over_a_kill(
    broker: OdradekBroker, codec: str, count: int, rng: random.Random, written: Written
) -> None:
    """Killed after the first acknowledgements, and started again, while small batches follow one another.

    So batches are under way at each kill, and some are in the log whose acknowledgement never came: librdkafka sends
    them again, and the broker has to know them from its log.
    """
    errors: list[KafkaError] = []
    acknowledged = 0

    def delivered(error: KafkaError | None, message: Message) -> None:
        nonlocal acknowledged
        if error is not None:
            errors.append(error)
        else:
            acknowledged += 1

    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "enable.idempotence": True,
            "compression.type": codec,
            "batch.size": 6_000,
            "reconnect.backoff.max.ms": 500,
            "log_level": 2,
        }
    )
    for topic, index in places(count, written):
        producer.produce(topic, value(rng), partition=index, on_delivery=delivered)
    for share in (10, 4, 2):
        while acknowledged < count // share and not errors:
            producer.poll(1)
        broker.kill()
        broker.start()
    assert producer.flush(SECONDS_TO_DELIVER) == 0
    assert errors == []


def value(rng: random.Random) -> bytes:
    """Half of it can be compressed: what does not get smaller is sent uncompressed by both clients."""
    return rng.randbytes(1_200) + b"." * 1_200


def places(count: int, written: Written) -> Iterator[tuple[str, int]]:
    for number in range(count):
        place = PARTITIONS[number % len(PARTITIONS)]
        written.sent(*place)
        yield place


@pytest.mark.parametrize("name", [f"{topic}-{index}" for topic, index in PARTITIONS])
def test_every_partition_is_clean_and_complete(written: Written, name: str) -> None:
    dump = dump_log_segments(written.data_dir / name)
    assert dump.findings == []
    assert dump.record_count == written.record_counts[name]
    assert len([file for file in dump.files if file.endswith(".log")]) > 1
    assert {batch.codec for batch in dump.batches} == set(CODECS)
    assert dump.index_entry_count > 20
    assert dump.time_index_entry_count > 20
    producers = {batch.producer_id for batch in dump.batches}
    assert len(producers) == 2 * len(CODECS)
    assert -1 not in producers
    epochs = [batch.leader_epoch for batch in dump.batches]
    assert len(set(epochs)) > len(CODECS) / 2, "each start has an epoch of its own"


def test_no_other_partition_lies_in_the_directory(written: Written) -> None:
    directories = sorted(path.name for path in written.data_dir.iterdir() if path.is_dir())
    assert directories == sorted(written.record_counts)


@pytest.mark.parametrize("kind", DAMAGES)
def test_damage_to_our_directory_is_found(written: Written, tmp_path: Path, kind: str) -> None:
    directory = Path(shutil.copytree(written.data_dir / "orders-0", tmp_path / "orders-0"))
    damage(directory, kind)
    assert dump_log_segments(directory).findings
