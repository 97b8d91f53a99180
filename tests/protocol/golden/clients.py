"""What the clients do while they are watched: whatever makes them send each request that Odradek serves.

They keep their own settings, apart from addresses, a linger where records shall share a batch, codecs, and credentials.
So they pick their versions by themselves. Each client creates the topic and deletes it at the end; those that
authenticate ask for the cluster only.
"""

import os
import subprocess
import time
import warnings
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from odradek.protocol.batches.records import Record
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from processes.apache_kafka import ApacheKafka
from tests.protocol.golden import files
from tests.protocol.golden.tee import Tee

kafka_python: Any = import_module("kafka")
kafka_admin: Any = import_module("kafka.admin")
confluent_kafka: Any = import_module("confluent_kafka")
confluent_admin: Any = import_module("confluent_kafka.admin")

TOPIC, RECORDS = files.TOPIC, files.RECORDS
GROUP = files.GROUP
USER, PASSWORD = "golden-user", "golden-password"
OLD_JAVA_VERSION = "3.9.1"  # the line that Spark 4 uses; it still has alterConfigs
OLD_JAVA = (f"org.apache.kafka:kafka-clients:{OLD_JAVA_VERSION}", "org.slf4j:slf4j-simple:1.7.36")


def run_kafka_python(tee: Tee, kafka: ApacheKafka) -> None:
    bootstrap = address(tee)
    admin = kafka_python.KafkaAdminClient(bootstrap_servers=bootstrap)
    topic_config = kafka_admin.ConfigResource(kafka_admin.ConfigResourceType.TOPIC, TOPIC, {"retention.ms": "90000000"})
    admin.create_topics(
        {TOPIC: {"num_partitions": 1, "replication_factor": 1, "configs": {"retention.ms": "86400000"}}}
    )
    admin.create_partitions({TOPIC: 2})
    admin.describe_topics([TOPIC])
    admin.describe_topic_partitions([TOPIC])
    admin.describe_cluster()
    admin.alter_configs([topic_config])
    admin.alter_configs([topic_config], incremental=False)
    admin.describe_configs([kafka_admin.ConfigResource(kafka_admin.ConfigResourceType.TOPIC, TOPIC)])
    admin.describe_log_dirs()
    partition = kafka_python.TopicPartition(TOPIC, 0)
    admin.elect_leaders(0, {TOPIC: [0]})
    admin.alter_partition_reassignments({partition: [1]})
    admin.list_partition_reassignments({TOPIC: [0]})
    admin.describe_metadata_quorum()

    def send(settings: dict[str, Any], topic: str, records: list[Record]) -> None:
        producer = kafka_python.KafkaProducer(bootstrap_servers=bootstrap, **settings)
        for record in records:
            producer.send(
                topic,
                value=record.value,
                key=record.key,
                headers=[*record.headers],
                partition=0,
                timestamp_ms=record.timestamp_ms,
            )
        producer.close()

    send({}, TOPIC, RECORDS[:1])
    for kind in ("none", "gzip"):  # the other codecs need further packages
        send({"linger_ms": 500, "compression_type": None if kind == "none" else kind}, f"{TOPIC}-{kind}", RECORDS)

    consumer = kafka_python.KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    consumer.assign([partition])
    until(lambda: consumer.poll(500))
    consumer.offsets_for_times({partition: files.BASE_TIMESTAMP})
    admin.close()
    kafka.kill()
    kafka.start()
    # The leader epoch has grown, so the consumer validates its position.
    until(lambda: consumer.poll(500) or tee.has_seen(OffsetForLeaderEpochRequest))
    consumer.close()

    admin = kafka_python.KafkaAdminClient(bootstrap_servers=bootstrap)
    member = kafka_python.KafkaConsumer(
        TOPIC, bootstrap_servers=bootstrap, group_id=GROUP, auto_offset_reset="earliest", heartbeat_interval_ms=100
    )
    until(lambda: member.poll(500))
    until(lambda: member.poll(500) or tee.has_seen(HeartbeatRequest))
    member.commit()
    member.committed(partition)
    admin.describe_groups([GROUP])
    admin.list_groups()
    admin.list_group_offsets({GROUP: None})
    member.close()
    admin.delete_group_offsets(GROUP, [partition])
    admin.delete_groups([GROUP])
    admin.list_config_resources()
    admin.update_features({"group.version": 1}, validate_only=True)

    admin.delete_records({partition: 1})
    admin.delete_topics([TOPIC])
    admin.close()


