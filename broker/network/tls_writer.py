"""What is written to a client over TLS: encrypted piece by piece, as fast as its socket takes it.

    writer.write(parts)        small parts share a record; a large one is encrypted from where it lies

Of a large answer only so much is encrypted as the socket's transport wants to hold, and in one turn of the loop a
mebibyte at most: what follows waits as it is, and the connection is told to pause meanwhile. What waits is counted by
`size_bytes`.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from odradek.protocol.primitives import Buffer

RECORD_BYTES: Final = 16 * 1024
"""The most in one record of TLS."""
PIECE_BYTES: Final = 64 * 1024
"""What is encrypted at once: OpenSSL's buffer grows to it, and keeps that size."""
TURN_BYTES: Final = 1024 * 1024


class Pausing(Protocol):
    """Who writes."""

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...


class TlsWriter:
    """The writing half of one connection."""

    __slots__ = (
        "_failed",
        "_is_held",
        "_is_told",
        "_is_under_way",
        "_loop",
        "_object",
        "_outgoing",
        "_socket",
        "_waiting",
        "_when_empty",
        "_writing",
        "size_bytes",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        socket_transport: asyncio.Transport,
        tls_object: ssl.SSLObject,
        outgoing: ssl.MemoryBIO,
        writing: Pausing,
        failed: Callable[[ssl.SSLError], None],
    ) -> None:
        """`writing`: who writes. `failed`: called when nothing more can be encrypted; what waited is dropped."""
        self._loop = loop
        self._socket = socket_transport
        self._object = tls_object
        self._outgoing = outgoing
        self._writing = writing
        self._failed = failed
        self._waiting: deque[memoryview] = deque()
        self.size_bytes = 0
        """Of what is not encrypted yet."""
        self._is_held = False  # the socket's transport has enough
        self._is_told = False  # and so the connection pauses
        self._is_under_way = False  # the loop's next turn goes on
        self._when_empty: Callable[[], None] | None = None

    def write(self, parts: Iterable[Buffer]) -> None:
        """Sends these bytes, in their order. Nobody changes them afterwards."""
        parts = list(parts)
        size_bytes = sum(map(len, parts))
        if not self._waiting and size_bytes <= RECORD_BYTES:
            self._send(parts[0] if len(parts) == 1 else b"".join(parts))
            return
        self._waiting.extend(memoryview(part) for part in parts if part)
        self.size_bytes += size_bytes
        self._go_on()

    def flush(self) -> None:
        """Sends what OpenSSL has to say by itself."""
        if self._outgoing.pending and not self._socket.is_closing():
            self._socket.write(self._outgoing.read())

    def when_empty(self, call: Callable[[], None]) -> None:
        """Calls it when everything is encrypted and given to the socket's transport."""
        if self._waiting:
            self._when_empty = call
        else:
            call()

    def drop(self) -> None:
        """The connection is lost."""
        self._waiting.clear()
        self.size_bytes = 0
        self._when_empty = None

    # -- the socket's transport says so -----------------------------------------------------------------------------

    def pause(self) -> None:
        self._is_held = True
        self._tell_to_pause()

    def resume(self) -> None:
        self._is_held = False
        self._go_on()

    # -- one piece after the other ----------------------------------------------------------------------------------

    def _go_on(self) -> None:
        sent_bytes = 0
        while self._waiting and not self._is_held and sent_bytes < TURN_BYTES:
            piece = self._piece()
            self.size_bytes -= len(piece)
            sent_bytes += len(piece)
            self._send(piece)
        if self._waiting:
            self._tell_to_pause()
            if not self._is_held and not self._is_under_way:
                self._is_under_way = True
                self._loop.call_soon(self._next_turn)
            return
        if self._is_told and not self._is_held:
            self._is_told = False
            self._writing.resume_writing()
        if (call := self._when_empty) is not None and not self._waiting:
            self._when_empty = None
            call()

    def _next_turn(self) -> None:
        self._is_under_way = False
        if not self._socket.is_closing():
            self._go_on()

    def _piece(self) -> Buffer:
        """What is encrypted next: the head of a large part, or small parts that fit into one record."""
        first = self._waiting.popleft()
        if len(first) >= RECORD_BYTES:
            if len(first) > PIECE_BYTES:
                self._waiting.appendleft(first[PIECE_BYTES:])
            return first[:PIECE_BYTES]
        parts, size_bytes = [first], len(first)
        while self._waiting and size_bytes + len(self._waiting[0]) <= RECORD_BYTES:
            parts.append(self._waiting.popleft())
            size_bytes += len(parts[-1])
        return b"".join(parts)

    def _send(self, piece: Buffer) -> None:
        write, rest = self._object.write, memoryview(piece)
        try:
            while rest:
                rest = rest[write(rest) :]
        except ssl.SSLError as error:
            self.drop()
            self._failed(error)
            return
        if self._outgoing.pending:
            self._socket.write(self._outgoing.read())

    def _tell_to_pause(self) -> None:
        if not self._is_told:
            self._is_told = True
            self._writing.pause_writing()
