"""asyncio's own TLS over a transport in memory: it asks nothing of one but what asyncio promises."""

import asyncio
from asyncio import sslproto
from ssl import SSLContext
from typing import Any


def with_tls(
    loop: asyncio.AbstractEventLoop,
    protocol: asyncio.BaseProtocol,
    context: SSLContext,
    waiter: asyncio.Future[None] | None = None,
    server_hostname: str | None = None,
) -> asyncio.BaseProtocol:
    """The protocol that a transport is given in place of `protocol`, which is told of the connection after the
    handshake, and never where that fails. The waiter hears of both.

    `server_hostname`: whom a client connects to, by name or IP address; None at a server.
    """
    tls: Any = sslproto.SSLProtocol
    wrapped: asyncio.BaseProtocol = tls(
        loop, protocol, context, waiter, server_side=server_hostname is None, server_hostname=server_hostname
    )
    return wrapped


def forget_tls(protocol: asyncio.BaseProtocol) -> None:
    """For the protocol of a transport whose process was killed: that nobody has closed its TLS is no mistake."""
    tls: Any = getattr(protocol, "tls", protocol)  # what a client has lies beneath (runtime/tls_transport.py)
    if isinstance(tls, sslproto.SSLProtocol):
        transport: Any = vars(tls)["_app_transport"]
        if transport is not None:
            transport._closed = True
