"""A forked child that lives on holds nothing of the test's brokers: they are killed and start again meanwhile."""

import os
import socket
from collections.abc import Iterator

import pytest

from odradek.testing import Kafka, cluster
from odradek.testing.hosting.inherited_sockets import let_go

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


@pytest.fixture
def kafka() -> Iterator[Kafka]:
    with cluster(brokers=2) as kafka:
        kafka.create_topic("orders", 1, 2)
        yield kafka


def connected(address: str) -> socket.socket:
    host, port = address.split(":")
    return socket.create_connection((host, int(port)), timeout=5)


def test_a_broker_is_killed_and_starts_again_while_a_child_lives(kafka: Kafka) -> None:
    with connected(kafka.brokers[1].address) as client:
        kafka.produce("orders", ["before"])
        ours, theirs = socket.socketpair()
        child = os.fork()
        if child == 0:
            ours.close()
            theirs.send(b"it lives")
            theirs.recv(1)  # until the parent closes its end
            os._exit(0)
        try:
            assert ours.recv(8) == b"it lives"
            kafka.brokers[1].kill()
            assert client.recv(1) == b""
            with pytest.raises(ConnectionRefusedError):
                connected(kafka.brokers[1].address).close()
            kafka.brokers[1].start()
            kafka.produce("orders", ["after"])
        finally:
            ours.close()
            theirs.close()
            os.waitpid(child, 0)
    assert len(kafka.records("orders", 2)) == 2


def test_a_descriptor_stays_taken_and_leads_nowhere() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        let_go([ours.fileno(), 1_000_000])
        assert os.read(ours.fileno(), 1) == b""
        assert theirs.recv(1) == b"", "its other end is closed"
