"""Which broker the client asks something that any of them can answer. Pure.

The order is that of `Standing`, which is that of NetworkClient.leastLoadedNode: a connection with nothing in flight;
else the one with the least; else a broker that is being connected to; else the one whose last attempt is longest ago.
Unlike in Java, a broker that has been connected to in vain for a while is waited for no longer, so that others are
tried, and the bootstrap servers.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Final

from odradek.client.cluster.link import Link

__all__ = ["Standing", "least_loaded", "standing_changes_ms", "standing_of"]


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


def standing_of(link: Link, now_ms: float, patience_ms: float) -> Standing:
    """How fit its broker is to be asked now. A connection that is being made is waited for `patience_ms`."""
    if link.connection is not None:
        if not link.connection.is_open or link.connection.throttled_until_ms > now_ms:
            return Standing.SILENT
        return Standing.BUSY if link.load else Standing.IDLE
    if link.connecting is not None:
        return Standing.CONNECTING if now_ms < link.tried_ms + patience_ms else Standing.STUCK
    return Standing.FREE if link.is_listed and link.retry_at_ms <= now_ms else Standing.OUT


def standing_changes_ms(link: Link, patience_ms: float) -> float:
    """When its standing changes next by time alone, if that is to come."""
    if link.connection is not None:
        return link.connection.throttled_until_ms
    return link.tried_ms + patience_ms if link.connecting is not None else link.retry_at_ms


def least_loaded(links: Sequence[Link], now_ms: float, patience_ms: float) -> Link | None:
    """The broker to ask; of equal ones the first. None: there is none from which an answer can be hoped for."""
    found: dict[Standing, Link] = {}
    for link in links:
        standing = standing_of(link, now_ms, patience_ms)
        if standing is Standing.IDLE:
            return link
        best = found.setdefault(standing, link)
        if (standing is Standing.BUSY and link.load < best.load) or (
            standing is Standing.FREE and link.tried_ms < best.tried_ms
        ):
            found[standing] = link
    return next((found[each] for each in Standing if each in found and each not in HOPELESS), None)
