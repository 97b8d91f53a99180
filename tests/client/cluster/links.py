"""Links in any state, with stand-ins for connections that have the few attributes that count."""

from dataclasses import dataclass
from typing import Any, cast

from odradek.client.cluster.link import Link
from odradek.client.network.connection import Connection

NOW_MS = 10_000.0


@dataclass
class Open:
    """What a Link looks at in a connection."""

    in_flight: int = 0
    throttled_until_ms: float = 0.0
    is_open: bool = True
    last_used_ms: float = 0.0


def link(
    node_id: int = 0,
    *,
    connection: Open | None = None,
    is_connecting: bool = False,
    tried_ms: float = NOW_MS,
    retry_at_ms: float = 0.0,
    is_listed: bool = True,
) -> Link:
    made = Link(node_id, "host", 9092)
    made.connection = cast(Connection | None, connection)
    made.connecting = cast(Any, object()) if is_connecting else None
    made.tried_ms = tried_ms
    made.retry_at_ms = retry_at_ms
    made.is_listed = is_listed
    return made
