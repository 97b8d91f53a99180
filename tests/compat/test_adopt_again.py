"""Apache Kafka 4.3.1 goes on after an adoption: the broker refuses the directory, and another adoption takes it all."""

import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka import KafkaConsumer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

from processes.apache_kafka import ApacheKafka
from processes.odradek_broker import REPOSITORY, OdradekBroker, OdradekFailed

pytestmark = [
    pytest.mark.compat,
    pytest.mark.only_in_compat,
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]

NODE = ("--node-id", "1")


def odradek(*words: str) -> tuple[int, str]:
    """The exit code of a command, and what it said."""
    command = [sys.executable, "-m", "odradek", *words]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout + done.stderr


def create(bootstrap: str, topic: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([NewTopic(topic, 1, 1)])
    admin.close()


def send(bootstrap: str, topic: str, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(30) == 0


def read(bootstrap: str, topic: str, count: int) -> list[bytes]:
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False, consumer_timeout_ms=20_000
    )
    consumer.assign([TopicPartition(topic, 0)])
    found: list[bytes] = []
    for record in consumer:
        found.append(record.value)
        if len(found) == count:
            break
    consumer.close()
    return found


def refusal(data_dir: Path) -> str:
    broker = OdradekBroker(data_dir, *NODE)
    try:
        broker.start()
    except OdradekFailed as error:
        return str(error)
    finally:
        broker.close()
    return ""


def test_what_kafka_did_after_an_adoption_is_neither_lost_nor_put_aside(tmp_path: Path) -> None:
    before, after = [b"before %d" % number for number in range(20)], [b"after %d" % number for number in range(20)]
    with ApacheKafka(directory=tmp_path) as kafka:
        create(kafka.bootstrap, "orders")
        send(kafka.bootstrap, "orders", before)
        kafka.kill()
        data_dir = kafka.data_directory
        assert odradek("adopt", str(data_dir))[0] == 0
        kafka.start()
        send(kafka.bootstrap, "orders", after)
        create(kafka.bootstrap, "fresh")
        send(kafka.bootstrap, "fresh", after)
        kafka.stop()
        said = refusal(data_dir)
        assert "has changed since it was adopted" in said
        assert f"run `odradek adopt {data_dir}` again" in said
        assert odradek("adopt", str(data_dir))[0] == 0
        with OdradekBroker(data_dir, *NODE) as broker:
            assert read(broker.bootstrap, "orders", 40) == before + after
            assert read(broker.bootstrap, "fresh", 20) == after
            send(broker.bootstrap, "orders", [b"ours"])
            output = broker.output
        assert "ERROR" not in output
        assert "stray" not in output
        code, report = odradek("dump", "--verify", str(data_dir))
        assert code == 0, report
