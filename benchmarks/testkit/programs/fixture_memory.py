"""A test that tells how much memory its process has: with the test kit's brokers in a fixture, or without any.

TESTKIT_BROKERS says how many there are, 0 by default: then kafka-python is imported and does nothing. TESTKIT_ANSWER is
the file that gets `/proc/self/smaps_rollup` and `/proc/self/status`.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaProducer

BROKERS = int(os.environ.get("TESTKIT_BROKERS", "0"))
TOPIC = "memory"
IDLE_S = float(os.environ.get("TESTKIT_IDLE_S", "0"))
TIMEOUT_S = 30.0


@pytest.fixture(scope="session")
def servers() -> Iterator[str]:
    """An empty text where there are no brokers."""
    if BROKERS == 0:
        yield ""
        return
    from odradek.testing import cluster  # not at the top: the bare process does not have it

    with cluster(BROKERS, topics=[TOPIC]) as kafka:
        yield kafka.bootstrap_servers


def test_memory(servers: str) -> None:
    if servers:
        with KafkaProducer(bootstrap_servers=servers, acks="all") as producer:
            producer.send(TOPIC, b"a record").get(TIMEOUT_S)
    time.sleep(IDLE_S)  # idle, as measured
    told = [Path(f"/proc/self/{name}").read_text() for name in ("smaps_rollup", "status")]
    Path(os.environ["TESTKIT_ANSWER"]).write_text("".join(told))
