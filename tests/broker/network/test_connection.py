"""Connections on both event loops: order, back-pressure both ways, bounded memory, and what ends a connection."""

import asyncio
import gc
import io
import logging
import resource
import struct
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, cast
from weakref import ref

import pytest

from odradek.broker.network import connection, connection_table
from odradek.broker.network.connection import READ_AHEAD_REQUESTS, Connection
from odradek.broker.network.muting import READ_AHEAD_BYTES
from odradek.broker.network.reply_queue import REPLIES_TOGETHER_BYTES
from odradek.broker.server import Broker
from odradek.protocol.frames import FrameReader
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.primitives import Buffer
from odradek.runtime.tasks import breathe
from tests.broker.wire import TIMEOUT_S, RawClient, batch, connected, create_topic, produce, produced, running_broker

pytestmark = pytest.mark.both_loops


def fetch(topic: str, max_wait_ms: int = 0, max_bytes: int = 1 << 26, offset: int = 0) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        topics=[FetchTopic(topic=topic, partitions=[partition])],
        forgotten_topics_data=[],
    )


async def test_a_connection_that_is_gone_is_freed_without_a_collection() -> None:
    """It is in no cycle: neither one that waited for a request, nor one whose request waited."""
    async with running_broker() as broker:
        async with connected(broker) as idle, connected(broker) as waiting:
            await create_topic(idle, "orders")
            await waiting.ask(ApiVersionsRequest(), 3)
            waiting.send(fetch("orders", max_wait_ms=60_000), 4)
            while not any(each.is_busy for each in connections(broker)):
                await breathe()
            known = [ref(each) for each in connections(broker)]
            assert len(known) == 2
            gc.disable()
        try:
            async with asyncio.timeout(TIMEOUT_S):
                while any(each() is not None for each in known):  # noqa: ASYNC110 - what is freed tells nobody
                    await asyncio.sleep(0.01)  # between two looks; transports close meanwhile
        finally:
            gc.enable()


async def test_replies_come_in_the_order_of_the_requests() -> None:
    async with running_broker() as broker, connected(broker) as client:
        sent: list[int] = []
        for _ in range(20):
            sent.append(client.send(MetadataRequest(topics=[]), 8))
            sent.append(client.send(ApiVersionsRequest(), 3))
            sent.append(client.send(produce("orders", batch(b"x"), acks=1), 9))
        received = [int.from_bytes((await client.receive_frame())[:4], "big") for _ in sent]
        assert received == sent


async def test_produces_of_one_connection_are_applied_in_their_order() -> None:
    async with running_broker() as broker, connected(broker) as client:
        await create_topic(client, "orders")
        for number in range(50):
            client.send(produce("orders", batch(b"%d" % number), acks=1 if number % 2 else -1), 9)
        request = produce("orders", None)
        answers = [(await client.receive(request, 9))[1] for _ in range(50)]
        assert [answer.responses[0].partition_responses[0].base_offset for answer in answers] == list(range(50))


async def test_a_long_poll_delays_what_follows_it_and_new_data_ends_it() -> None:
    async with running_broker() as broker, connected(broker) as reader, connected(broker) as writer:
        await create_topic(writer, "orders")
        waiting = fetch("orders", max_wait_ms=60_000)
        reader.send(waiting, 11)
        reader.send(MetadataRequest(topics=[]), 8)
        await produced(writer, "orders", batch(b"wake up"))
        _, answer = await reader.receive(waiting, 11)
        assert answer.responses[0].partitions[0].high_watermark == 1
        await reader.receive(MetadataRequest(topics=[]), 8)


async def test_replies_to_requests_that_arrive_together_are_written_together() -> None:
    async with running_broker() as broker, connected(broker) as client:
        await create_topic(client, "orders")
        [connection] = connections(broker)
        with written_by(connection) as writes:
            with together(client):
                sent = [client.send(produce("orders", batch(b"x"), acks=1), 9) for _ in range(10)]
            received = [int.from_bytes((await client.receive_frame())[:4], "big") for _ in sent]
        assert received == sent
        assert len(writes) == 1
        with written_by(connection) as writes:
            await produced(client, "orders", batch(b"y" * 2 * REPLIES_TOGETHER_BYTES))
            with together(client):
                for _ in range(3):
                    client.send(fetch("orders"), 11)
            for _ in range(3):
                await client.receive_frame()
        assert len(writes) == 4, "what is large does not wait for more"


