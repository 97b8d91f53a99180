"""One broker as the client sees it: the connection to it, or the attempt at one, and what became of the last ones.

Which broker to ask something that any can answer follows from that (broker_ranking.py).
"""

import asyncio
from math import inf

from odradek.client.errors.client_errors import ClientError
from odradek.client.network.connection import Connection
from odradek.client.network.dialing import broker_name

__all__ = ["NEVER", "Link"]

NEVER = inf


class Link:
    """See the module. `is_listed`: it belongs to the cluster, or to the bootstrap servers that are being asked."""

    __slots__ = (
        "connecting",
        "connection",
        "error",
        "failures",
        "host",
        "is_listed",
        "node_id",
        "opened_ms",
        "port",
        "retry_at_ms",
        "setup_failures",
        "tried_ms",
        "unthrottled",
    )

    def __init__(self, node_id: int, host: str, port: int) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.is_listed = False
        self.connection: Connection | None = None
        self.connecting: asyncio.Task[None] | None = None
        self.unthrottled: asyncio.TimerHandle | None = None
        self.error: ClientError | None = None
        """Why there is no connection, if one was tried."""
        self.failures = 0
        """In a row, to connect or to stay connected."""
        self.setup_failures = 0
        """In a row, to connect."""
        self.retry_at_ms = -inf
        self.tried_ms = -inf
        self.opened_ms = -inf

    def __str__(self) -> str:
        return broker_name(self.node_id, self.host, self.port)

    @property
    def load(self) -> int:
        """How many requests are in flight."""
        return 0 if self.connection is None else self.connection.in_flight

    def idle_since_ms(self) -> float:
        """Since when the connection is not used; NEVER: it is."""
        connection = self.connection
        return NEVER if connection is None or connection.in_flight else connection.last_used_ms
