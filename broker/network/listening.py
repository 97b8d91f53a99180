"""Where a broker listens: bound first, so that it is known which ports are told to others, and accepting later."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from odradek.broker.config.listeners import Listener
from odradek.runtime.environment import Environment

Accept = Callable[[], asyncio.BaseProtocol]
"""What is made of each socket that is accepted."""


@dataclass(slots=True)
class Listening:
    """A bound listener."""

    listener: Listener
    server: asyncio.AbstractServer
    port: int
    """The one really bound, where the listener's is 0."""


async def bind(environment: Environment, accept: Accept, address: Listener) -> Listening:
    """Binds to one port on all addresses that the host stands for. Raises OSError."""
    host = "" if address.host == "*" else address.host
    server, addresses = await environment.listen(accept, host, address.port)
    port = addresses[0][1]
    if any(other != port for _, other in addresses):
        # Port 0 on `localhost` or a wildcard got IPv4 and IPv6 a port each, and only one can be advertised.
        server.close()
        server, _ = await environment.listen(accept, host, port)
    return Listening(address, server, port)
