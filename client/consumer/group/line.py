"""`Line`: a connection of one's own to one broker at a time, opened when it is needed.

The connections of `Cluster` are shared, and answers come in the order of requests: behind a Fetch that waits for
records a heartbeat would be late, and behind a JoinGroup that the coordinator holds everything would be.
(Source: ConsumerNetworkClient.java, which has a connection for the coordinator.)
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from odradek.client.cluster.topic_metadata import Node
from odradek.client.errors.client_errors import ClientClosed, ClientError, ConnectionFailed, UnsupportedVersion
from odradek.client.network.connection import Connection
from odradek.protocol.codec.schema import Request, Response
from odradek.runtime.tasks import Tasks

__all__ = ["Line"]

R = TypeVar("R", bound=Response)


class Line:
    """`opener` opens a connection to a node. `close` it."""

    def __init__(self, opener: Callable[[Node], Awaitable[Connection]], tasks: Tasks, name: str) -> None:
        self._opener = opener
        self._tasks = tasks
        self._name = name
        self._node: Node | None = None
        self._connection: Connection | None = None
        self._opening: asyncio.Task[Connection | ClientError] | None = None
        self._is_closed = False

    async def ask(
        self,
        node: Node,
        request: Request[R],
        *,
        at_least: int = 0,
        at_most: int | None = None,
        timeout_ms: float | None = None,
    ) -> R:
        """Sends it to this node, after what was asked of it before, and returns the answer. Raises ClientError."""
        connection = await self._connected(node)
        kind = type(request)
        version = connection.version_of(kind, at_most)
        if version < at_least:
            highest = kind.max_version if at_most is None else at_most
            name = kind.__name__.removesuffix("Request")
            raise UnsupportedVersion(name, connection.broker, (at_least, highest), (kind.min_version, version))
        return await connection.ask(request, version=version, timeout_ms=timeout_ms)

    def hang_up(self) -> None:
        """Ends the connection; what is in flight fails."""
        opening, self._opening = self._opening, None
        self._node = None
        if opening is not None:
            opening.cancel()
        self._see_off()

    def close(self) -> None:
        """For good. What is left of its connection ends in a task."""
        self._is_closed = True
        self.hang_up()

    async def _connected(self, node: Node) -> Connection:
        if self._is_closed:
            raise ClientClosed
        if self._node != node:
            self.hang_up()
            self._node = node
        if self._connection is not None and self._connection.is_open:
            return self._connection
        if self._opening is None or self._opening.done():
            self._see_off()
            self._opening = self._tasks.start(self._open(node), f"{self._name}: connect to broker {node.node_id}")
        return await _outcome(self._opening, node)

    def _see_off(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
            self._tasks.start(connection.closed(), f"{self._name}: end of the connection to {connection.broker}")

    async def _open(self, node: Node) -> Connection | ClientError:
        """The connection, or why there is none: an error for whoever waits for it, and none of the task's own."""
        try:
            connection = await self._opener(node)
        except ClientError as error:
            return error
        if self._is_closed or self._node != node:
            connection.close()
            await connection.closed()
            return ClientClosed()
        self._connection = connection
        return connection


async def _outcome(opening: asyncio.Task[Connection | ClientError], node: Node) -> Connection:
    """Who waits for it may be cancelled, and others still get it."""
    ended: asyncio.Future[None] = opening.get_loop().create_future()
    opening.add_done_callback(lambda _: _tell(ended))
    await ended
    if opening.cancelled():
        raise ConnectionFailed(f"broker {node.node_id} ({node.host}:{node.port})", "it is not asked any more")
    outcome = opening.result()
    if isinstance(outcome, ClientError):
        raise outcome.fresh()
    return outcome


def _tell(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
