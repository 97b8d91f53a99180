"""All connections of this broker: how many there may be, which are idle for too long, and how they end with it."""

import asyncio
import logging
from typing import Protocol

from odradek.broker.handling.context import Context
from odradek.protocol.frames import CAPACITY_MIN

logger = logging.getLogger(__name__)

QUIET_MS = 10_000.0
"""So long a connection keeps its buffer after its last request: a client that goes on finds it."""


class Listed(Protocol):
    """A connection, as the table sees it."""

    last_active_ms: float

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered, waits for its turn, or its reply is still being sent."""
        ...

    @property
    def is_followers(self) -> bool:
        """Whether a follower fetches by it: it is served until no client waits any more."""
        ...

    def give_back(self) -> None:
        """Gives back what it holds for receiving."""
        ...

    def finish(self) -> asyncio.Task[None] | None:
        """Starts no further request; the task that ends with the request under way."""
        ...

    def close(self, reason: str) -> None:
        """Replies already queued are still sent."""
        ...


class ConnectionTable:
    """See the module."""

    def __init__(self, context: Context, descriptors: int) -> None:
        """`descriptors`: how many connections the limit of open files allows; more would be dropped without a word."""
        self._context = context
        self._descriptors = descriptors
        self.connections: dict[Listed, None] = {}
        self.landing = memoryview(bytearray(CAPACITY_MIN))
        """Where connections without a buffer receive; all are on one event loop."""

    def admit(self, connection: Listed) -> str | None:
        """Takes the connection in, or says why not (`max.connections`, or the limit of open files)."""
        count, limit = len(self.connections), self._context.config.max_connections
        if count >= min(limit, self._descriptors):
            self._context.metrics.connections_refused += 1
            cause = "max.connections" if limit <= self._descriptors else "raise the limit of open files, ulimit -n"
            return f"there are {count} connections already ({cause})"
        self.connections[connection] = None
        self._context.metrics.connections = len(self.connections)
        return None

    def forget(self, connection: Listed) -> None:
        self.connections.pop(connection, None)
        self._context.metrics.connections = len(self.connections)

    def close_idle(self) -> None:
        """Closes what has neither sent nor awaited anything for `connections.max.idle.ms`; what has been quiet for
        `QUIET_MS` gives its buffer back."""
        idle_ms = self._context.config.connections_max_idle_ms
        now_ms = self._context.environment.monotonic_ms()
        for connection in list(self.connections):
            quiet_ms = 0.0 if connection.is_busy else now_ms - connection.last_active_ms
            if quiet_ms > QUIET_MS:
                connection.give_back()
            if quiet_ms > idle_ms >= 0:
                connection.close(f"idle for more than {idle_ms} ms (connections.max.idle.ms)")

    async def drain(self, timeout_s: float) -> None:
        """Lets every request under way end, for at most `timeout_s`, while followers go on fetching what these have
        written. Closes all connections of clients then, and returns without waiting for followers."""
        connections = [connection for connection in self.connections if not connection.is_followers]
        workers = [worker for connection in connections if (worker := connection.finish()) is not None]
        try:
            await asyncio.wait_for(asyncio.gather(*workers, return_exceptions=True), timeout_s)
        except TimeoutError:
            logger.warning("some requests were still running after %.1f s and are given up", timeout_s)
        for connection in connections:
            connection.close("the broker stops")

    def close(self) -> None:
        """Closes those that are left."""
        for connection in list(self.connections):
            connection.close("the broker stops")
