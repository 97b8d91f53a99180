"""A member of a group under test: kafka-python's consumer.

It writes down what it processes, and commits what is written down, but cannot commit before it gives partitions up.
"""

from collections.abc import Iterable

from kafka import ConsumerRebalanceListener as KafkaPythonListener
from kafka import KafkaConsumer, OffsetAndMetadata
from kafka import TopicPartition as KafkaPythonPartition
from kafka.coordinator.assignors.range import RangePartitionAssignor as KafkaPythonRange
from kafka.errors import KafkaError as KafkaPythonError

from tests.cluster.client_session import POLL_S, RECONNECT_MS, RETRY_S, Session, now_ms
from tests.cluster.membership import COMMIT_S, HEARTBEAT_MS, MAX_POLL_INTERVAL_MS, SESSION_TIMEOUT_MS, Membership


class _KafkaPythonListener(KafkaPythonListener):
    """It runs within `poll` and `close`, and cannot commit: kafka-python has begun the rebalance then."""

    def __init__(self, member: Membership, consumer: KafkaConsumer) -> None:
        self._member = member
        self._consumer = consumer

    def on_partitions_assigned(self, assigned: Iterable[KafkaPythonPartition]) -> None:
        partitions = (each.partition for each in assigned)
        self._member.assigned(partitions, self._consumer.group_metadata().generation_id)

    def on_partitions_revoked(self, revoked: Iterable[KafkaPythonPartition]) -> None:
        self._member.revoked(each.partition for each in revoked)

    def on_partitions_lost(self, lost: Iterable[KafkaPythonPartition]) -> None:
        self._member.revoked((each.partition for each in lost), is_lost=True)


def take_part_with_kafka_python(session: Session) -> None:
    """Commits, and waits for it, after each poll."""
    job, member = session.job, Membership(session)
    consumer = KafkaConsumer(
        bootstrap_servers=job.bootstrap,
        group_id=job.group,
        group_instance_id=job.instance_id or None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
        max_poll_interval_ms=MAX_POLL_INTERVAL_MS,
        reconnect_backoff_max_ms=RECONNECT_MS,
        partition_assignment_strategy=[KafkaPythonRange],
    )
    # One that leads a group before it knows the topic assigns nothing, and does not look again (3.0.12).
    while not session.stop.is_set() and not _knows(consumer, job.topic):
        session.stop.wait(RETRY_S)
    consumer.subscribe([job.topic], listener=_KafkaPythonListener(member, consumer))
    while not session.stop.is_set():
        asked_ms = now_ms()
        try:
            polled = consumer.poll(timeout_ms=int(POLL_S * 1000))
        except KafkaPythonError as error:
            member.failed(asked_ms, error)
            session.stop.wait(RETRY_S)
            continue
        for each, records in polled.items():
            member.processed(asked_ms, each.partition, [(record.offset, record.value) for record in records])
        _commit_with_kafka_python(member, consumer)
    _commit_with_kafka_python(member, consumer)
    consumer.close()
    member.left()


def _knows(consumer: KafkaConsumer, topic: str) -> bool:
    try:
        return bool(consumer.partitions_for_topic(topic))
    except KafkaPythonError:
        return False


def _commit_with_kafka_python(member: Membership, consumer: KafkaConsumer) -> None:
    offsets = member.to_commit()
    if not offsets:
        return
    topic = member.job.topic
    member.commit_asked(offsets, consumer.group_metadata().generation_id)
    failure: KafkaPythonError | None = None
    try:
        consumer.commit(
            {
                KafkaPythonPartition(topic, partition): OffsetAndMetadata(offset, "", -1)
                for partition, offset in offsets.items()
            },
            timeout_ms=int(COMMIT_S * 1000),
        )
    except KafkaPythonError as error:
        failure = error
    member.commit_answered(failure, consumer.group_metadata().generation_id)