async def test_a_reply_does_not_wait_for_the_long_poll_behind_it() -> None:
    async with running_broker() as broker, connected(broker) as client, connected(broker) as other:
        await create_topic(other, "orders")
        with together(client):
            client.send(MetadataRequest(topics=[]), 8)
            client.send(fetch("orders", max_wait_ms=60_000), 11)
        await client.receive(MetadataRequest(topics=[]), 8)


async def test_a_request_that_arrives_while_another_one_is_answered_is_told_of() -> None:
    async with running_broker() as broker, connected(broker) as client, connected(broker) as other:
        await create_topic(other, "orders")
        client.send(fetch("orders", max_wait_ms=60_000), 11)
        async with asyncio.timeout(TIMEOUT_S):
            while not (busy := [each for each in connections(broker) if each.is_busy and not each.requests]):
                await breathe()
        (connection,) = busy
        assert not connection.caller.has_more()
        arrivals: list[bool] = []
        arrived = asyncio.Event()

        def tell() -> None:
            arrivals.append(connection.caller.has_more())
            arrived.set()

        with connection.caller.telling_of_arrivals(tell):
            client.send(MetadataRequest(topics=[]), 8)
            await asyncio.wait_for(arrived.wait(), TIMEOUT_S)
        client.send(MetadataRequest(topics=[]), 8)
        await produced(other, "orders", batch(b"wake up"))
        await client.receive_frame()
        await client.receive_frame()
        await client.receive_frame()
        assert arrivals == [True], "not of those that come when nobody asks"
        assert not connection.caller.has_more()


async def test_a_reply_is_sent_before_the_next_request_closes_the_connection() -> None:
    async with running_broker() as broker, connected(broker) as client:
        with together(client):
            client.send(MetadataRequest(topics=[]), 8)
            client.writer.write(struct.pack(">ihhi", 8, 999, 0, 1))
        await client.receive(MetadataRequest(topics=[]), 8)
        assert await client.is_closed()


