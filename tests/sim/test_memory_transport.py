"""Transports in memory keep asyncio's promises: one suite, run on real sockets of asyncio and uvloop as well.

What they add (changed bytes are found, a closing transport refuses) is tested below, in memory alone.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from odradek.runtime.environment import Environment
from odradek.testing.sim.world.memory_transport import BytesChanged, MemoryTransport
from tests.client.memory_network import MemoryEnvironment, MemoryNetwork
from tests.client.virtual_time import VirtualTimeLoop, run_virtual, virtual_loop

pytestmark = [pytest.mark.both_loops, pytest.mark.virtual_time]

BIG = 8 << 20


class Log:
    """What a protocol was told, and its transport."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self.events: list[str] = []
        self.received = bytearray()
        self.error: Exception | None = None
        self.changed = asyncio.Event()
        self.keeps_open = False
        self.raises_in: str | None = None
        self.closes_on_data = False

    @property
    def data(self) -> bytes:
        return bytes(self.received)

    def tell(self, event: str) -> None:
        self.events.append(event)
        self.changed.set()
        if event == "data" and self.closes_on_data:
            self.transport.close()
        if self.raises_in == event:
            raise LookupError(event)

    async def until(self, condition: Callable[[], object]) -> None:
        """Waits for something that this protocol is told."""
        async with asyncio.timeout(20):
            while not condition():
                self.changed.clear()
                await self.changed.wait()

    async def until_told(self, event: str) -> None:
        await self.until(lambda: event in self.events)


class Common(asyncio.BaseProtocol):
    def __init__(self, log: Log) -> None:
        self.log = log

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.log.transport = cast(asyncio.Transport, transport)
        self.log.tell("made")

    def connection_lost(self, exc: Exception | None) -> None:
        self.log.error = exc
        self.log.tell("lost")

    def pause_writing(self) -> None:
        self.log.tell("pause")

    def resume_writing(self) -> None:
        self.log.tell("resume")


class Plain(Common, asyncio.Protocol):
    def data_received(self, data: bytes) -> None:
        self.log.received += data
        self.log.tell("data")

    def eof_received(self) -> bool:
        self.log.tell("eof")
        return self.log.keeps_open


class Buffered(Common, asyncio.BufferedProtocol):
    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self.room = bytearray(7_000)

    def get_buffer(self, sizehint: int) -> bytearray:
        del sizehint
        return self.room

    def buffer_updated(self, nbytes: int) -> None:
        self.log.received += self.room[:nbytes]
        self.log.tell("data")

    def eof_received(self) -> bool:
        self.log.tell("eof")
        return self.log.keeps_open


Kind = Callable[[Log], Common]


@asynccontextmanager
async def connected(kind: Kind = Plain) -> AsyncGenerator[tuple[Log, Log]]:
    """The two ends of a connection, on the network that goes with the loop."""
    loop = asyncio.get_running_loop()
    client, server = Log(), Log()
    network = MemoryNetwork() if isinstance(loop, VirtualTimeLoop) else None
    environment = Environment() if network is None else MemoryEnvironment(network)
    host = "127.0.0.1" if network is None else "10.0.0.1"
    listener, [(host, port)] = await environment.listen(lambda: kind(server), host, 0)
    await listener.start_serving()
    await environment.connect(lambda: kind(client), host, port)
    await server.until_told("made")
    try:
        yield client, server
    finally:
        listener.close()
        for end in (client, server):
            if "lost" not in end.events:
                end.transport.abort()
            await end.until_told("lost")
        if network is not None:
            network.stop()


# ----------------------------------------------------------------------------------------- the same on every network
on_every_network = pytest.mark.parametrize("kind", [Plain, Buffered])


@on_every_network
async def test_bytes_arrive_in_order_whatever_they_were_given_as(kind: Kind) -> None:
    async with connected(kind) as (client, server):
        client.transport.write(b"a")
        client.transport.write(bytearray(b"b"))
        client.transport.write(memoryview(b"cd"))
        client.transport.write(b"")
        client.transport.writelines([b"e", memoryview(b"f"), b""])
        server.transport.write(b"back")
        await server.until(lambda: server.data == b"abcdef")
        await client.until(lambda: client.data == b"back")


@on_every_network
async def test_a_protocol_is_told_made_data_eof_lost(kind: Kind) -> None:
    async with connected(kind) as (client, server):
        client.transport.write(b"last words")
        client.transport.close()
        assert client.transport.is_closing()
        await server.until_told("lost")
        assert server.data == b"last words"
        assert server.events == ["made", "data", "eof", "lost"]
        assert server.transport.is_closing()
        assert server.error is None
        await client.until_told("lost")
        assert client.events == ["made", "lost"]
        assert client.error is None


