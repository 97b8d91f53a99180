"""`Nodes` with an opener in the place of `open_connection`, whose connections have the few attributes that count there.

Time is virtual, and chance always in the middle, so that backoffs are what their settings say.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any, cast

from odradek.client.cluster.nodes import Nodes
from odradek.client.cluster.topic_metadata import Node
from odradek.client.configuration.client_config import ClientConfig
from odradek.client.errors.client_errors import ClientError, ConnectionFailed
from odradek.client.metrics.metrics import NO_METRICS
from odradek.client.network.connection import Connection
from odradek.runtime.tasks import Tasks
from tests.client.virtual_time import VirtualEnvironment


class MiddleOfTheRoad(VirtualEnvironment):
    """Chance is always one half."""

    def random(self) -> float:
        return 0.5


class FakeConnection:
    """Stands for a Connection. It ends a moment after `close`, as real ones do."""

    def __init__(self, node_id: int, host: str, now_ms: float) -> None:
        self.node_id = node_id
        self.host = host
        self.in_flight = 0
        self.is_open = True
        self.throttled_until_ms = 0.0
        self.last_used_ms = now_ms
        self.on_close: Callable[[Any, ClientError], None] = _ignore
        self.why: ClientError | None = None
        self.ended = asyncio.Event()

    def close(self, why: ClientError | None = None) -> None:
        if self.is_open:
            self.is_open = False
            self.why = why
            asyncio.get_running_loop().call_soon(self._end)

    def _end(self) -> None:
        assert self.why is not None
        self.on_close(self, self.why)
        asyncio.get_running_loop().call_later(0.01, self.ended.set)

    def lose(self, why: str = "reset by peer") -> None:
        self.close(ConnectionFailed(f"broker {self.node_id}", why))

    async def closed(self) -> None:
        await self.ended.wait()


def _ignore(connection: object, error: ClientError) -> None: ...


class Opener:
    """Opens a FakeConnection after a millisecond, or fails as told. `attempts`: when, to whom, within what time."""

    def __init__(self, environment: VirtualEnvironment) -> None:
        self._environment = environment
        self.attempts: list[tuple[float, int, str, int, float]] = []
        self.failures: dict[int, ClientError] = {}
        self.takes_ms = 1.0
        self.opened: list[FakeConnection] = []
        self.cancelled = 0
        self.gives_up_ms = 0.0

    async def __call__(self, node_id: int, host: str, port: int, setup_timeout_ms: float) -> Connection:
        self.attempts.append((self._environment.monotonic_ms(), node_id, host, port, setup_timeout_ms))
        try:
            await asyncio.sleep(self.takes_ms / 1000.0)
        except asyncio.CancelledError:
            self.cancelled += 1
            await asyncio.sleep(self.gives_up_ms / 1000.0)
            raise
        if node_id in self.failures:
            raise self.failures[node_id]
        self.opened.append(FakeConnection(node_id, host, self._environment.monotonic_ms()))
        return cast(Connection, self.opened[-1])


class Scene:
    def __init__(self, environment: VirtualEnvironment, config: ClientConfig) -> None:
        self.environment = environment
        self.opener = Opener(environment)
        self.tasks = Tasks(environment.loop)
        self.changes = 0
        self.losses = 0
        self.nodes = Nodes(
            config,
            environment,
            self.tasks,
            self.opener,
            metrics=NO_METRICS,
            on_change=self._changed,
            on_loss=self._lost,
        )

    def _changed(self) -> None:
        self.changes += 1

    def _lost(self) -> None:
        self.losses += 1

    def now_ms(self) -> float:
        return self.environment.monotonic_ms()

    def name(self, *nodes: int | Node) -> None:
        self.nodes.update(each if isinstance(each, Node) else Node(each, f"h{each}", 9092) for each in nodes)

    async def open(self, node_id: int) -> FakeConnection:
        """Asks for the connection until it is there."""
        while (connection := self.nodes.get(node_id)) is None:  # noqa: ASYNC110 - so does who has a timer
            await asyncio.sleep(0.001)
        return cast(FakeConnection, connection)

    async def insist(self, node_id: int, for_ms: float) -> list[float]:
        """Asks for the connection as the sender does, for so long. Returns when attempts were made."""
        known = len(self.opener.attempts)
        end_ms = self.now_ms() + for_ms
        while (now_ms := self.now_ms()) < end_ms:
            self.nodes.get(node_id)
            retry_at_ms = self.nodes.retry_at_ms(node_id)
            wait_ms = min(retry_at_ms, end_ms) - now_ms if now_ms < retry_at_ms < float("inf") else 0.5
            await asyncio.sleep(max(wait_ms, 0.1) / 1000.0)
        return [each[0] for each in self.opener.attempts[known:] if each[1] == node_id]


@asynccontextmanager
async def scene(**settings: Any) -> AsyncGenerator[Scene]:
    environment = MiddleOfTheRoad()
    found = Scene(environment, ClientConfig(settings.pop("servers", ["b1:1", "b2:2"]), client_id="test", **settings))
    try:
        yield found
    finally:
        await found.nodes.close()
        assert len(found.tasks) == 0
        assert all(not each.is_open for each in found.opener.opened)


def gaps(times: list[float]) -> list[float]:
    return [after - before for before, after in pairwise(times)]
