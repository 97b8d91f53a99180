"""How many connections are taken in, which wait, and which are turned away: with real sockets, on both event loops."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from odradek.broker.cluster.keys import broker_config_key, encode_configs
from odradek.broker.cluster.quotas import encode_quotas, entity_of, quota_key
from odradek.broker.cluster.store import Txn
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.listeners import Listener
from odradek.broker.config.settings import Settings
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.network import connection_table
from odradek.broker.server import Broker
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.runtime.environment import Environment
from tests.broker.wire import TIMEOUT_S, RawClient, connected, running_broker

pytestmark = pytest.mark.both_loops

HELLO = ApiVersionsRequest()
SOON_S = 0.3


async def is_answered(client: RawClient, within_s: float = TIMEOUT_S) -> bool:
    """Whether the broker answers, so that it has taken the connection in."""
    if not client.writer.is_closing():
        client.send(HELLO, 0)
    try:
        async with asyncio.timeout(within_s):
            await client.receive(HELLO, 0)
    except TimeoutError:
        return False
    return True


@asynccontextmanager
async def two_listeners(options: Mapping[str, str]) -> AsyncGenerator[Broker]:
    """PLAINTEXT is the one of brokers, CLIENTS the other."""
    listeners = [Listener("PLAINTEXT", "127.0.0.1", 0), Listener("CLIENTS", "127.0.0.1", 0)]
    settings = Settings(listeners, {each.name: each for each in listeners}, None, 0, BrokerConfig(options))
    broker = Broker(settings, Environment(), MemoryDisk())
    await broker.start()
    try:
        yield broker
    finally:
        await broker.stop()


@asynccontextmanager
async def on(broker: Broker, listener: str) -> AsyncGenerator[RawClient]:
    endpoint = broker.bound[listener]
    reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
    try:
        yield RawClient(reader, writer)
    finally:
        writer.transport.abort()


async def set_ip_rate(broker: Broker, rate: float) -> None:
    store, key = broker.context.metadata.store, quota_key(entity_of({"ip": None}))
    revision = await store.commit(Txn(put={key: encode_quotas({"connection_creation_rate": rate})}))
    await broker.context.metadata.applied(revision)


async def test_those_beyond_max_connections_wait_in_their_order() -> None:
    async with running_broker({"max.connections": "2"}) as broker, AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connected(broker)) for _ in range(4)]
        assert await is_answered(clients[0])
        assert await is_answered(clients[1])
        assert not await is_answered(clients[2], SOON_S)
        assert not await is_answered(clients[3], SOON_S)
        assert len(broker.connections.connections) == 2
        clients[0].close()
        await clients[2].receive(HELLO, 0)
        assert not await is_answered(clients[3], SOON_S)
        clients[1].close()
        await clients[3].receive(HELLO, 0)


async def test_who_leaves_while_waiting_takes_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody reads from him, so that he is looked for."""
    monkeypatch.setattr(connection_table, "HELD_MAX", 1)
    async with running_broker({"max.connections": "1"}) as broker, connected(broker) as first:
        assert await is_answered(first)
        async with connected(broker) as second:
            assert not await is_answered(second, 0.05)
        broker.connections.close_idle()  # which looks who has left
        await asyncio.sleep(0.05)
        async with connected(broker) as third:
            assert not await is_answered(third, 0.05)
            first.close()
            await third.receive(HELLO, 0)


async def test_a_limit_that_is_raised_lets_those_in_who_wait() -> None:
    async with running_broker({"max.connections": "1"}) as broker, connected(broker) as first:
        assert await is_answered(first)
        async with connected(broker) as second:
            assert not await is_answered(second, 0.05)
            store = broker.context.metadata.store
            put = {broker_config_key(None): encode_configs({"max.connections": "2"})}
            await broker.context.metadata.applied(await store.commit(Txn(put=put)))
            await second.receive(HELLO, 0)


async def test_too_many_that_wait_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_table, "HELD_MAX", 1)
    async with running_broker({"max.connections": "1"}) as broker, connected(broker) as first:
        assert await is_answered(first)
        async with connected(broker) as second, connected(broker) as third:
            assert await third.is_closed()
            assert not await is_answered(second, 0.05)
            assert broker.context.metrics.connections_refused == 1


async def test_those_that_wait_do_not_hold_up_a_stop() -> None:
    one = {"max.connections": "1"}
    async with running_broker(one) as broker, connected(broker) as first, connected(broker) as late:
        assert await is_answered(first)
        assert not await is_answered(late, 0.05)
        broker.context.stop()
        await broker.connections.drain(TIMEOUT_S)
        assert await late.is_closed()


async def test_brokers_come_in_beyond_max_connections_and_a_client_goes() -> None:
    async with two_listeners({"max.connections": "2"}) as broker, AsyncExitStack() as stack:
        idle = await stack.enter_async_context(on(broker, "CLIENTS"))
        assert await is_answered(idle)
        await asyncio.sleep(0.01)
        client = await stack.enter_async_context(on(broker, "CLIENTS"))
        assert await is_answered(client)
        late = await stack.enter_async_context(on(broker, "CLIENTS"))
        assert not await is_answered(late, 0.05)
        peer = await stack.enter_async_context(on(broker, "PLAINTEXT"))
        assert await is_answered(peer)
        assert await idle.is_closed()
        assert await is_answered(client)


async def test_connections_that_come_too_fast_wait() -> None:
    options = {"max.connection.creation.rate": "20", "quota.window.num": "2"}
    async with running_broker(options) as broker, AsyncExitStack() as stack:
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        for _ in range(30):
            assert await is_answered(await stack.enter_async_context(connected(broker)))
        took_s = loop.time() - begun_s
        assert (took_s + 1) * 20 + 1 >= 30
        assert broker.connections.quotas.listeners["PLAINTEXT"].throttled_ms > 0


async def test_an_address_that_comes_too_fast_is_turned_away_later(caplog: pytest.LogCaptureFixture) -> None:
    async with running_broker({"quota.window.num": "2"}) as broker, AsyncExitStack() as stack:
        await set_ip_rate(broker, 2)
        for _ in range(2):
            assert await is_answered(await stack.enter_async_context(connected(broker)))
        begun_s = asyncio.get_running_loop().time()
        with caplog.at_level(logging.WARNING):
            turned_away = await stack.enter_async_context(connected(broker))
            turned_away.send(HELLO, 0)
            assert await turned_away.is_closed()
        assert asyncio.get_running_loop().time() - begun_s >= 0.4, "half a second: 3 in a second, and 2 may be"
        assert "connection_creation_rate" in caplog.text
        assert len(broker.connections.connections) == 2


async def test_more_from_one_address_are_closed() -> None:
    async with running_broker({"max.connections.per.ip": "1"}) as broker, connected(broker) as first:
        assert await is_answered(first)
        async with connected(broker) as second:
            assert await second.is_closed()
    async with running_broker(
        {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "127.0.0.1:1"}
    ) as broker:
        for _ in range(3):
            async with connected(broker) as client:
                assert await is_answered(client)
            while broker.connections.connections:  # noqa: ASYNC110 - what is gone tells nobody
                await asyncio.sleep(0.01)
