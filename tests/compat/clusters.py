"""What our own client is proven against: `odradek serve` and Apache Kafka, behind one small interface, for fixtures."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.apache_kafka import ApacheKafka
from tests.odradek_broker import OdradekBroker

ODRADEK, APACHE_KAFKA = "odradek", "apache-kafka"
BOTH = [ODRADEK, pytest.param(APACHE_KAFKA, marks=[pytest.mark.java, pytest.mark.slow])]
"""Parameters of a fixture that starts `cluster(request.param, directory)`."""

PATIENCE_S: Final = 15.0
PAUSE_S: Final = 0.05
"""Between two questions, not instead of them."""

OPTIONS = {"num.partitions": "2", "auto.create.topics.enable": "false"}

SASL = {
    "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": (
        "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    ),
}
USER = ("SCRAM-SHA-256", "alice", "her-secret")
"""Apache Kafka has a second listener, SASL_PLAINTEXT, for her."""

Cluster = OdradekBroker | ApacheKafka


@contextmanager
def cluster(kind: str, directory: Path) -> Generator[Cluster]:
    """One running broker without topics, that does not create any by itself."""
    if kind == ODRADEK:
        options = [word for name, value in OPTIONS.items() for word in ("--set", f"{name}={value}")]
        with OdradekBroker(directory / "data", *options) as broker:
            yield broker
    else:
        with ApacheKafka(properties=OPTIONS | SASL, listeners=["SASL_PLAINTEXT"], scram=[USER]) as kafka:
            yield kafka


def eventually(ask: Callable[[], object], expected: object) -> None:
    """Asks until the answer is this one: Kafka's brokers hear of a change after the controller has answered for it."""
    deadline = time.monotonic() + PATIENCE_S
    while (answer := ask()) != expected:
        assert time.monotonic() < deadline, f"still {answer!r}, not {expected!r}"
        time.sleep(PAUSE_S)


async def soon(ask: Callable[[], Awaitable[object]], expected: object) -> None:
    """The same, of what is awaited."""
    deadline = time.monotonic() + PATIENCE_S
    while (answer := await ask()) != expected:
        assert time.monotonic() < deadline, f"still {answer!r}, not {expected!r}"
        await asyncio.sleep(PAUSE_S)
