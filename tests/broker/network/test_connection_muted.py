"""Connections of clients that quotas silence, on both event loops: what waits, what does not, and how they end."""

import asyncio
from typing import cast

import pytest

from odradek.broker.network import muting
from odradek.broker.network.connection import Connection
from odradek.broker.server import Broker
from odradek.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.metadata import MetadataRequest
from tests.broker.wire import TIMEOUT_S, RawClient, batch, connected, create_topic, produce, produced, running_broker

pytestmark = pytest.mark.both_loops

SHORT = {"quota.window.num": "2"}
"""What counts is the last second or two."""
BYTES = 13_000
RATE = 10_000.0
SILENCE_S = 0.3
"""For how long a Produce of BYTES silences a client who has RATE."""
HELLO = ApiVersionsRequest()


async def set_rate(client: RawClient, rate: float = RATE, kind: str = "producer_byte_rate") -> None:
    """Of any client id."""
    entry = EntryData(
        entity=[EntityData(entity_type="client-id", entity_name=None)],
        ops=[OpData(key=kind, value=rate, remove=False)],
    )
    answer = await client.ask(AlterClientQuotasRequest(entries=[entry], validate_only=False), 1)
    assert answer.entries[0].error_code == 0


def connections(broker: Broker) -> list[Connection]:
    return [cast(Connection, each) for each in broker.connections.connections]


def mute(broker: Broker, duration_s: float) -> Connection:
    """Silences the only client."""
    [connection] = connections(broker)
    connection.caller.mute(broker.environment.monotonic_ms() + duration_s * 1000)
    return connection


def now_s() -> float:
    return asyncio.get_running_loop().time()


async def test_an_answer_comes_at_once_and_the_next_request_waits() -> None:
    async with running_broker(SHORT) as broker, connected(broker) as client:
        await create_topic(client, "orders")
        await set_rate(client)
        begun_s = now_s()
        answer = await client.ask(produce("orders", batch(b"x" * BYTES)), 9)
        assert now_s() - begun_s < SILENCE_S
        assert SILENCE_S * 1000 <= answer.throttle_time_ms < SILENCE_S * 1000 + 200
        await client.ask(HELLO, 0)
        assert now_s() - begun_s >= SILENCE_S
        begun_s = now_s()
        await client.ask(HELLO, 0)
        assert now_s() - begun_s < SILENCE_S, "its time is up"


@pytest.mark.parametrize("acks", [-1, 0])
async def test_pipelining_gains_nothing(acks: int) -> None:
    async with running_broker(SHORT) as broker, connected(broker) as client:
        await create_topic(client, "orders")
        await set_rate(client)
        begun_s = now_s()
        for _ in range(2 if acks == 0 else 3):
            client.send(produce("orders", batch(b"x" * BYTES), acks), 9)
        if acks == 0:
            client.send(HELLO, 0)
        for _ in range(1 if acks == 0 else 3):
            await client.receive_frame()
        took_s = now_s() - begun_s
        assert took_s >= SILENCE_S * 4, "two Produces: the second one doubles the rate"


async def test_others_do_not_wait() -> None:
    async with running_broker() as broker, connected(broker) as client:
        connection = mute(broker, 30)
        client.send(HELLO, 0)
        async with connected(broker) as other:
            await other.ask(HELLO, 0)
        assert connection.is_busy


async def test_a_client_that_is_silenced_for_longer_is_silenced_for_the_longest() -> None:
    async with running_broker() as broker, connected(broker) as client:
        await client.ask(HELLO, 0)
        begun_s = now_s()
        mute(broker, 0.3)
        mute(broker, 0.1)
        await client.ask(HELLO, 0)
        assert now_s() - begun_s >= 0.29
        mute(broker, -1)
        await client.ask(HELLO, 0)


