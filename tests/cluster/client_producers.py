"""Producers under test: kafka-python, librdkafka and our own, idempotent with acks=all."""

import asyncio
import threading
from functools import partial
from typing import Any, Final

from confluent_kafka import KafkaError, Message
from confluent_kafka import Producer as LibrdkafkaProducer
from kafka import KafkaProducer
from kafka.producer.future import RecordMetadata

from odradek.client.errors.client_errors import ClientError
from odradek.client.producer.producer import Producer
from odradek.client.producer.results.delivery import Delivery
from tests.cluster.client_session import PAUSE_S, Sending, Session

FLUSH_S: Final = 100.0
REQUEST_TIMEOUT_MS: Final = 3_000
RECONNECT_MS: Final = 1_000


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


def send_with_librdkafka(session: Session) -> None:
    sending, job = Sending(session), session.job
    impatient: dict[str, Any] = {
        "socket.timeout.ms": REQUEST_TIMEOUT_MS,
        "request.timeout.ms": REQUEST_TIMEOUT_MS,
        "reconnect.backoff.max.ms": RECONNECT_MS,
    }

    def delivered(number: int, error: KafkaError | None, message: Message) -> None:
        partition, offset = message.partition(), message.offset()
        if error is not None or partition is None or offset is None:
            sending.failed(number, error)
        else:
            sending.acknowledged(number, partition, offset)

    producer = LibrdkafkaProducer(
        {
            "bootstrap.servers": job.bootstrap,
            "enable.idempotence": True,
            "linger.ms": 2,
            "log_level": 3,
            **({} if job.is_patient else impatient),
        }
    )

    def serve_callbacks() -> None:  # acknowledgements make room for more records
        while not session.stop.is_set():
            producer.poll(PAUSE_S)

    polling = threading.Thread(target=serve_callbacks)
    polling.start()
    for number in sending.numbers():
        producer.produce(
            job.topic,
            sending.sent(number),
            partition=sending.partition(number),
            on_delivery=partial(delivered, number),
        )
    polling.join()
    left = producer.flush(FLUSH_S)
    assert left == 0, f"{left} records were neither acknowledged nor failed"


def send_with_our_own(session: Session) -> None:
    asyncio.run(_send_with_our_own(session))


async def _send_with_our_own(session: Session) -> None:
    sending, job = Sending(session), session.job
    impatient: dict[str, Any] = {"request_timeout_ms": REQUEST_TIMEOUT_MS, "reconnect_backoff_max_ms": RECONNECT_MS}

    def ended(number: int, delivery: Delivery) -> None:
        error = delivery.exception()
        if error is None:
            ack = delivery.result()
            sending.acknowledged(number, ack.partition, ack.offset)
        else:
            sending.failed(number, error)

    number = 0
    async with Producer(
        job.bootstrap, linger_ms=2, enable_idempotence=True, acks=-1, **({} if job.is_patient else impatient)
    ) as producer:
        while not session.stop.is_set():
            if not sending.takes_room():
                await asyncio.sleep(PAUSE_S)
                continue
            told = partial(ended, number)
            try:
                await producer.send(
                    job.topic, sending.sent(number), partition=sending.partition(number), on_delivery=told
                )
            except ClientError as error:
                sending.failed(number, error, is_definite=True)
                await asyncio.sleep(PAUSE_S)
            number += 1
            if number % job.burst == 0:
                await asyncio.sleep(PAUSE_S)
