"""The network in memory: who reaches whom, how an attempt ends, and that a whole broker runs on it."""

import asyncio
import socket

import pytest

from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.server import Broker
from odradek.protocol.messages.metadata import MetadataRequest
from tests.broker.wire import RawClient, batch, create_topic, produced, settings
from tests.client.memory_network import (
    CLIENT_ADDRESS,
    MemoryEnvironment,
    MemoryNetwork,
    Reach,
    SocketsLeft,
)
from tests.client.virtual_time import virtual_loop

pytestmark = pytest.mark.virtual_time

ADDRESS, PORT = "10.0.0.1", 9092


def listen(network: MemoryNetwork, address: str = ADDRESS, port: int = PORT) -> list[asyncio.BaseTransport]:
    """Listens, and returns the list to which the transports of accepted connections are added."""
    accepted: list[asyncio.BaseTransport] = []

    class Accepting(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            accepted.append(transport)

    network.listen(Accepting, address, port).start()
    return accepted


async def test_connecting_takes_a_round_trip_and_both_ends_know_each_other() -> None:
    network = MemoryNetwork()
    environment = MemoryEnvironment(network)
    network.path(ADDRESS, PORT).to_server.delay_ms = 30
    network.path(ADDRESS, PORT).to_client.delay_ms = 12
    accepted = listen(network)
    start_ms = environment.monotonic_ms()
    transport = await environment.connect(asyncio.Protocol, ADDRESS, PORT)
    assert round(environment.monotonic_ms() - start_ms, 6) == 42
    assert transport.get_extra_info("peername") == (ADDRESS, PORT)
    assert accepted[0].get_extra_info("peername")[0] == CLIENT_ADDRESS
    assert [attempt[1:] for attempt in network.attempts] == [(ADDRESS, PORT)]
    [link] = network.links_to(ADDRESS, PORT)
    assert "open at: client, server" in repr(link)
    network.stop()


async def test_nobody_listening_refuses_and_so_does_a_server_that_does_not_serve_yet() -> None:
    network = MemoryNetwork()
    environment = MemoryEnvironment(network)
    with pytest.raises(ConnectionRefusedError, match=r"10.0.0.1:9092"):
        await environment.connect(asyncio.Protocol, ADDRESS, PORT)
    server, _ = await environment.listen(asyncio.Protocol, ADDRESS, PORT)
    with pytest.raises(ConnectionRefusedError):
        await environment.connect(asyncio.Protocol, ADDRESS, PORT)
    await server.start_serving()
    await environment.connect(asyncio.Protocol, ADDRESS, PORT)
    server.close()
    await server.wait_closed()
    with pytest.raises(ConnectionRefusedError):
        await environment.connect(asyncio.Protocol, ADDRESS, PORT)
    assert len(network.links) == 1, "closing the listener keeps what was accepted"
    network.stop()


async def test_a_path_refuses_or_swallows_attempts_as_told() -> None:
    network = MemoryNetwork()
    accepted = listen(network)
    path = network.path(ADDRESS, PORT)
    path.reach = Reach.REFUSED
    with pytest.raises(ConnectionRefusedError):
        await network.connect(asyncio.Protocol, ADDRESS, PORT)
    path.reach = Reach.BLACK_HOLE
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(network.connect(asyncio.Protocol, ADDRESS, PORT), 30)
    start_s = network.loop.time()
    with pytest.raises(TimeoutError, match="timed out"):
        await network.connect(asyncio.Protocol, ADDRESS, PORT)
    assert 127 <= network.loop.time() - start_s < 128
    assert accepted == []
    network.loop.call_later(5, setattr, path, "reach", Reach.OPEN)
    start_s = network.loop.time()
    await network.connect(asyncio.Protocol, ADDRESS, PORT)
    assert 7 <= network.loop.time() - start_s < 7.1, "the first packet was sent again after 1, 3 and 7 s"
    assert len(accepted) == 1
    assert len(network.attempts) == 4
    network.stop()


async def test_an_attempt_that_is_cancelled_leaves_no_connection() -> None:
    network = MemoryNetwork()
    network.path(ADDRESS, PORT).to_client.delay_ms = 1_000
    accepted = listen(network)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(network.connect(asyncio.Protocol, ADDRESS, PORT), 0.5)
    assert len(accepted) == 1
    network.check_closed()
    await asyncio.sleep(5)
    assert accepted[0].is_closing()
    assert network.links == []


async def test_a_server_that_resets_at_once_makes_connecting_fail() -> None:
    class Rude(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            network.loop.call_soon(lambda: network.links[0].reset())

    told: list[str] = []

    class Client(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            told.append("made")

        def connection_lost(self, exc: Exception | None) -> None:
            told.append("lost")

    network = MemoryNetwork()
    network.listen(Rude, ADDRESS, PORT).start()
    with pytest.raises(ConnectionResetError):
        await network.connect(Client, ADDRESS, PORT)
    assert told == []
    assert network.links == []


async def test_names_have_addresses_and_unknown_ones_have_none() -> None:
    network = MemoryNetwork()
    network.names["kafka.test"] = ["10.0.0.7", "10.0.0.8"]
    seventh, eighth = listen(network, "10.0.0.7"), listen(network, "10.0.0.8")
    await network.connect(asyncio.Protocol, "kafka.test", PORT)
    await network.connect(asyncio.Protocol, "10.0.0.8", PORT)
    assert (len(seventh), len(eighth)) == (1, 1)
    assert len(network.links_to("kafka.test", PORT)) == 2
    with pytest.raises(socket.gaierror, match=r"unknown\.test"):
        await network.connect(asyncio.Protocol, "unknown.test", PORT)
    environment = MemoryEnvironment(network)
    assert await environment.resolve("kafka.test", PORT) == ["10.0.0.7", "10.0.0.8"]
    assert await environment.resolve("2001:db8::1", PORT) == ["2001:db8::1"]
    assert await environment.canonical_name("10.0.0.8") == "kafka.test"
    with pytest.raises(socket.gaierror):
        await environment.canonical_name("10.0.0.9")
    network.names["kafka.test"] = []
    with pytest.raises(socket.gaierror):
        await environment.resolve("kafka.test", PORT)
    network.stop()


async def test_an_address_is_bound_once_and_port_0_is_a_free_one() -> None:
    environment = MemoryEnvironment(MemoryNetwork())
    _, [(host, port)] = await environment.listen(asyncio.Protocol, ADDRESS, 0)
    assert (host, port != 0) == (ADDRESS, True)
    with pytest.raises(OSError, match="in use"):
        await environment.listen(asyncio.Protocol, ADDRESS, port)
    _, [(_, other)] = await environment.listen(asyncio.Protocol, ADDRESS, 0)
    assert other != port


async def test_a_socket_left_open_is_found() -> None:
    network = MemoryNetwork()
    listen(network)
    network.check_closed()
    transport = await network.connect(asyncio.Protocol, ADDRESS, PORT)
    with pytest.raises(SocketsLeft, match=r"connection 1 to 10.0.0.1:9092"):
        network.check_closed()
    transport.close()
    network.check_closed()
    network.stop()


async def test_stop_ends_everything_at_once() -> None:
    network = MemoryNetwork()
    accepted = listen(network)
    lost: list[Exception | None] = []

    class Client(asyncio.Protocol):
        def connection_lost(self, exc: Exception | None) -> None:
            lost.append(exc)

    for _ in range(3):
        transport = await network.connect(Client, ADDRESS, PORT)
        transport.write(b"on the way")
    network.stop()
    assert virtual_loop().timers() == []
    await virtual_loop().settle()
    assert [type(error) for error in lost] == [ConnectionResetError] * 3
    assert all(transport.is_closing() for transport in accepted)
    with pytest.raises(ConnectionRefusedError):
        await network.connect(asyncio.Protocol, ADDRESS, PORT)


async def test_a_whole_broker_runs_on_it_in_virtual_time() -> None:
    """The seams suffice: listening, clocks, chance and helper threads all come from the environment."""
    network = MemoryNetwork(seed=3)
    broker = Broker(settings(), MemoryEnvironment(network, address="127.0.0.1"), MemoryDisk())
    await broker.start()
    endpoint = next(iter(broker.bound.values()))
    network.path(endpoint.host, endpoint.port).to_server.delay_ms = 100
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    transport = await network.connect(lambda: protocol, endpoint.host, endpoint.port)
    client = RawClient(reader, asyncio.StreamWriter(transport, protocol, reader, loop))
    start_s = loop.time()
    await create_topic(client, "orders")
    assert (await produced(client, "orders", batch(b"a", b"b"))).base_offset == 0
    assert (await produced(client, "orders", batch(b"c"))).base_offset == 2
    assert len((await client.ask(MetadataRequest(topics=None), 8)).topics) == 1
    assert 0.4 < loop.time() - start_s < 2
    client.close()
    await client.writer.wait_closed()
    await broker.stop()
    network.check_closed()
    network.stop()
