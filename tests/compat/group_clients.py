"""Clients that are members of a consumer group: each function reads, as the member that it is given, until that stops.

All commit by themselves, subscribe to one topic, and use the range assignor where the protocol is the classic one.
"""

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from aiokafka import AIOKafkaConsumer
from aiokafka import ConsumerRebalanceListener as AiokafkaListener
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AiokafkaRange
from confluent_kafka import Consumer as ConfluentConsumer
from kafka import ConsumerRebalanceListener as KafkaPythonListener
from kafka import KafkaConsumer
from kafka.coordinator.assignors.range import RangePartitionAssignor as KafkaPythonRange
from kafka.errors import KafkaConnectionError as KafkaPythonConnectionError

from odradek.client.consumer.consumer import Consumer
from odradek.client.topic_partition import TopicPartition
from tests.compat.group_members import Member

SESSION_MS: Final = 10_000
HEARTBEAT_MS: Final = 200
"""So soon a member hears of a rebalance."""
COMMIT_MS: Final = 100
POLL_S: Final = 0.1
KAFKA_PYTHON_POLL_MS: Final = 1_000
"""Longer than a join takes, however busy the machine is. Where a poll of kafka-python 3.0.12 times out at the moment at
which its SyncGroup is answered, the member goes on without what it was assigned, for good: one group in ten, with 100
ms and five groups at once."""


def kafka_python(member: Member) -> None:
    class Listener(KafkaPythonListener):
        def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
            member.assigned(each.partition for each in assigned)

        def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
            member.revoked(each.partition for each in revoked)

    consumer = KafkaConsumer(
        bootstrap_servers=member.bootstrap,
        group_id=member.group_id,
        group_instance_id=member.instance_id,
        auto_offset_reset="earliest",
        auto_commit_interval_ms=COMMIT_MS,
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
        partition_assignment_strategy=[KafkaPythonRange],
    )
    # One that leads before it has metadata assigns nothing, and does not look again when that has come: one join in
    # twenty or so, with kafka-python 3.0.12 and no delay before a rebalance.
    assert consumer.partitions_for_topic(member.group_id)
    consumer.subscribe([member.group_id], listener=Listener())
    while not member.is_stopping.is_set():
        try:
            polled = consumer.poll(timeout_ms=KAFKA_PYTHON_POLL_MS)
        except KafkaPythonConnectionError:
            # Where nobody listens while it looks for its coordinator: only then it has not waited.
            member.is_stopping.wait(POLL_S)
            continue
        for records in polled.values():
            member.values += [record.value for record in records]
    consumer.close()


def aiokafka(member: Member) -> None:
    asyncio.run(_aiokafka(member))


async def _aiokafka(member: Member) -> None:
    class Listener(AiokafkaListener):
        async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
            member.assigned(each.partition for each in assigned)

        async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
            member.revoked(each.partition for each in revoked)

    consumer = AIOKafkaConsumer(
        bootstrap_servers=member.bootstrap,
        group_id=member.group_id,
        group_instance_id=member.instance_id,
        auto_offset_reset="earliest",
        auto_commit_interval_ms=COMMIT_MS,
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
        partition_assignment_strategy=(AiokafkaRange,),
    )
    consumer.subscribe([member.group_id], listener=Listener())
    await consumer.start()
    while not member.is_stopping.is_set():
        for records in (await consumer.getmany(timeout_ms=int(POLL_S * 1000))).values():
            member.values += [record.value for record in records]
    await consumer.stop()


def confluent_kafka(member: Member) -> None:
    _confluent_kafka(
        member,
        {
            "group.protocol": "classic",
            "partition.assignment.strategy": "range",
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": HEARTBEAT_MS,
        },
    )


def confluent_kafka_848(member: Member) -> None:
    """By KIP-848, where the broker says how often there is a heartbeat."""
    _confluent_kafka(member, {"group.protocol": "consumer"})


def _confluent_kafka(member: Member, protocol: dict[str, Any]) -> None:
    settings: dict[str, Any] = {
        "bootstrap.servers": member.bootstrap,
        "group.id": member.group_id,
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": COMMIT_MS,
    }
    if member.instance_id is not None:
        settings["group.instance.id"] = member.instance_id

    def on_assign(_: ConfluentConsumer, partitions: list[Any]) -> None:
        member.assigned(each.partition for each in partitions)

    def on_revoke(_: ConfluentConsumer, partitions: list[Any]) -> None:
        member.revoked(each.partition for each in partitions)

    consumer = ConfluentConsumer(settings | protocol)
    consumer.subscribe([member.group_id], on_assign=on_assign, on_revoke=on_revoke)
    while not member.is_stopping.is_set():
        for message in consumer.consume(100, POLL_S):
            error = message.error()
            assert error is None or not error.fatal(), error
            if error is None:
                member.values.append(message.value() or b"")
    consumer.close()


def odradek(member: Member) -> None:
    asyncio.run(_odradek(member))


async def _odradek(member: Member) -> None:
    def on_assigned(partitions: frozenset[TopicPartition]) -> None:
        member.assigned(each.partition for each in partitions)

    def on_revoked(partitions: frozenset[TopicPartition]) -> None:
        member.revoked(each.partition for each in partitions)

    async with Consumer(
        member.bootstrap,
        group_id=member.group_id,
        group_instance_id=member.instance_id,
        topics=[member.group_id],
        auto_offset_reset="earliest",
        auto_commit_interval_ms=COMMIT_MS,
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
        partition_assignment_strategy="range",
        on_assigned=on_assigned,
        on_revoked=on_revoked,
    ) as consumer:
        while not member.is_stopping.is_set():
            batch = await consumer.get_batch(timeout_ms=POLL_S * 1000)
            member.values += [record.value for record in batch]