@on_every_network
async def test_a_full_buffer_pauses_writing_and_an_empty_one_resumes_it(kind: Kind) -> None:
    async with connected(kind) as (client, server):
        server.transport.pause_reading()
        client.transport.write(bytes(BIG))
        assert client.events[-1] == "pause"
        assert client.transport.get_write_buffer_size() > 64 * 1024
        server.transport.resume_reading()
        await client.until_told("resume")
        assert client.transport.get_write_buffer_size() <= 16 * 1024
        await server.until(lambda: len(server.received) == BIG)
        assert client.events.count("pause") == client.events.count("resume") == 1


@on_every_network
async def test_write_buffer_limits_can_be_set(kind: Kind) -> None:
    async with connected(kind) as (client, server):
        client.transport.set_write_buffer_limits(high=1 << 30)
        server.transport.pause_reading()
        client.transport.write(bytes(BIG))
        assert "pause" not in client.events
        client.transport.set_write_buffer_limits(0)
        assert cast("Any", client.transport).get_write_buffer_limits() == (0, 0)
        client.transport.write(b"x")
        await client.until_told("pause")
        server.transport.resume_reading()
        await client.until_told("resume")
        assert client.transport.get_write_buffer_size() == 0
        with pytest.raises(ValueError, match="high"):
            client.transport.set_write_buffer_limits(high=1, low=2)


@on_every_network
async def test_close_sends_what_was_written_before_and_abort_does_not(kind: Kind) -> None:
    for close in (True, False):
        async with connected(kind) as (client, server):
            server.transport.pause_reading()
            client.transport.write(bytes(BIG))
            if close:
                client.transport.close()
                assert "lost" not in client.events
            else:
                client.transport.abort()
                await client.until_told("lost")
            assert client.transport.is_closing()
            server.transport.resume_reading()
            await server.until_told("lost")
            assert (len(server.received) == BIG) is close
            await client.until_told("lost")
            assert client.error is None


@on_every_network
async def test_paused_reading_gives_no_data_and_resumed_reading_gives_it_all(kind: Kind) -> None:
    async with connected(kind) as (client, server):
        server.transport.pause_reading()
        server.transport.pause_reading()
        assert not server.transport.is_reading()
        client.transport.write(b"x" * 1_000)
        client.transport.close()
        await client.until_told("lost")
        await asyncio.sleep(0.05)  # room for what must not come
        assert server.events == ["made"]
        server.transport.resume_reading()
        server.transport.resume_reading()
        await server.until_told("lost")
        assert len(server.received) == 1_000


@on_every_network
async def test_a_half_closed_connection_still_carries_the_other_half(kind: Kind) -> None:
    async with connected(kind) as (client, server):
        server.keeps_open = True
        assert client.transport.can_write_eof()
        client.transport.write(b"question")
        client.transport.write_eof()
        await server.until_told("eof")
        server.transport.write(b"answer")
        await client.until(lambda: client.data == b"answer")
        assert server.data == b"question"
        with pytest.raises(RuntimeError):
            client.transport.write(b"more")


@on_every_network
async def test_the_end_of_a_half_comes_behind_its_last_byte(kind: Kind) -> None:
    async with connected(kind) as (client, server):
        server.keeps_open = True
        server.transport.pause_reading()
        client.transport.write(bytes(BIG))
        client.transport.write_eof()
        assert client.transport.get_write_buffer_size() > 0
        server.transport.resume_reading()
        await server.until_told("eof")
        assert len(server.received) == BIG


@on_every_network
async def test_who_writes_to_a_closed_end_is_reset(kind: Kind) -> None:
    async with connected(kind) as (client, server):
        client.keeps_open = True
        server.transport.close()
        await client.until_told("eof")
        client.transport.write(b"nobody reads this")
        await asyncio.sleep(0.05)
        if not client.transport.is_closing():
            client.transport.write(b"nor this")
        await client.until_told("lost")
        assert isinstance(client.error, ConnectionError)


@on_every_network
async def test_an_end_that_leaves_bytes_unread_resets_the_other(kind: Kind) -> None:
    async with connected(kind) as (client, server):
        server.transport.pause_reading()
        client.transport.write(b"unread")
        await asyncio.sleep(0.05)
        server.transport.close()
        await client.until_told("lost")
        assert isinstance(client.error, ConnectionResetError)


