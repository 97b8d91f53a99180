"""A copier of an exactly-once chain: librdkafka's consumer and producer.

Two mistakes of librdkafka's make a call of it wait for ever: the one of librdkafka_reader.py, and the end of a handle
of which a thread is about to connect to a broker that is gone ("Handle is terminating in state TRY_CONNECT: 3 refcnts",
2.16.1), as the first producer's where another one takes its place.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as Partition

from tests.cluster.client_session import POLL_S, RECONNECT_MS, REQUEST_TIMEOUT_MS, Job, Session
from tests.cluster.copying import CALL_S, RECORDS_MAX, TRANSACTION_TIMEOUT_MS, Aborted, Copying
from tests.cluster.membership import HEARTBEAT_MS, MAX_POLL_INTERVAL_MS, SESSION_TIMEOUT_MS

LOG_LEVEL: Final = 3


def copy_with_librdkafka(session: Session) -> None:
    copying = Copying(session)
    copying.end_where_it_stands_still()
    while not copying.is_over:
        copying.begins()
        try:
            producer = _producer(copying)
            with _consumer(copying) as consumer:
                while not copying.is_over:
                    copying.begins()
                    _copy_some(copying, producer, consumer)
        except KafkaException:
            copying.failed()
            copying.pause()


def _copy_some(copying: Copying, producer: Producer, consumer: Consumer) -> None:
    """Raises KafkaException where these clients cannot go on."""
    messages = [each for each in consumer.consume(RECORDS_MAX, POLL_S) if _is_record(copying, each)]
    if not messages:
        return
    try:
        _transaction(copying, producer, consumer, messages)
    except Aborted:
        # Else what is in its queue keeps its sequence numbers, and the next transaction begins behind a gap (2.16.1).
        producer.flush(CALL_S)
        _abort(producer)
        _go_back(consumer)
    except KafkaException as error:
        if not error.args[0].txn_requires_abort():
            raise
        copying.note(f"{error!r}")
        _abort(producer)
        _go_back(consumer)
    copying.pause()


def _is_record(copying: Copying, message: Message) -> bool:
    error = message.error()
    if error is not None and error.code() == KafkaError._FATAL:
        raise KafkaException(error)
    if error is not None:
        copying.note(f"{error!r}")
    return error is None


def _transaction(copying: Copying, producer: Producer, consumer: Consumer, messages: Sequence[Message]) -> None:
    job, behind = copying.job, dict[int, int]()
    producer.begin_transaction()
    for message in messages:
        value, partition, offset = message.value(), message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        producer.produce(job.target, value, partition=copying.target_partition(value))
        behind[partition] = offset + 1
    offsets = [Partition(job.topic, partition, offset) for partition, offset in behind.items()]
    _repeated(lambda: producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), CALL_S))
    if copying.aborts():
        raise Aborted
    _repeated(lambda: producer.commit_transaction(CALL_S))


def _abort(producer: Producer) -> None:
    _repeated(lambda: producer.abort_transaction(CALL_S))


def _repeated(call: Callable[[], None]) -> None:
    """Until it has an outcome."""
    while True:
        try:
            call()
        except KafkaException as error:
            if error.args[0].retriable():
                continue
            raise
        return


def _go_back(consumer: Consumer) -> None:
    """To what the group has committed. The group does not change meanwhile: that is done within `consume`."""
    for each in consumer.committed(consumer.assignment(), CALL_S):
        if each.error is not None:
            raise KafkaException(each.error)
        consumer.seek(Partition(each.topic, each.partition, max(each.offset, 0)))


def _producer(copying: Copying) -> Producer:
    job = copying.job
    producer = Producer(
        {
            "bootstrap.servers": job.bootstrap,
            "client.id": job.name,
            "transactional.id": job.transactional_id,
            "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
            "linger.ms": 2,
            "metadata.recovery.strategy": _recovery(job),
            "socket.timeout.ms": REQUEST_TIMEOUT_MS,
            "request.timeout.ms": REQUEST_TIMEOUT_MS,
            "reconnect.backoff.max.ms": RECONNECT_MS,
            "log_level": LOG_LEVEL,
        }
    )
    _repeated(lambda: producer.init_transactions(CALL_S))
    return producer


def _recovery(job: Job) -> str:
    """When its only broker is gone, librdkafka gives up the thread of that one, which then does not end and keeps its
    partitions ("Handle is terminating in state TRY_CONNECT", 2.16.1)."""
    return "rebootstrap" if "," in job.bootstrap else "none"


@contextmanager
def _consumer(copying: Copying) -> Generator[Consumer]:
    job = copying.job
    consumer = Consumer(
        {
            "bootstrap.servers": job.bootstrap,
            "client.id": job.name,
            "group.id": job.group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "session.timeout.ms": SESSION_TIMEOUT_MS,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "max.poll.interval.ms": MAX_POLL_INTERVAL_MS,
            "reconnect.backoff.max.ms": RECONNECT_MS,
            "partition.assignment.strategy": "range",
            "metadata.recovery.strategy": _recovery(job),
            "log_level": LOG_LEVEL,
        }
    )
    try:
        consumer.subscribe([job.topic])
        yield consumer
    finally:
        consumer.close()
