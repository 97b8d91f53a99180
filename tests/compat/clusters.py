"""What clients are proven against, behind one small interface, for fixtures: one broker of ours, three of ours that
replicate to one another, and Apache Kafka.

On three brokers `make compat` runs all, and `make test` only what is marked `telling`; our own client and commands meet
Apache Kafka in `make compat` alone (`conftest.py`).
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from processes.apache_kafka import ApacheKafka
from processes.odradek_broker import OdradekBroker
from processes.odradek_cluster import OdradekCluster
from processes.supervised_cluster import SupervisedCluster
from tests.compat.kit_cluster import KitCluster

ODRADEK, THREE_BROKERS, APACHE_KAFKA = "odradek", "three-brokers", "apache-kafka"
ON_THREE = pytest.param(THREE_BROKERS, marks=pytest.mark.three_brokers)
OURS = [ODRADEK, ON_THREE]
ON_KAFKA = pytest.param(APACHE_KAFKA, marks=[pytest.mark.java, pytest.mark.slow, pytest.mark.only_in_compat])
EVERY_KIND = [*OURS, ON_KAFKA]
"""Parameters of a fixture that starts `cluster(request.param, directory)`."""

PATIENCE_S: Final = 15.0
PAUSE_S: Final = 0.05
"""Between two questions, not instead of them."""

KEEPS_OLD_RECORDS = {"log.retention.check.interval.ms": "3600000", "log.initial.task.delay.ms": "3600000"}
"""Many tests send records of 1970. Retention, 30 s after Kafka's start and every five minutes, would delete them
between two steps."""

OPTIONS = {
    "num.partitions": "2",
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "500",  # of the kit 0: kafka-python joins again when it hears of the topic
} | KEEPS_OLD_RECORDS

SASL = {
    "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": (
        "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    ),
}
USER = ("SCRAM-SHA-256", "alice", "her-secret")
"""Apache Kafka has a second listener, SASL_PLAINTEXT, for her."""

Ours = KitCluster
Cluster = Ours | OdradekBroker | OdradekCluster | SupervisedCluster | ApacheKafka


@contextmanager
def cluster(kind: str, directory: Path) -> Generator[Cluster]:
    """One that runs, without topics, and does not create any by itself."""
    if kind == APACHE_KAFKA:
        with ApacheKafka(properties=OPTIONS | SASL, listeners=["SASL_PLAINTEXT"], scram=[USER]) as kafka:
            yield kafka
    else:
        with ours(kind, directory, **OPTIONS) as running:
            yield running


@contextmanager
def ours(kind: str, directory: Path, **options: str) -> Generator[KitCluster]:
    """One of ours that runs; new topics get as many replicas as it has brokers."""
    with KitCluster({ODRADEK: 1, THREE_BROKERS: 3}[kind], directory / "data", options) as running:
        yield running


def broker_count(running: Cluster) -> int:
    """It is also how many replicas a topic gets, unless it asks for another number."""
    return len(running.addresses) if isinstance(running, KitCluster | OdradekCluster | SupervisedCluster) else 1


def eventually(ask: Callable[[], object], expected: object, patience_s: float = PATIENCE_S) -> None:
    """Asks until the answer is this one: Kafka's brokers hear of a change after the controller has answered for it."""
    deadline = time.monotonic() + patience_s
    while (answer := ask()) != expected:
        assert time.monotonic() < deadline, f"still {answer!r}, not {expected!r}"
        time.sleep(PAUSE_S)


async def soon(ask: Callable[[], Awaitable[object]], expected: object) -> None:
    """The same, of what is awaited."""
    deadline = time.monotonic() + PATIENCE_S
    while (answer := await ask()) != expected:
        assert time.monotonic() < deadline, f"still {answer!r}, not {expected!r}"
        await asyncio.sleep(PAUSE_S)
