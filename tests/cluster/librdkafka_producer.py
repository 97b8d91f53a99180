"""librdkafka's producer under test, idempotent with acks=all."""

import threading
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, Message
from confluent_kafka import Producer as LibrdkafkaProducer

from tests.cluster.client_session import FLUSH_S, PAUSE_S, RECONNECT_MS, REQUEST_TIMEOUT_MS, Sending, Session


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
