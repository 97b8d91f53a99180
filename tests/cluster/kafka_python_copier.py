"""A copier of an exactly-once chain: kafka-python's consumer and producer.

Its producer forgets a request of its transaction where it cannot connect to the coordinator that it has found before
(3.0.12, `Sender._maybe_send_pending_request`: an error of `await_ready` leaves the loop with a node, and only without
one the request is tried again). Its caller waits for ever then.

And it keeps offsets that the group's coordinator did not take at once: `_pending_txn_offset_commits` is not emptied
when their transaction is aborted, and they are committed with the next one, though its records are not in it. So after
an error these clients end, and others begin.
"""

import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Final

from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata
from kafka import TopicPartition as KafkaPythonPartition
from kafka.consumer.fetcher import ConsumerRecord
from kafka.coordinator.assignors.range import RangePartitionAssignor as KafkaPythonRange
from kafka.errors import KafkaError as KafkaPythonError

from tests.cluster.client_session import RECONNECT_MS, REQUEST_TIMEOUT_MS, Session
from tests.cluster.copying import ALONE_S, CALL_S, RECORDS_MAX, TRANSACTION_TIMEOUT_MS, Aborted, Copying
from tests.cluster.membership import HEARTBEAT_MS, MAX_POLL_INTERVAL_MS, SESSION_TIMEOUT_MS

POLL_MS: Final = 1_000
"""With less, it now and then loses what it was assigned (docs/FINDINGS.md)."""
CLOSE_S: Final = 2.0

Records = dict[KafkaPythonPartition, list[ConsumerRecord]]


def copy_with_kafka_python(session: Session) -> None:
    copying = Copying(session)
    copying.end_where_it_stands_still()
    while not copying.is_over:
        copying.begins()
        try:
            with _producer(copying) as producer, _consumer(copying) as consumer:
                _copy(copying, producer, consumer)
        except KafkaPythonError:
            copying.failed()
            copying.pause()


def _copy(copying: Copying, producer: KafkaProducer, consumer: KafkaConsumer) -> None:
    """Until the session stops. Raises KafkaPythonError where these clients cannot go on."""
    had_some_s = time.monotonic()
    while not copying.is_over:
        copying.begins()
        records: Records = consumer.poll(timeout_ms=POLL_MS, max_records=RECORDS_MAX)
        if consumer.assignment():
            had_some_s = time.monotonic()
        elif time.monotonic() - had_some_s > ALONE_S:
            copying.note("begins anew, for it has no partition")
            return
        if not records:
            continue
        try:
            _transaction(copying, producer, consumer, records)
        except Aborted:
            producer.abort_transaction()
            _go_back(consumer)
        copying.pause()


def _transaction(copying: Copying, producer: KafkaProducer, consumer: KafkaConsumer, records: Records) -> None:
    producer.begin_transaction()
    for each in records.values():
        for record in each:
            producer.send(copying.job.target, record.value, partition=copying.target_partition(record.value))
    producer.send_offsets_to_transaction(_behind(records), consumer.group_metadata())
    if copying.aborts():
        raise Aborted
    producer.commit_transaction()


def _behind(records: Records) -> dict[KafkaPythonPartition, OffsetAndMetadata]:
    return {partition: OffsetAndMetadata(_last(each).offset + 1, "", -1) for partition, each in records.items()}


def _last(records: Sequence[ConsumerRecord]) -> ConsumerRecord:
    return records[-1]


def _go_back(consumer: KafkaConsumer) -> None:
    """To what the group has committed. The group does not change meanwhile: that is done within `poll`."""
    for partition in consumer.assignment():
        committed = consumer.committed(partition, timeout_ms=int(CALL_S * 1000))
        consumer.seek(partition, committed or 0)


@contextmanager
def _producer(copying: Copying) -> Generator[KafkaProducer]:
    job = copying.job
    producer = KafkaProducer(
        bootstrap_servers=job.bootstrap,
        client_id=job.name,
        transactional_id=job.transactional_id,
        transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
        request_timeout_ms=REQUEST_TIMEOUT_MS,
        delivery_timeout_ms=int(CALL_S * 1000),
        reconnect_backoff_max_ms=RECONNECT_MS,
    )
    try:
        producer.init_transactions()
        yield producer
    finally:
        producer.close(timeout=CLOSE_S)


@contextmanager
def _consumer(copying: Copying) -> Generator[KafkaConsumer]:
    job = copying.job
    consumer = KafkaConsumer(
        bootstrap_servers=job.bootstrap,
        client_id=job.name,
        group_id=job.group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
        max_poll_interval_ms=MAX_POLL_INTERVAL_MS,
        reconnect_backoff_max_ms=RECONNECT_MS,
        partition_assignment_strategy=[KafkaPythonRange],
    )
    try:
        # One that leads a group before it knows the topic assigns nothing, and does not look again (3.0.12).
        while not copying.is_over and not consumer.partitions_for_topic(job.topic):
            copying.begins()
            copying.pause()
        consumer.subscribe([job.topic])
        yield consumer
    finally:
        consumer.close(timeout_ms=int(CLOSE_S * 1000))
