"""One broker as the client sees it: the connection to it, or the attempt at one, and what became of the last ones.

Which broker to ask something that any can answer follows from that, in the order of `Standing`, which is that of
NetworkClient.leastLoadedNode: a connection with nothing in flight; else the one with the least; else a broker that is
being connected to; else the one whose last attempt is longest ago. Unlike in Java, a broker that has been connected to
in vain for a while is waited for no longer, so that others are tried, and the bootstrap servers.
"""

import asyncio
from collections.abc import Sequence
from enum import Enum
from math import inf
from typing import Final

from odradek.client.errors.client_errors import ClientError
from odradek.client.network.connection import Connection
from odradek.client.network.dialing import broker_name

__all__ = ["NEVER", "Link", "Standing", "least_loaded"]

NEVER = inf


class Standing(Enum):
    """How fit a broker is to be asked, the fittest first."""

    IDLE = "connected, with nothing in flight"
    BUSY = "connected, with something in flight"
    CONNECTING = "being connected to"
    FREE = "may be connected to"
    SILENT = "throttled, or just lost"
    STUCK = "being connected to for long"
    OUT = "not to be connected to now"


HOPELESS: Final = frozenset((Standing.STUCK, Standing.OUT))


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

    def standing(self, now_ms: float, patience_ms: float) -> Standing:
        if self.connection is not None:
            if not self.connection.is_open or self.connection.throttled_until_ms > now_ms:
                return Standing.SILENT
            return Standing.BUSY if self.load else Standing.IDLE
        if self.connecting is not None:
            return Standing.CONNECTING if now_ms < self.tried_ms + patience_ms else Standing.STUCK
        return Standing.FREE if self.is_listed and self.retry_at_ms <= now_ms else Standing.OUT

    def changes_ms(self, patience_ms: float) -> float:
        """When the standing changes next by time alone, if that is to come."""
        if self.connection is not None:
            return self.connection.throttled_until_ms
        return self.tried_ms + patience_ms if self.connecting is not None else self.retry_at_ms

    def idle_since_ms(self) -> float:
        """Since when the connection is not used; NEVER: it is."""
        connection = self.connection
        return NEVER if connection is None or connection.in_flight else connection.last_used_ms


def least_loaded(links: Sequence[Link], now_ms: float, patience_ms: float) -> Link | None:
    """The broker to ask; of equal ones the first. None: there is none from which an answer can be hoped for."""
    found: dict[Standing, Link] = {}
    for link in links:
        standing = link.standing(now_ms, patience_ms)
        if standing is Standing.IDLE:
            return link
        best = found.setdefault(standing, link)
        if (standing is Standing.BUSY and link.load < best.load) or (
            standing is Standing.FREE and link.tried_ms < best.tried_ms
        ):
            found[standing] = link
    return next((found[each] for each in Standing if each in found and each not in HOPELESS), None)
