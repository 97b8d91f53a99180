"""How many strangers a broker takes, for how long, and which of them has to go; by connections that note it."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import pytest

from odradek.broker.handling.context import Caller
from odradek.broker.network.connection_table import ConnectionTable
from tests.broker.wire import running_broker


class Held:
    """A connection."""

    def __init__(self, host: str = "192.0.2.1", *, is_authenticated: bool = False) -> None:
        self.caller = Caller("PLAINTEXT", host=host)
        self.is_authenticated = is_authenticated
        self.last_active_ms = 0.0
        self.is_busy = self.is_followers = False
        self.refused: str | None = None
        self.is_admitted = False

    def admitted(self) -> None:
        self.is_authenticated = self.is_admitted = True

    def refuse(self, reason: str) -> None:
        self.refused = reason

    def hold(self) -> None: ...

    def begin(self) -> None: ...

    @property
    def has_left(self) -> bool:
        return False

    def give_back(self) -> None: ...

    def finish(self) -> asyncio.Task[None] | None:
        return None

    def close(self, reason: str) -> None: ...


@asynccontextmanager
async def table(options: Mapping[str, str]) -> AsyncGenerator[ConnectionTable]:
    async with running_broker(options) as broker:
        yield ConnectionTable(broker.context, 1000, 1)


def admit(connections: ConnectionTable, connection: Held) -> str | None:
    """Why it is refused."""
    connections.arrive(connection)
    return connection.refused


async def test_of_one_address_so_many_are_taken() -> None:
    async with table({"max.unauthenticated.connections.per.ip": "2"}) as connections:
        first, second = Held(), Held()
        assert admit(connections, first) is None
        assert admit(connections, second) is None
        assert "2 that are not authenticated (max.unauthenticated.connections.per.ip)" in str(
            admit(connections, Held())
        )
        assert admit(connections, Held("192.0.2.2")) is None
        assert admit(connections, Held(is_authenticated=True)) is None
        connections.authenticated(first)
        assert first.is_admitted
        assert admit(connections, Held()) is None
        connections.forget(second)
        assert admit(connections, Held()) is None
        assert first.refused is second.refused is None


async def test_in_all_the_oldest_makes_room() -> None:
    """Else a thousand who say nothing would keep everybody else out for half a minute, again and again."""
    async with table({"max.unauthenticated.connections": "3"}) as connections:
        held = [Held(f"192.0.2.{number}") for number in range(5)]
        assert [admit(connections, each) for each in held[:4]] == [None] * 4
        assert "max.unauthenticated.connections" in str(held[0].refused)
        connections.authenticated(held[1])
        assert admit(connections, held[4]) is None
        assert [each.refused is None for each in held] == [False, True, True, True, True]


async def test_who_has_no_room_by_its_address_takes_nobodys_place() -> None:
    options = {"max.unauthenticated.connections": "3", "max.unauthenticated.connections.per.ip": "2"}
    async with table(options) as connections:
        modest, greedy = Held("192.0.2.9"), [Held() for _ in range(100)]
        assert admit(connections, modest) is None
        assert [admit(connections, each) is None for each in greedy] == [True, True] + [False] * 98
        assert modest.refused is None


@pytest.mark.parametrize("timeout_ms", [100, 200])
async def test_nobody_is_a_stranger_for_longer_than_that(timeout_ms: int) -> None:
    async with table({"connection.authentication.timeout.ms": str(timeout_ms)}) as connections:
        stranger, known = Held(), Held()
        admit(connections, stranger)
        admit(connections, known)
        connections.authenticated(known)
        connections.close_idle()
        assert stranger.refused is None
        await asyncio.sleep(timeout_ms / 1000 + 0.01)
        stranger.last_active_ms = 1e12  # it has sent a byte just now
        connections.close_idle()
        assert stranger.refused == f"not authenticated within {timeout_ms} ms (connection.authentication.timeout.ms)"
        assert known.refused is None
        assert len(connections.strangers) == 0
