"""What groups leave in `__consumer_offsets` is Apache Kafka's own format, in both directions: Kafka's tool reads ours,
Kafka goes on with our log, and we go on with Kafka's after an adoption. So it is for consumer groups (KIP-848), too.

Kafka loads a log of ours when it made the topic itself with as many partitions, and was stopped: its segment files are
replaced by ours, and what it knows about them (indexes, snapshots, checkpoints, the mark of a clean stop) is removed. A
directory that is merely copied there becomes a stray one.
"""

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from processes.apache_kafka import ApacheKafka, run_tool
from processes.odradek_broker import REPOSITORY, OdradekBroker

pytestmark = [
    pytest.mark.compat,
    pytest.mark.only_in_compat,
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]

NODE = ("--node-id", "1")
PARTITIONS = ("--set", "offsets.topic.num.partitions=1", "--set", "num.partitions=2")
TOPIC = "orders"
COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
GROUPS = ("billing", "shipping")
CONSUMER_GROUP, INSTANCE = "auditing", "auditor"
"""A group of KIP-848 with a static member, which stays a member when it is closed."""
OFFSETS_DIRECTORY = "__consumer_offsets-0"


def write(bootstrap: str) -> None:
    """40 records, the numbers from 0, even ones in partition 0."""
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for number in range(40):
        producer.send(TOPIC, b"%d" % number, partition=number % 2)
    producer.flush()
    producer.close()


def read_with_groups(bootstrap: str) -> None:
    """Three groups: two that have read 20 and 30 of 40 records with members, and one that only commits."""
    write(bootstrap)
    read_as_member(bootstrap, 20, GROUPS[0])
    read_as_member(bootstrap, 30, CONSUMER_GROUP, **CONSUMER_PROTOCOL)
    simple = KafkaConsumer(bootstrap_servers=bootstrap, group_id=GROUPS[1], enable_auto_commit=False)
    simple.assign([TopicPartition(TOPIC, 1)])
    simple.commit({TopicPartition(TOPIC, 1): OffsetAndMetadata(7, "by hand", -1)})
    simple.close()


CONSUMER_PROTOCOL = {"group.protocol": "consumer", "group.instance.id": INSTANCE}


def read_as_member(bootstrap: str, count: int, group: str, **settings: str) -> list[int]:
    """Joins, reads as many, commits, and leaves unless it is static; the numbers that it has read."""
    common = {"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    member = Consumer({**common, "group.id": group, **settings})
    member.subscribe([TOPIC])
    numbers: list[int] = []
    deadline = time.monotonic() + 60
    while len(numbers) < count:
        assert time.monotonic() < deadline, numbers
        for message in member.consume(count - len(numbers), 1.0):
            assert message.error() is None, message.error()
            numbers.append(int(message.value() or b""))
    member.commit(asynchronous=False)
    member.close()
    return numbers


def committed(bootstrap: str) -> dict[str, int | None]:
    """By group: the sum of its offsets over both partitions; None where it has none."""
    found: dict[str, int | None] = {}
    for group in GROUPS:
        consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False)
        offsets = [consumer.committed(TopicPartition(TOPIC, index)) for index in (0, 1)]
        known = [offset for offset in offsets if offset is not None]
        found[group] = sum(known) if known else None
        consumer.close()
    return found


def dump(directory: Path) -> str:
    files = ",".join(str(path) for path in sorted(directory.glob("*.log")))
    return run_tool("org.apache.kafka.tools.DumpLogSegments", "--offsets-decoder", "--files", files)


@contextmanager
def odradek_with_groups(data_dir: Path) -> Generator[OdradekBroker]:
    with OdradekBroker(data_dir, *NODE, *PARTITIONS) as broker:
        read_with_groups(broker.bootstrap)
        yield broker
        broker.terminate()


EXPECTED = {"billing": 20, "shipping": 7}


def test_kafkas_tool_reads_the_records_of_groups(tmp_path: Path) -> None:
    with odradek_with_groups(tmp_path / "ours"):
        pass
    output = dump(tmp_path / "ours" / OFFSETS_DIRECTORY)
    assert "error" not in output.lower()
    assert re.search(r'"type":"?1"?.*"group":"shipping","topic":"orders","partition":1', output), output
    assert re.search(r'"offset":7,"leaderEpoch":-1,"metadata":"by hand"', output), output
    members = re.findall(r'"protocolType":"consumer","generation":(\d+),"protocol":"(\w+)"', output)
    assert ("1", "range") in members, output


