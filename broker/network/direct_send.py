"""Replies with slices of files, past the transport: straight to its socket, as long as that takes them.

    parts = send_directly(transport, parts)     what is left is the transport's, and in memory

Only while the transport has nothing to write itself, so that bytes stay in their order.
"""

import asyncio
import socket
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from odradek.broker.disk.file_slice import SENDFILE_BYTES_MAX, FileSlice
from odradek.protocol.primitives import Buffer


def can_send_directly(transport: asyncio.Transport) -> bool:
    """Whether bytes that are written to the socket below arrive as they are: over TCP, and not over TLS."""
    return transport.get_extra_info("sslcontext") is None and transport.get_extra_info("socket") is not None


def send_directly(transport: asyncio.Transport, parts: Sequence[Buffer | FileSlice]) -> list[Buffer]:
    """Sends what the socket takes at once, and returns the rest. Raises OSError where a file or the socket fails; then
    nobody knows how much was sent."""
    done = 0
    rest: list[Buffer] = []
    if transport.get_write_buffer_size() == 0:
        by_sendfile = sum(len(part) for part in parts if isinstance(part, FileSlice)) <= SENDFILE_BYTES_MAX
        with _borrowed(transport) as sock:
            try:
                for part in parts:
                    if isinstance(part, FileSlice):
                        part.send(sock, by_sendfile=by_sendfile)
                    else:
                        sent = sock.send(part, socket.MSG_MORE if done + 1 < len(parts) else 0)
                        if sent < len(part):
                            rest.append(memoryview(part)[sent:])
                    done += 1
                    if rest:
                        break
            except BlockingIOError:
                pass  # the rest is for the transport, which waits
    rest += (part.read() if isinstance(part, FileSlice) else part for part in parts[done:])
    return rest


@contextmanager
def _borrowed(transport: asyncio.Transport) -> Generator[socket.socket]:
    """The socket of the transport, which keeps it."""
    own = transport.get_extra_info("socket")
    sock = socket.socket(own.family, own.type, own.proto, fileno=own.fileno())
    try:
        yield sock
    finally:
        sock.detach()