async def test_who_leaves_while_silenced_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody reads from him, and he has sent more than was read."""
    monkeypatch.setattr(muting, "LOOK_MS", 50.0)
    async with running_broker() as broker:
        async with connected(broker) as client:
            await create_topic(client, "orders")
            client.send(HELLO, 0)
            await client.receive_frame()
            mute(broker, 3_600)
            for _ in range(5):
                client.send(produce("orders", batch(b"x" * BYTES), acks=1), 9)
            await client.writer.drain()
        async with asyncio.timeout(TIMEOUT_S):
            while connections(broker):  # noqa: ASYNC110 - what is gone tells nobody
                await asyncio.sleep(0.01)
        await until_nothing_is_held(broker)
        assert broker.context.partitions.leader("orders", 0).log.log_end_offset == 0


async def test_who_is_silenced_does_not_hold_up_a_stop() -> None:
    async with running_broker() as broker, connected(broker) as client:
        await client.ask(HELLO, 0)
        mute(broker, 3_600)
        client.send(MetadataRequest(topics=[]), 8)
        await asyncio.sleep(0.05)
        begun_s = now_s()
        broker.context.stop()
        await broker.connections.drain(TIMEOUT_S)
        assert now_s() - begun_s < 2


async def test_who_is_silenced_is_not_read_from() -> None:
    async with running_broker() as broker, connected(broker) as client:
        await create_topic(client, "orders")
        connection = mute(broker, 1.0)
        sent = 20 * [produce("orders", batch(b"x" * 500_000), acks=1)]
        for request in sent:
            client.send(request, 9)
        await asyncio.sleep(0.3)
        memory = broker.memory
        assert connection.is_reading_paused
        assert memory.held_bytes + memory.aside_bytes == 0
        for _ in sent:
            await client.receive_frame()
        assert broker.context.partitions.leader("orders", 0).log.log_end_offset == len(sent)
        await until_nothing_is_held(broker)


async def until_nothing_is_held(broker: Broker) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while broker.memory.held_bytes or broker.memory.aside_bytes:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)


def connection_of(broker: Broker, client: RawClient) -> Connection:
    host, port = client.writer.get_extra_info("sockname")
    [connection] = [each for each in connections(broker) if each.caller.peer == f"{host}:{port}"]
    return connection


async def wait_with_requests(broker: Broker, client: RawClient, *sizes: int) -> Connection:
    """Has a client wait for records, with requests of these sizes behind that, and silences it for an hour."""
    await client.ask(HELLO, 0)
    connection = connection_of(broker, client)
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000)
    client.send(
        FetchRequest(
            max_wait_ms=60_000,
            min_bytes=1,
            topics=[FetchTopic(topic="waited", partitions=[partition])],
            forgotten_topics_data=[],
        ),
        11,
    )
    for size in sizes:
        client.send(produce("orders", batch(b"x" * size), acks=1), 9)
    async with asyncio.timeout(TIMEOUT_S):
        while len(connection.requests) < len(sizes):  # noqa: ASYNC110 - what has been read tells nobody
            await asyncio.sleep(0.01)
    connection.caller.mute(broker.environment.monotonic_ms() + 3_600_000)
    return connection


async def test_what_silenced_clients_have_sent_stops_nobody_else() -> None:
    """It is not given back for long. Counted with the rest, it would keep the others from being read."""
    async with running_broker({"queued.max.request.bytes": "400000"}) as broker, connected(broker) as other:
        await create_topic(other, "orders")
        await create_topic(other, "waited")
        async with connected(broker) as first, connected(broker) as second:
            one = await wait_with_requests(broker, first, 45_000)
            two = await wait_with_requests(broker, second, 45_000)
            assert broker.memory.aside_bytes > 90_000
            assert broker.memory.held_bytes < 1_000, "nothing of it counts for the others"
            assert (await produced(other, "orders", batch(b"y" * 380_000))).error_code == 0
            assert one.is_busy and two.is_busy
        async with asyncio.timeout(TIMEOUT_S):
            while len(connections(broker)) > 1:  # noqa: ASYNC110 - what is gone tells nobody
                await asyncio.sleep(0.01)
        await until_nothing_is_held(broker)


async def test_silenced_clients_that_have_sent_too_much_are_closed() -> None:
    async with running_broker({"queued.max.request.bytes": "100000"}) as broker, connected(broker) as client:
        await create_topic(client, "orders")
        await create_topic(client, "waited")
        await wait_with_requests(broker, client, 20_000, 20_000)
        assert await client.is_closed()
        await until_nothing_is_held(broker)
        async with connected(broker) as other:
            await other.ask(HELLO, 0)


async def test_who_is_silenced_is_not_idle() -> None:
    async with running_broker({"connections.max.idle.ms": "100"}) as broker, connected(broker) as client:
        await client.ask(HELLO, 0)
        mute(broker, 1.5)
        await client.ask(HELLO, 0)


async def test_followers_are_never_silenced() -> None:
    async with running_broker() as broker, connected(broker) as client:
        await client.ask(HELLO, 0)
        [connection] = connections(broker)
        connection.caller.follows = True
        mute(broker, 3_600)
        await client.ask(HELLO, 0)
        connection.caller.follows = False
