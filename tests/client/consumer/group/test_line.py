"""A connection of one's own: opened once for all who wait, opened again where it was lost, gone when it is closed."""

import asyncio
from typing import Any, cast

import pytest

from odradek.client.cluster.topic_metadata import Node
from odradek.client.consumer.group.line import Line
from odradek.client.errors.client_errors import ClientClosed, ClientError, ConnectionFailed, UnsupportedVersion
from odradek.client.network.connection import Connection
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.runtime.tasks import Tasks

pytestmark = pytest.mark.virtual_time

HERE, THERE = Node(1, "here", 9092), Node(1, "there", 9092)
REQUEST = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


class FakeConnection:
    def __init__(self, node: Node) -> None:
        self.node = node
        self.broker = str(node)
        self.is_open = True
        self.asked: list[tuple[object, int]] = []

    def version_of(self, kind: object, at_most: int | None = None) -> int:
        return 4 if at_most is None else min(4, at_most)

    async def ask(self, request: object, *, version: int, timeout_ms: float | None) -> Any:
        self.asked.append((request, version))
        await asyncio.sleep(0.01)
        return self.node

    def close(self) -> None:
        self.is_open = False

    async def closed(self) -> None:
        await asyncio.sleep(0)


class World:
    def __init__(self) -> None:
        self.opened: list[FakeConnection] = []
        self.error: ClientError | None = None
        self.line = Line(self.open, Tasks(asyncio.get_running_loop()), "line")

    async def open(self, node: Node) -> Connection:
        await asyncio.sleep(0.1)
        if self.error is not None:
            raise self.error
        self.opened.append(FakeConnection(node))
        return cast(Connection, self.opened[-1])

    async def ask(self, node: Node = HERE, **limits: int) -> Any:
        return await self.line.ask(node, REQUEST, **limits)


async def test_it_is_opened_once_and_again_when_it_was_lost() -> None:
    world = World()
    assert list(await asyncio.gather(world.ask(), world.ask())) == [HERE, HERE]
    assert len(world.opened) == 1
    world.opened[0].is_open = False
    await world.ask()
    assert len(world.opened) == 2
    world.line.close()
    await asyncio.sleep(1)


async def test_another_broker_or_another_address_is_another_connection() -> None:
    world = World()
    await world.ask()
    assert await world.ask(THERE) == THERE
    assert [each.is_open for each in world.opened] == [False, True]
    world.line.close()
    await asyncio.sleep(1)


async def test_a_failure_is_told_to_all_who_wait_alone_and_the_next_one_tries_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    world.error = ConnectionFailed("broker 1")
    results = await asyncio.gather(world.ask(), world.ask(), return_exceptions=True)
    assert [type(each) for each in results] == [ConnectionFailed, ConnectionFailed]
    assert results[0] is not results[1]
    assert caplog.records == []
    world.error = None
    assert await world.ask() == HERE
    world.line.close()
    await asyncio.sleep(1)


async def test_who_is_cancelled_takes_nobody_along() -> None:
    world = World()
    loop = asyncio.get_running_loop()
    first, second = loop.create_task(world.ask()), loop.create_task(world.ask())
    await asyncio.sleep(0.05)
    first.cancel()
    assert await second == HERE
    world.line.close()
    await asyncio.sleep(1)


async def test_closing_ends_what_is_being_opened() -> None:
    world = World()
    waiting = asyncio.get_running_loop().create_task(world.ask())
    await asyncio.sleep(0.05)
    world.line.close()
    with pytest.raises(ConnectionFailed):
        await waiting
    with pytest.raises(ClientClosed):
        await world.ask()
    assert world.opened == []


async def test_the_version_is_within_the_limits() -> None:
    world = World()
    await world.ask(at_most=3)
    assert world.opened[0].asked == [(REQUEST, 3)]
    with pytest.raises(UnsupportedVersion):
        await world.ask(at_least=4, at_most=3)
    world.line.close()
    await asyncio.sleep(1)