async def test_a_connection_uses_its_receive_buffer_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests of 10 KB, one by one: a buffer that counted as held would be replaced after every few of them."""
    replaced: list[int] = []
    replace: Callable[[FrameReader, int], None] = vars(FrameReader)["_replace"]

    def counted(reader: FrameReader, size_bytes: int) -> None:
        replaced.append(size_bytes)
        replace(reader, size_bytes)

    monkeypatch.setattr("odradek.protocol.frames.FrameReader._replace", counted)
    async with running_broker() as broker, connected(broker) as client:
        await create_topic(client, "orders")
        for _ in range(100):
            await produced(client, "orders", batch(b"x" * 10_000))
    assert len(replaced) <= 5


async def test_a_peer_that_reads_slowly_gets_every_byte_right() -> None:
    """32 MiB of known bytes to a client that reads 64 KiB at a time with the broker far ahead: uvloop keeps views of
    what it was given, so a buffer changed too early would arrive changed."""
    values = [bytes([number]) * 1_000_000 for number in range(32)]
    async with running_broker() as broker, connected(broker) as client, connected(broker) as slow:
        await create_topic(client, "orders")
        for value in values:
            assert (await produced(client, "orders", batch(value))).error_code == 0
        request = fetch("orders")
        for _ in range(3):
            slow.send(request, 11)
        for _ in range(200):  # meanwhile the broker works on for others, with the same buffers
            await produced(client, "orders", batch(b"between"))
        for _ in range(3):
            _, answer = await slow.receive(request, 11)
            records = bytes(answer.responses[0].partitions[0].records or b"")
            position = 0
            for value in values:
                position = records.index(value, position) + len(value)


async def test_while_replies_are_not_read_no_further_request_is_started() -> None:
    async with running_broker() as broker, connected(broker) as client, connected(broker) as slow:
        await create_topic(client, "orders")
        await produced(client, "orders", batch(b"x" * 1_000_000))
        for _ in range(200):
            slow.send(fetch("orders"), 11)
        await slow.writer.drain()
        await until(lambda: requests_done(broker, "FetchConsumer") > 0)
        before = -1
        while requests_done(broker, "FetchConsumer") != before:  # until the socket buffers are full
            before = requests_done(broker, "FetchConsumer")
            for _ in range(20):
                await produced(client, "orders", batch(b"time passes"))
        assert before < 100, "200 replies of 1 MB were not read, and so not all made"
        for _ in range(200):
            await slow.receive_frame()


async def test_reading_pauses_when_enough_requests_are_read_ahead() -> None:
    async with running_broker() as broker, connected(broker) as client, connected(broker) as control:
        await create_topic(control, "orders")
        client.send(fetch("orders", max_wait_ms=60_000), 11)
        request = produce("orders", batch(b"x" * 10_000), acks=1)
        for _ in range(3_000):
            client.send(request, 9)
        await until(lambda: any(each.is_reading_paused for each in connections(broker)))
        [connection] = [each for each in connections(broker) if each.is_busy]
        held = broker.memory.held_bytes
        assert held <= READ_AHEAD_BYTES + 1_000_000, "a buffer's worth more than the limit at most"
        assert len(connection.requests) >= READ_AHEAD_REQUESTS
        await produced(control, "orders", batch(b"wake up"))  # ends the long poll: everything is worked off
        await client.receive_frame()
        for _ in range(3_000):
            await client.receive_frame()
        await until(lambda: broker.memory.held_bytes == 0)


async def test_over_the_common_limit_all_requests_are_still_answered() -> None:
    """16 connections send 1 MB requests against a budget of 2 MB: they take turns, and none is forgotten."""
    async with running_broker({"queued.max.request.bytes": str(2_000_000), "message.max.bytes": "2000000"}) as broker:
        async with connected(broker) as control:
            await create_topic(control, "orders")

        async def load() -> None:
            async with connected(broker) as client:
                for _ in range(5):
                    assert (await produced(client, "orders", batch(b"x" * 1_000_000))).error_code == 0

        await asyncio.wait_for(asyncio.gather(*(load() for _ in range(16))), 60)
        await until(lambda: broker.memory.held_bytes == 0)


async def test_a_thousand_connections_that_announce_much_and_send_little_cost_little() -> None:
    """1,000 connections announce 99 MiB and send 4 KiB each: resident memory grows by less than 64 MiB."""
    async with running_broker() as broker:
        endpoint = next(iter(broker.bound.values()))
        before = resident_bytes()
        streams = [await asyncio.open_connection(endpoint.host, endpoint.port) for _ in range(1_000)]
        for _, writer in streams:
            writer.write(struct.pack(">i", 99 << 20) + b"\0" * 4092)
        await until(lambda: broker.memory.held_bytes == 1_000 * 4096)
        assert resident_bytes() - before < 64 << 20
        for _, writer in streams:
            writer.transport.abort()
        await until(lambda: not connections(broker))
        assert broker.memory.held_bytes == 0


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (struct.pack(">i", -1), "a frame of -1 bytes"),
        (struct.pack(">i", (100 << 20) + 1), "104857600 are allowed"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP"),
        (bytes.fromhex("16030100c8010000c40303") + b"\0" * 200, "TLS"),
        (struct.pack(">ihhi", 8, 999, 0, 1), "API key 999"),
        (struct.pack(">ihhi", 8, 3, 99, 1), "version 99 is not served"),
        (struct.pack(">ihhi", 8, 0, 2, 1), "Produce version 2 is not served"),
        (struct.pack(">ihhih", 10, 3, 1, 1, -1), "Metadata version 1"),
        (struct.pack(">ihhihi", 14, 3, 1, 1, -1, 2_000_000_000), "Metadata version 1"),
        (struct.pack(">ihhih", 11, 22, 0, 1, -1) + b"\0", "InitProducerId version 0"),
        (struct.pack(">ihhih", 24, 3, 12, 1, -1) + b"\0" + b"\x02" + b"\xff" * 12, "Metadata version 12"),
        (bytes(range(256)) * 4, "a frame of 66051 bytes"),
    ],
)
async def test_bad_input_closes_its_connection_with_one_line_and_touches_no_other(
    sent: bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_broker({"socket.request.max.bytes": "104857600"}) as broker, connected(broker) as other:
        with caplog.at_level(logging.WARNING):
            async with connected(broker) as client:
                client.writer.write(sent)
                if reason == "a frame of 66051 bytes":
                    client.writer.write(b"\xff" * 70_000)  # completes it: its API key is nonsense
                assert await client.is_closed()
                port = client.writer.get_extra_info("sockname")[1]
        lines = [record.getMessage() for record in caplog.records if f":{port} " in record.getMessage()]
        assert len(lines) == 1
        assert reason in lines[0] or reason == "a frame of 66051 bytes"
        assert (await other.ask(ApiVersionsRequest(), 0)).error_code == 0


async def test_a_connection_that_comes_while_the_broker_stops_is_closed() -> None:
    """It was accepted before the listener was closed, and stands after all others were told to end."""
    async with running_broker() as broker:
        broker.context.stop()
        await broker.connections.drain(TIMEOUT_S)
        async with connected(broker) as late:
            assert await late.is_closed()
        assert not connections(broker)


async def test_an_idle_connection_is_closed_and_a_waiting_one_is_not() -> None:
    async with running_broker({"connections.max.idle.ms": "100"}) as broker, connected(broker) as control:
        await create_topic(control, "orders")
        async with connected(broker) as idle, connected(broker) as waiting:
            request = fetch("orders", max_wait_ms=2_500)
            waiting.send(request, 11)
            assert await idle.is_closed()
            _, answer = await waiting.receive(request, 11)
            assert answer.error_code == 0


async def test_a_quiet_connection_gives_its_buffer_back_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    readers: list[FrameReader] = []

    class Noted(FrameReader):
        def __init__(self, size_bytes_max: int, landing: memoryview | None) -> None:
            super().__init__(size_bytes_max, landing)
            readers.append(self)

    monkeypatch.setattr(connection, "FrameReader", Noted)
    async with running_broker() as broker, connected(broker) as client:
        for _ in range(2):
            assert (await client.ask(ApiVersionsRequest(), 0)).error_code == 0
            broker.connections.close_idle()
            assert 0 < readers[0].capacity_bytes <= 2048, "a client that goes on finds it, and it is small"
            with monkeypatch.context() as patch:
                patch.setattr(connection_table, "QUIET_MS", -1.0)
                broker.connections.close_idle()
            assert readers[0].capacity_bytes == 0
        assert (await client.ask(ApiVersionsRequest(), 0)).error_code == 0
    assert readers[0].capacity_bytes == 0, "it is lost"


async def test_a_client_that_vanishes_in_a_long_poll_leaves_nothing_behind() -> None:
    async with running_broker() as broker, connected(broker) as control:
        await create_topic(control, "orders")
        async with connected(broker) as client:
            client.send(fetch("orders", max_wait_ms=60_000), 11)
            partition = broker.context.partitions.find("orders", 0)
            await until(lambda: bool(partition.reader.watchers))
        await until(lambda: not partition.reader.watchers)
        await until(lambda: len(connections(broker)) == 1)
        await until(lambda: broker.memory.held_bytes == 0)


# -- helpers --------------------------------------------------------------------------------------------------------


@contextmanager
def together(client: RawClient) -> Generator[None]:
    """What is sent within the block goes to the socket in one piece."""
    writer, sent = client.writer, io.BytesIO()
    client.writer = cast(asyncio.StreamWriter, sent)
    try:
        yield
    finally:
        client.writer = writer
    writer.write(sent.getvalue())


@contextmanager
def written_by(connection: Connection) -> Generator[list[None]]:
    """One entry for each time that the connection gives its transport something to write."""
    transport, writes = connection.transport, list[None]()
    assert transport is not None
    write = transport.writelines

    class Watched:
        def __getattr__(self, name: str) -> Any:
            return getattr(transport, name)

        def writelines(self, parts: list[Buffer]) -> None:
            writes.append(None)
            write(parts)

    connection.transport = cast(asyncio.Transport, Watched())
    try:
        yield writes
    finally:
        connection.transport = transport


def connections(broker: Broker) -> list[Connection]:
    return [each for each in broker.connections.connections if isinstance(each, Connection)]


def requests_done(broker: Broker, api: str) -> int:
    metrics = broker.context.metrics.apis.get(api)
    return 0 if metrics is None else metrics.requests


async def until(condition: Callable[[], bool]) -> None:
    """Lets the loop run until the condition holds; a test whose condition never comes true fails by time."""
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - what is waited for is the broker's inner state, which tells nobody
            await asyncio.sleep(0.005)


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