def test_kafkas_tool_reads_the_records_of_consumer_groups(tmp_path: Path) -> None:
    with odradek_with_groups(tmp_path / "ours"):
        pass
    found: dict[int, list[dict[str, Any]]] = {}
    for key, value in re.findall(
        r"key: (\{.*?\}) payload: (\{.*\}|null|<DELETE>|$)", dump(tmp_path / "ours" / OFFSETS_DIRECTORY)
    ):
        kind, record = json.loads(key), json.loads(value if value.startswith("{") else "{}")
        if kind["data"].get("groupId") == CONSUMER_GROUP:
            found.setdefault(int(kind["type"]), []).append(kind["data"] | record.get("data", {}))
    assert sorted(found) == [3, 5, 6, 7, 8], "group, member, target assignment of group and member, current assignment"
    assert found[5][-1]["instanceId"] == INSTANCE
    assert found[5][-1]["subscribedTopicNames"] == [TOPIC]
    assert found[3][-1]["epoch"] == found[6][-1]["assignmentEpoch"]
    [target] = found[7][-1]["topicPartitions"]
    assert target["partitions"] == [0, 1]
    assert found[8][-1]["memberEpoch"] == -2, "it has left for a while"


def test_apache_kafka_goes_on_with_our_groups(tmp_path: Path) -> None:
    with odradek_with_groups(tmp_path / "ours"):
        pass
    kafka = ApacheKafka(directory=tmp_path / "kafka", properties={"num.partitions": "2"})
    with kafka:
        write(kafka.bootstrap)
        maker = KafkaConsumer(bootstrap_servers=kafka.bootstrap, group_id="maker")
        maker.assign([TopicPartition(TOPIC, 0)])
        maker.commit({TopicPartition(TOPIC, 0): OffsetAndMetadata(0, "", -1)})
        maker.close()
        kafka.stop()
        put_in_place(tmp_path / "ours" / OFFSETS_DIRECTORY, kafka.data_directory / OFFSETS_DIRECTORY)
        for left in [*kafka.data_directory.glob("*checkpoint*"), kafka.data_directory / ".kafka_cleanshutdown"]:
            left.unlink(missing_ok=True)
        kafka.start()
        assert committed(kafka.bootstrap) == EXPECTED
        described = run_tool(COMMAND, "--bootstrap-server", kafka.bootstrap, "--describe", "--all-groups", "--state")
        assert re.search(rf"^{CONSUMER_GROUP} .* Reconciling +1$", described, re.MULTILINE), described
        went_on(kafka.bootstrap)


def went_on(bootstrap: str) -> None:
    """The static member of the consumer group returns, and reads what it has not read: the end of each partition."""
    numbers = read_as_member(bootstrap, 10, CONSUMER_GROUP, **CONSUMER_PROTOCOL)
    for last in (38, 39):
        mine = [number for number in numbers if number % 2 == last % 2]
        assert mine == list(range(last - 2 * len(mine) + 2, last + 1, 2))


def put_in_place(ours: Path, kafkas: Path) -> None:
    """The segments and epochs of ours for Kafka's, which keeps its `partition.metadata`."""
    for path in kafkas.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    for path in ours.iterdir():
        if path.suffix == ".log" or path.name == "leader-epoch-checkpoint":
            shutil.copy(path, kafkas / path.name)


def test_groups_and_offsets_of_apache_kafka_are_adopted(tmp_path: Path) -> None:
    with ApacheKafka(directory=tmp_path, properties={"num.partitions": "2"}) as kafka:
        read_with_groups(kafka.bootstrap)
        expected = committed(kafka.bootstrap)
        kafka.stop()
        data_dir = kafka.data_directory
        done = subprocess.run(
            [sys.executable, "-m", "odradek", "adopt", str(data_dir)],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert expected == EXPECTED
        with OdradekBroker(data_dir, *NODE) as broker:
            assert committed(broker.bootstrap) == expected
            went_on(broker.bootstrap)
            read_on(broker.bootstrap)
            assert "ERROR" not in broker.output, broker.output


def read_on(bootstrap: str) -> None:
    """A member of the group gets what it has not read yet, and nothing else."""
    consumer = KafkaConsumer(
        TOPIC,
        bootstrap_servers=bootstrap,
        group_id=GROUPS[0],
        auto_offset_reset="earliest",
        consumer_timeout_ms=20_000,
    )
    values: list[bytes] = []
    for record in consumer:
        values.append(record.value)
        if len(values) == 20:
            producer = KafkaProducer(bootstrap_servers=bootstrap)
            producer.send(TOPIC, b"last", partition=0).get(30)
            producer.close()
        if record.value == b"last":
            break
    consumer.close()
    assert len(values) == 21, "20 that it had not read, and one that is new"
