"""Producers of two foreign projects, alike, as an application uses them."""

from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from confluent_kafka import KafkaException, Message, Producer
from kafka import KafkaProducer

from odradek.testing.waiting import wait_in_thread

REQUEST_TIMEOUT_MS = 250
BACKOFF_MS = 10


class Sent(Protocol):
    """A record on its way."""

    @property
    def is_done(self) -> bool: ...

    def offset(self) -> int:
        """Waits for that. Raises what the client told the application."""
        ...


class Sender(Protocol):
    def send(self, topic: str, value: bytes, partition: int = 0) -> Sent: ...

    @property
    def throttled_ms(self) -> float:
        """What the application is told of the broker's throttling, at most."""
        ...


class _OfKafkaPython:
    def __init__(self, future: Any) -> None:
        self._future = future

    @property
    def is_done(self) -> bool:
        return bool(self._future.is_done)

    def offset(self) -> int:
        return int(self._future.get(10).offset)


class KafkaPython:
    def __init__(self, servers: str) -> None:
        self._producer = KafkaProducer(
            bootstrap_servers=servers, request_timeout_ms=REQUEST_TIMEOUT_MS, retry_backoff_ms=BACKOFF_MS
        )

    def send(self, topic: str, value: bytes, partition: int = 0) -> Sent:
        return _OfKafkaPython(self._producer.send(topic, value, partition=partition))

    @property
    def throttled_ms(self) -> float:
        return float(self._producer.metrics()["producer-metrics"]["throttle-time-max"])

    def close(self) -> None:
        self._producer.close(10)


class _OfConfluent:
    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._told: list[tuple[Any, Message]] = []

    def delivered(self, error: Any, message: Message) -> None:
        self._told.append((error, message))

    @property
    def is_done(self) -> bool:
        self._producer.poll(0)
        return bool(self._told)

    def offset(self) -> int:
        wait_in_thread(lambda: self.is_done, "delivered")
        [(error, message)] = self._told
        if error is not None:
            raise KafkaException(error)
        offset = message.offset()
        assert offset is not None
        return offset


class Confluent:
    def __init__(self, servers: str) -> None:
        self._throttled_s = 0.0
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "enable.idempotence": True,
                "socket.timeout.ms": REQUEST_TIMEOUT_MS,
                "retry.backoff.ms": BACKOFF_MS,
                "linger.ms": 0,
                "throttle_cb": self._throttled,
                "log_level": 0,
            }
        )

    def _throttled(self, event: Any) -> None:
        self._throttled_s = max(self._throttled_s, event.throttle_time)

    def send(self, topic: str, value: bytes, partition: int = 0) -> Sent:
        sent = _OfConfluent(self._producer)
        self._producer.produce(topic, value, partition=partition, on_delivery=sent.delivered)
        return sent

    @property
    def throttled_ms(self) -> float:
        self._producer.poll(0)
        return 1000.0 * self._throttled_s

    def close(self) -> None:
        self._producer.flush(10)


SENDERS: dict[str, Callable[[str], KafkaPython | Confluent]] = {
    "kafka-python": KafkaPython,
    "confluent-kafka": Confluent,
}


@contextmanager
def sender(name: str, servers: str) -> Generator[Sender]:
    made = SENDERS[name](servers)
    try:
        yield made
    finally:
        with suppress(TimeoutError):
            made.close()
