"""Connections to other brokers: what fails is an OSError, and refused is told from everything else."""

import asyncio
from typing import Any

import pytest

from odradek.broker.membership.peers import Peer, PeerLost, Peers, is_peer
from odradek.client.errors.client_errors import ClientError
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.metadata import MetadataRequest
from tests.client.broker_sasl import Sasl, require_sasl
from tests.client.memory_network import MemoryNetwork, Reach
from tests.client.scripted_broker import ScriptedCluster

pytestmark = pytest.mark.virtual_time

TIMEOUT_MS = 1_000.0


class Scene:
    """One broker that is scripted, and the way to it."""

    def __init__(self) -> None:
        self.network = MemoryNetwork()
        self.cluster = ScriptedCluster(self.network)
        self.broker = self.cluster.brokers[0]
        self.peers = Peers(self.cluster.environment, 7, "PLAINTEXT")
        self.peer = Peer(0, (self.broker.address, self.broker.port))


async def test_a_connection_is_for_the_length_of_the_block() -> None:
    scene = Scene()
    async with scene.peers.connection(scene.peer, TIMEOUT_MS) as connection:
        await connection.ask(MetadataRequest(topics=[]), timeout_ms=TIMEOUT_MS)
        assert len(scene.network.links) == 1
    await connection.closed()
    assert not scene.network.open_clients()
    scene.network.stop()


async def test_nobody_listens() -> None:
    scene = Scene()
    scene.broker.stop()
    with pytest.raises(ConnectionRefusedError):
        await scene.peers.connect(scene.peer, TIMEOUT_MS)


async def test_nobody_answers_in_time_which_is_not_the_same() -> None:
    scene = Scene()
    scene.broker.path.reach = Reach.BLACK_HOLE
    with pytest.raises(PeerLost) as raised:
        await scene.peers.connect(scene.peer, TIMEOUT_MS)
    assert not isinstance(raised.value, ConnectionRefusedError)
    scene.network.stop()


async def test_what_breaks_in_the_block_leaves_it_as_an_os_error() -> None:
    scene = Scene()
    with pytest.raises(PeerLost) as raised:
        async with scene.peers.connection(scene.peer, TIMEOUT_MS) as connection:
            asking = asyncio.ensure_future(connection.ask(MetadataRequest(topics=[]), timeout_ms=TIMEOUT_MS))
            await asyncio.sleep(0)
            scene.broker.close_connections()
            await asking
    assert isinstance(raised.value, OSError)
    assert isinstance(raised.value.__cause__, ClientError)
    assert not scene.network.open_clients()


async def test_other_errors_of_the_block_stay_what_they_are() -> None:
    scene = Scene()
    with pytest.raises(KeyError):
        async with scene.peers.connection(scene.peer, TIMEOUT_MS):
            raise KeyError("ours")
    scene.network.stop()


@pytest.mark.parametrize(
    ("client_id", "expected"),
    [
        ("broker-12", True),
        ("broker-", False),
        ("broker-x", False),
        ("broker-1x", False),
        ("my-broker-1", False),
        ("b", False),
        ("", False),
        (None, False),
    ],
)
def test_a_broker_is_known_by_its_client_id(client_id: str | None, expected: bool) -> None:
    assert is_peer(client_id) is expected


async def test_who_this_broker_is_is_said_anew_for_each_connection() -> None:
    """A password that was changed at run time counts for the next connection."""
    scene = Scene()
    passwords = {"broker": "first"}
    require_sasl(scene.cluster, Sasl(passwords, mechanisms=["PLAIN"]))
    settings: dict[str, Any] = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN"}
    settings |= {"sasl_username": "broker", "sasl_password": "first"}
    scene.peers = Peers(scene.cluster.environment, 7, "OUTSIDE", lambda: settings)
    async with scene.peers.connection(scene.peer, TIMEOUT_MS) as connection:
        await connection.ask(MetadataRequest(topics=[]), timeout_ms=TIMEOUT_MS)
    settings = settings | {"sasl_password": "other"}
    with pytest.raises(PeerLost) as raised:
        await scene.peers.connect(scene.peer, TIMEOUT_MS)
    assert "other" not in str(raised.value)
    await asyncio.sleep(0.2)  # it closes late
    scene.network.stop()


async def test_what_the_configuration_lacks_is_said_as_the_loss_of_the_peer() -> None:
    def missing() -> dict[str, Any]:
        raise KafkaError(ErrorCode.INVALID_CONFIG, "sasl.jaas.config is missing")

    scene = Scene()
    scene.peers = Peers(scene.cluster.environment, 7, "OUTSIDE", missing)
    with pytest.raises(PeerLost, match=r"sasl\.jaas\.config is missing"):
        await scene.peers.connect(scene.peer, TIMEOUT_MS)
    scene.network.stop()
