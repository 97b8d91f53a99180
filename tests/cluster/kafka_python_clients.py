"""kafka-python under test: an idempotent producer with acks=all, and a reader of all partitions from the beginning."""

from typing import Any

from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as KafkaPythonPartition
from kafka.errors import KafkaError as KafkaPythonError
from kafka.errors import OffsetOutOfRangeError
from kafka.producer.future import RecordMetadata

from tests.cluster.client_session import (
    POLL_S,
    RECONNECT_MS,
    REQUEST_TIMEOUT_MS,
    RETRY_S,
    Reading,
    Sending,
    Session,
    now_ms,
)


def send_with_kafka_python(session: Session) -> None:
    sending, job = Sending(session), session.job
    impatient: dict[str, Any] = {"request_timeout_ms": REQUEST_TIMEOUT_MS, "reconnect_backoff_max_ms": RECONNECT_MS}

    def acknowledged(number: int, metadata: RecordMetadata) -> None:
        sending.acknowledged(number, metadata.partition, metadata.offset)

    with KafkaProducer(
        bootstrap_servers=job.bootstrap, linger_ms=2, enable_idempotence=True, **({} if job.is_patient else impatient)
    ) as producer:
        for number in sending.numbers():
            future = producer.send(job.topic, sending.sent(number), partition=sending.partition(number))
            future.add_callback(acknowledged, number)
            future.add_errback(sending.failed, number)
        producer.flush()


def read_with_kafka_python(session: Session) -> None:
    reading, job = Reading(session), session.job
    impatient: dict[str, Any] = {"request_timeout_ms": REQUEST_TIMEOUT_MS, "reconnect_backoff_max_ms": RECONNECT_MS}
    consumer = KafkaConsumer(
        bootstrap_servers=job.bootstrap,
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="none",
        **({} if job.is_patient else impatient),
    )
    partitions = {KafkaPythonPartition(job.topic, partition): partition for partition in range(job.partitions)}
    consumer.assign(list(partitions))
    for each in partitions:
        consumer.seek(each, 0)
    while not session.stop.is_set():
        asked_ms = now_ms()
        try:
            polled = consumer.poll(timeout_ms=int(POLL_S * 1000))
        except OffsetOutOfRangeError as error:
            reading.failed(asked_ms, error)
            for each, partition in partitions.items():
                reading.lost(partition)
                consumer.seek(each, 0)
            continue
        except KafkaPythonError as error:
            reading.failed(asked_ms, error)
            session.stop.wait(RETRY_S)
            continue
        for each, records in polled.items():
            reading.polled(asked_ms, each.partition, [(record.offset, record.value) for record in records])
    consumer.close()
