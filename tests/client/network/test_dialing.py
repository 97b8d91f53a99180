"""Names, addresses and the way to a TCP connection, on a network in memory: which are tried, for how long, in vain."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from odradek.client.configuration.client_config import ClientConfig
from odradek.client.errors.client_errors import ClientError, ConnectionFailed
from odradek.client.network.dialing import Target, broker_name, dial, find_targets
from odradek.client.network.tls import TlsContexts
from tests.client.memory_network import MemoryEnvironment, MemoryNetwork, Reach

pytestmark = pytest.mark.virtual_time

PORT = 9092
CANONICAL = "resolve_canonical_bootstrap_servers_only"


@pytest.fixture
async def network() -> AsyncGenerator[MemoryNetwork]:
    made = MemoryNetwork()
    made.names["kafka.test"] = ["10.0.0.1", "fd00::2", "10.0.0.3"]
    made.names["one.test"] = ["10.0.0.1"]
    yield made
    made.stop()
    made.check_closed()


def config(**settings: Any) -> ClientConfig:
    return ClientConfig("kafka.test:9092", **settings)


def listen(network: MemoryNetwork, address: str) -> None:
    network.listen(asyncio.Protocol, address, PORT).start()


async def targets(network: MemoryNetwork, host: str, node_id: int = -1, **settings: Any) -> list[Target]:
    return await find_targets(MemoryEnvironment(network), config(**settings), node_id, host, PORT, 1_000)


async def dial_as(
    settings: ClientConfig, network: MemoryNetwork, factory: Callable[[], asyncio.BaseProtocol], address: str, ms: float
) -> None:
    environment, target = MemoryEnvironment(network), Target(address, "kafka.test")
    await dial(environment, settings, TlsContexts(settings), factory, target, PORT, "the broker", ms)


async def attempt(network: MemoryNetwork, address: str, timeout_ms: float = 1_000, **settings: Any) -> ClientError:
    with pytest.raises(ConnectionFailed) as caught:
        await dial_as(config(**settings), network, asyncio.Protocol, address, timeout_ms)
    assert "the broker" in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("node_id", "host", "name"),
    [
        (3, "kafka.test", "broker 3 (kafka.test:9092)"),
        (-1, "kafka.test", "bootstrap server kafka.test:9092"),
        (0, "::1", "broker 0 ([::1]:9092)"),
    ],
)
async def test_brokers_are_called_by_number_and_place(node_id: int, host: str, name: str) -> None:
    assert broker_name(node_id, host, PORT) == name


async def test_all_addresses_of_a_name_are_found_in_order(network: MemoryNetwork) -> None:
    expected = [Target(address, "kafka.test") for address in ("10.0.0.1", "fd00::2", "10.0.0.3")]
    for node_id in (-1, 5):
        assert await targets(network, "kafka.test", node_id) == expected


async def test_a_bootstrap_name_stands_for_the_canonical_names_of_its_addresses(network: MemoryNetwork) -> None:
    network.names = {"one.test": ["10.0.0.1"], "two.test": ["fd00::2"], **network.names}
    found = await targets(network, "kafka.test", client_dns_lookup=CANONICAL)
    assert found == [Target("10.0.0.1", "one.test"), Target("fd00::2", "two.test"), Target("10.0.0.3", "kafka.test")]
    of_a_broker = await targets(network, "kafka.test", 1, client_dns_lookup=CANONICAL)
    assert {target.name for target in of_a_broker} == {"kafka.test"}


async def test_an_address_without_a_name_is_its_own(network: MemoryNetwork) -> None:
    assert await targets(network, "10.9.9.9", client_dns_lookup=CANONICAL) == [Target("10.9.9.9", "10.9.9.9")]


async def test_a_name_that_nobody_knows_is_an_error_that_may_pass(network: MemoryNetwork) -> None:
    with pytest.raises(ConnectionFailed, match=r"nowhere\.test:9092 failed: its name cannot be resolved"):
        await targets(network, "nowhere.test")


async def test_a_resolver_that_does_not_answer_is_given_up(network: MemoryNetwork) -> None:
    network.resolve_ms = 30_000
    with pytest.raises(ConnectionFailed, match="not resolved within 1000 ms"):
        await targets(network, "kafka.test")


@pytest.mark.parametrize("error", [OSError("broken"), UnicodeError("label too long"), socket.gaierror(-2, "unknown")])
async def test_whatever_a_resolver_raises_is_an_error_of_ours(error: Exception, network: MemoryNetwork) -> None:
    class Broken(MemoryEnvironment):
        async def resolve(self, host: str, port: int) -> list[str]:
            raise error

    with pytest.raises(ConnectionFailed) as caught:
        await find_targets(Broken(network), config(), 1, "kafka.test", PORT, 1_000)
    assert caught.value.__cause__ is error


async def test_a_name_without_addresses_is_an_error(network: MemoryNetwork) -> None:
    class Empty(MemoryEnvironment):
        async def resolve(self, host: str, port: int) -> list[str]:
            return []

    with pytest.raises(ConnectionFailed, match="has no address"):
        await find_targets(Empty(network), config(), 1, "kafka.test", PORT, 1_000)


async def test_a_refusal_names_address_and_reason(network: MemoryNetwork) -> None:
    assert "10.0.0.1: connect to 10.0.0.1:9092: Connection refused" in str(await attempt(network, "10.0.0.1"))


async def test_an_address_that_does_not_answer_is_given_up_in_time(network: MemoryNetwork) -> None:
    network.path("10.0.0.1", PORT).reach = Reach.BLACK_HOLE
    before_s = asyncio.get_running_loop().time()
    error = await attempt(network, "10.0.0.1", 2_500)
    assert asyncio.get_running_loop().time() - before_s == pytest.approx(2.5)
    assert "not reached within 2500 ms at 10.0.0.1" in str(error)


async def test_a_listener_that_is_silent_in_tls_is_given_up_in_time(network: MemoryNetwork) -> None:
    listen(network, "10.0.0.1")
    error = await attempt(network, "10.0.0.1", 2_500, security_protocol="SSL")
    assert "TLS was not set up within 2500 ms at 10.0.0.1" in str(error)


async def test_a_listener_that_closes_in_tls_is_suspected_to_have_none(network: MemoryNetwork) -> None:
    class Closing(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport = transport

        def data_received(self, data: bytes) -> None:
            self.transport.close()

    network.listen(Closing, "10.0.0.1", PORT).start()
    error = await attempt(network, "10.0.0.1", security_protocol="SSL")
    assert "a listener without TLS does that" in str(error)
    assert error.retriable


async def test_a_connection_is_made_with_the_protocol_given(network: MemoryNetwork) -> None:
    made: list[asyncio.BaseTransport] = []

    class Here(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            made.append(transport)

    listen(network, "fd00::2")
    await dial_as(config(), network, Here, "fd00::2", 1_000)
    assert [transport.get_extra_info("peername")[0] for transport in made] == ["fd00::2"]
    made[0].close()
    await asyncio.sleep(1)


async def test_who_is_cancelled_leaves_no_socket_behind(network: MemoryNetwork) -> None:
    listen(network, "10.0.0.1")
    for cancelled_after_s in (0.0, 0.000_1, 0.000_3, 0.000_4):
        dialing = dial_as(config(), network, asyncio.Protocol, "10.0.0.1", 1_000)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(dialing, cancelled_after_s)
        await asyncio.sleep(0.01)
        network.check_closed()