def run_librdkafka(tee: Tee) -> None:
    settings = {"bootstrap.servers": address(tee)}
    admin = confluent_admin.AdminClient(settings)
    partition = confluent_kafka.TopicPartition(TOPIC, 0, 0, "", 0)  # offset 0 in leader epoch 0, which is validated

    def settle(futures: dict[Any, Any]) -> None:
        for future in futures.values():
            future.result(10)

    def topic_config(**more: Any) -> list[Any]:
        return [confluent_admin.ConfigResource(confluent_admin.ResourceType.TOPIC, TOPIC, **more)]

    settle(admin.create_topics([confluent_admin.NewTopic(TOPIC, 1, 1, config={"retention.ms": "86400000"})]))
    settle(admin.create_partitions([confluent_admin.NewPartitions(TOPIC, 2)]))
    settle(admin.describe_topics(confluent_kafka.TopicCollection([TOPIC])))
    admin.describe_cluster().result(10)
    change = confluent_admin.ConfigEntry(
        "retention.ms", "90000000", incremental_operation=confluent_admin.AlterConfigOpType.SET
    )
    settle(admin.incremental_alter_configs(topic_config(incremental_configs=[change])))
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        settle(admin.alter_configs(topic_config(set_config={"retention.ms": "90000000"})))
    settle(admin.describe_configs(topic_config()))
    admin.elect_leaders(confluent_kafka.ElectionType.PREFERRED, [confluent_kafka.TopicPartition(TOPIC, 0)]).result(10)

    def send(more: dict[str, Any], topic: str, records: list[Record]) -> None:
        producer = confluent_kafka.Producer(settings | more)
        # While a topic is being created, librdkafka sends in several batches what was lingering.
        until(lambda: producer.list_topics(topic, 10).topics[topic].partitions)
        for record in records:
            headers = [*record.headers]
            producer.produce(topic, record.value, record.key, 0, timestamp=record.timestamp_ms, headers=headers)
        producer.flush(30)

    send({}, TOPIC, RECORDS[:1])
    send({"enable.idempotence": True}, TOPIC, RECORDS[:1])
    for kind in ("none", "gzip", "snappy", "lz4", "zstd"):
        send({"linger.ms": 500, "compression.codec": kind}, f"{TOPIC}-{kind}", RECORDS)

    group = settings | {"group.id": GROUP, "enable.auto.commit": False}
    consumer = confluent_kafka.Consumer(group | {"auto.offset.reset": "earliest"})
    consumer.assign([partition])
    until(lambda: consumer.poll(1))
    consumer.offsets_for_times([confluent_kafka.TopicPartition(TOPIC, 0, files.BASE_TIMESTAMP)], 10)
    consumer.close()

    def join(**more: str) -> Any:
        """A member that has had a record and has committed it."""
        joined = confluent_kafka.Consumer(group | {"auto.offset.reset": "earliest"} | more)
        joined.subscribe([TOPIC])
        until(lambda: joined.poll(1))
        joined.commit(asynchronous=False)
        joined.committed([partition], 5)
        return joined

    member = join(**{"heartbeat.interval.ms": "100"})
    admin.list_consumer_groups().result(10)
    settle(admin.describe_consumer_groups([GROUP]))
    settle(admin.list_consumer_group_offsets([confluent_kafka.ConsumerGroupTopicPartitions(GROUP)]))
    member.close()
    settle(admin.delete_consumer_groups([GROUP]))
    modern = join(**{"group.protocol": "consumer"})
    settle(admin.describe_consumer_groups([GROUP]))
    modern.close()
    settle(admin.delete_consumer_groups([GROUP]))

    settle(admin.delete_records([confluent_kafka.TopicPartition(TOPIC, 0, 1)]))
    settle(admin.delete_topics([TOPIC]))


def run_java(tee: Tee, jars: Iterable[Path], script: str = "java_client.jsh") -> None:
    settings = {"topic": TOPIC, "bootstrap": address(tee), "user": USER, "password": PASSWORD}
    command = ["jshell", "--class-path", os.pathsep.join(str(jar) for jar in jars)]
    command += [f"-R-Dgolden.{name}={value}" for name, value in settings.items()]
    command += ["-R-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
    ended = subprocess.run(
        [*command, str(Path(__file__).with_name(script))],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    # jshell ends with 0 after an error, too.
    if "Error:" in ended.stderr or "Exception" in ended.stderr + ended.stdout or "every request" not in ended.stdout:
        raise RuntimeError(ended.stdout + ended.stderr)


def authenticate_kafka_python(tee: Tee) -> None:
    admin = kafka_python.KafkaAdminClient(
        bootstrap_servers=address(tee),
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username=USER,
        sasl_plain_password=PASSWORD,
    )
    admin.describe_cluster()
    admin.close()


def authenticate_librdkafka(tee: Tee) -> None:
    credentials = {"sasl.mechanism": "PLAIN", "sasl.username": USER, "sasl.password": PASSWORD}
    settings = {"bootstrap.servers": address(tee), "security.protocol": "SASL_PLAINTEXT"}
    admin = confluent_admin.AdminClient(settings | credentials)
    admin.describe_cluster().result(10)


def address(tee: Tee) -> str:
    return f"127.0.0.1:{tee.port}"


def until(happens: Callable[[], object]) -> None:
    """Asks again and again, at most a minute long; every question waits for something itself."""
    deadline = time.monotonic() + 60
    while not happens():
        if time.monotonic() > deadline:
            raise TimeoutError
