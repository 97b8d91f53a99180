"""A direction in memory: when and in which pieces bytes arrive, how much is on the way, and how it breaks."""

import asyncio
import random
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.testing.sim.world.memory_pipe import Direction, Tear, byte_by_byte, torn_at, torn_randomly
from tests.client.memory_network import Link, MemoryNetwork
from tests.client.virtual_time import run_virtual

ADDRESS, PORT = "10.0.0.1", 9092


class Reader(asyncio.Protocol):
    """Keeps each read with its time, and how it ended."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self.reads: list[tuple[float, bytes]] = []
        self.lost: list[Exception | None] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.reads.append((asyncio.get_running_loop().time() * 1000.0, data))

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.append(exc)

    @property
    def data(self) -> bytes:
        return b"".join(data for _, data in self.reads)


class Lab:
    """One connection, its client's end and its server's."""

    def __init__(self, network: MemoryNetwork, client: Reader, server: Reader) -> None:
        self.network = network
        self.client = client
        self.server = server

    @property
    def link(self) -> Link:
        return self.network.links[0]

    @property
    def to_server(self) -> Direction:
        return self.network.path(ADDRESS, PORT).to_server

    @property
    def now_ms(self) -> float:
        return self.network.loop.time() * 1000.0


async def connect(*, seed: int = 0, sends_late: bool = False) -> Lab:
    network = MemoryNetwork(seed=seed, sends_late=sends_late)
    client, server = Reader(), Reader()
    network.listen(lambda: server, ADDRESS, PORT).start()
    await network.connect(lambda: client, ADDRESS, PORT)
    return Lab(network, client, server)


def run(main: Coroutine[Any, Any, None]) -> None:
    run_virtual(main, debug=True)


def test_bytes_take_their_delay_and_come_together_when_they_lie_there_together() -> None:
    async def main() -> None:
        lab = await connect()
        lab.to_server.delay_ms = 40
        start_ms = lab.now_ms
        lab.client.transport.write(b"one ")
        lab.client.transport.write(b"two")
        await asyncio.sleep(0.010)
        lab.client.transport.write(b"three")
        await asyncio.sleep(1)
        reads = [(round(at_ms - start_ms, 6), data) for at_ms, data in lab.server.reads]
        assert reads == [(40, b"one two"), (50, b"three")]
        lab.network.stop()

    run(main())


def test_a_line_of_little_bandwidth_takes_its_time_for_each_byte() -> None:
    async def main() -> None:
        lab = await connect()
        lab.to_server.delay_ms = 10
        lab.to_server.bytes_per_ms = 100
        start_ms = lab.now_ms
        for _ in range(3):
            lab.client.transport.write(b"x" * 1_000)
        await asyncio.sleep(1)
        assert [round(at_ms - start_ms, 6) for at_ms, _ in lab.server.reads] == [20, 30, 40]
        lab.client.transport.write(b"x" * 100)  # the line has been idle: that gives no credit
        start_ms = lab.now_ms
        await asyncio.sleep(1)
        assert round(lab.server.reads[-1][0] - start_ms, 6) == 11
        lab.network.stop()

    run(main())


@given(st.lists(st.tuples(st.binary(min_size=1, max_size=20), st.floats(0, 5)), max_size=20), st.integers(0, 10))
def test_jitter_overtakes_nothing(writes: list[tuple[bytes, float]], seed: int) -> None:
    async def main() -> None:
        lab = await connect(seed=seed)
        lab.to_server.jitter_ms = 50
        for data, pause_ms in writes:
            lab.client.transport.write(data)
            await asyncio.sleep(pause_ms / 1000)
        await asyncio.sleep(1)
        assert lab.server.data == b"".join(data for data, _ in writes)
        lab.network.stop()

    run_virtual(main())


TEARS: list[tuple[Tear, list[int]]] = [
    (byte_by_byte, [1] * 10),
    (torn_at(3, 4, 9), [3, 1, 5, 1]),
    (torn_at(), [10]),
]


@pytest.mark.parametrize(("tear", "sizes"), TEARS)
def test_torn_bytes_come_in_these_pieces_and_in_order(tear: Tear, sizes: list[int]) -> None:
    async def main() -> None:
        lab = await connect()
        lab.to_server.tear = tear
        lab.client.transport.write(b"0123456789")
        await asyncio.sleep(1)
        assert [len(data) for _, data in lab.server.reads] == sizes
        assert lab.to_server.read_count == len(sizes)
        assert lab.server.data == b"0123456789"
        lab.network.stop()

    run(main())


@given(st.integers(0, 1_000))
def test_randomly_torn_bytes_are_all_there(seed: int) -> None:
    async def main() -> None:
        lab = await connect()
        lab.to_server.tear = torn_randomly(random.Random(seed).randint)
        data = random.Random(seed).randbytes(2_000)
        lab.client.transport.write(data)
        await asyncio.sleep(1)
        assert lab.server.data == data
        assert all(len(read) > 0 for _, read in lab.server.reads)
        lab.network.stop()

    run_virtual(main())


def test_a_stalled_peer_reads_nothing_until_it_flows_again() -> None:
    async def main() -> None:
        lab = await connect()
        lab.to_server.is_stalled = True
        lab.client.transport.write(b"x" * 100_000)
        await asyncio.sleep(10)
        assert lab.server.reads == []
        assert lab.link.to_server.arrived_bytes == lab.to_server.window_bytes
        assert lab.client.transport.get_write_buffer_size() == 100_000 - lab.to_server.window_bytes
        lab.to_server.is_stalled = False
        lab.link.to_server.flow()
        await asyncio.sleep(1)
        assert len(lab.server.data) == 100_000
        assert lab.client.transport.get_write_buffer_size() == 0
        lab.network.stop()

    run(main())


@pytest.mark.parametrize("arriving", [0, 1, 7, 99, 100])
def test_a_reset_comes_after_exactly_so_many_bytes(arriving: int) -> None:
    async def main() -> None:
        lab = await connect()
        lab.to_server.reset_after_bytes = arriving
        lab.client.transport.write(b"x" * 60)
        await asyncio.sleep(0.1)
        assert len(lab.server.data) == min(60, arriving)
        if not lab.client.transport.is_closing():
            lab.client.transport.write(b"x" * 60)
        await asyncio.sleep(0.1)
        assert len(lab.server.data) == arriving
        for end in (lab.client, lab.server):
            assert [type(error) for error in end.lost] == [ConnectionResetError]
        assert lab.network.links == []

    run(main())


def test_a_dead_pipe_says_nothing_at_all() -> None:
    async def main() -> None:
        lab = await connect()
        link = lab.link
        lab.client.transport.write(b"on the way")
        link.lose_server()
        lab.client.transport.write(b"x" * 200_000)
        await asyncio.sleep(3_000)
        assert lab.server.lost == [None]
        assert lab.server.data == b""
        assert lab.client.lost == []
        assert lab.client.transport.get_write_buffer_size() > 0
        lab.client.transport.abort()
        await asyncio.sleep(0)
        assert lab.client.lost == [None]
        assert lab.network.links == []

    run(main())