@on_every_network
async def test_an_end_that_closes_when_it_has_read_everything_resets_nothing(kind: Kind) -> None:
    async with connected(kind) as (client, server):
        server.closes_on_data = True
        client.transport.write(b"the last request")
        await client.until_told("lost")
        assert client.events == ["made", "eof", "lost"]
        assert client.error is None


@on_every_network
async def test_the_other_protocol_can_take_over(kind: Kind) -> None:
    async with connected(kind) as (client, server):
        other = Log()
        server.transport.set_protocol(Plain(other))
        client.transport.write(b"for the other")
        await other.until(lambda: other.data == b"for the other")
        assert server.data == b""
        assert isinstance(server.transport.get_protocol(), Plain)
        server.transport.set_protocol(Plain(server))


@on_every_network
async def test_addresses_are_told(kind: Kind) -> None:
    async with connected(kind) as (client, server):
        assert client.transport.get_extra_info("peername")[:2] == server.transport.get_extra_info("sockname")[:2]
        assert client.transport.get_extra_info("sockname")[:2] == server.transport.get_extra_info("peername")[:2]
        assert client.transport.get_extra_info("no such thing", 7) == 7


@on_every_network
@pytest.mark.parametrize("where", ["data", "eof"])
async def test_a_protocol_that_raises_loses_its_connection_and_is_reported(kind: Kind, where: str) -> None:
    loop = asyncio.get_running_loop()
    reported: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda loop, context: reported.append(context))
    async with connected(kind) as (client, server):
        server.raises_in = where
        client.transport.write(b"x")
        if where == "eof":
            client.transport.close()
        await server.until_told("lost")
        assert isinstance(server.error, LookupError)
        assert [type(context["exception"]) for context in reported] == [LookupError]
        await client.until_told("lost")


# ------------------------------------------------------------------------------------------------- in memory alone


def run(main: Callable[[], Any]) -> None:
    run_virtual(main(), debug=True)


@pytest.mark.parametrize("sends_late", [False, True])
def test_bytes_that_are_changed_before_they_are_sent_are_found(sends_late: bool) -> None:
    """asyncio copies what it cannot send at once, uvloop keeps a view: here, changing it is always an error."""

    async def main() -> None:
        network = MemoryNetwork(sends_late=sends_late)
        client, server = Log(), Log()
        network.listen(lambda: Plain(server), "10.0.0.1", 9092).start()
        transport = await network.connect(lambda: Plain(client), "10.0.0.1", 9092)
        buffer = bytearray(200_000)
        transport.write(buffer)
        buffer[-1] = 1
        await client.until_told("lost")
        assert isinstance(client.error, BytesChanged)
        virtual_loop().errors.clear()
        network.stop()

    run(main)


def test_late_transports_send_in_the_round_after_the_write() -> None:
    async def main() -> None:
        sizes: list[int] = []
        for sends_late in (False, True):
            network = MemoryNetwork(sends_late=sends_late)
            network.listen(lambda: Plain(Log()), "10.0.0.1", 9092).start()
            transport = await network.connect(lambda: Plain(Log()), "10.0.0.1", 9092)
            assert isinstance(transport, MemoryTransport)
            transport.write(b"12345")
            sizes.append(transport.get_write_buffer_size())
            await virtual_loop().settle()
            assert transport.get_write_buffer_size() == 0
            network.stop()
        assert sizes == [0, 5]

    run(main)


@pytest.mark.parametrize("end", ["close", "abort"])
def test_writing_to_a_closing_transport_raises(end: str) -> None:
    async def main() -> None:
        network = MemoryNetwork()
        network.listen(lambda: Plain(Log()), "10.0.0.1", 9092).start()
        transport = await network.connect(lambda: Plain(Log()), "10.0.0.1", 9092)
        getattr(transport, end)()
        getattr(transport, end)()
        with pytest.raises(RuntimeError, match="closing"):
            transport.write(b"x")
        network.stop()

    run(main)


def test_a_protocol_without_room_is_an_error() -> None:
    class Roomless(Buffered):
        def get_buffer(self, sizehint: int) -> bytearray:
            return bytearray()

    async def main() -> None:
        network = MemoryNetwork()
        server = Log()
        network.listen(lambda: Roomless(server), "10.0.0.1", 9092).start()
        transport = await network.connect(lambda: Plain(Log()), "10.0.0.1", 9092)
        transport.write(b"x")
        await server.until_told("lost")
        assert "empty buffer" in str(server.error)
        virtual_loop().errors.clear()
        network.stop()

    run(main)
