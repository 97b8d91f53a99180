"""Bytes on their way into a transport, in their order: at once or once a turn of the loop, and a piece at a time.

A transport that cannot write at once copies, and asyncio's joins whatever it is given together. A request of a megabyte
would be copied whole, into memory that is fresh each time: on Linux that costs more than making the request. So a
transport gets a piece, and the next one when it has written that.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from odradek.protocol.primitives import Buffer

__all__ = ["PIECE_BYTES", "Outgoing"]

PIECE_BYTES: Final = 128 * 1024
"""A piece ends with the buffer by which it has so many bytes. As SO_SNDBUF is by default: more would not be taken."""


class Outgoing:
    """What one connection has to write. `on_written` is called when a flush or the transport has written everything."""

    __slots__ = ("_buffers", "_is_flush_due", "_loop", "_on_written", "_transport", "_watches")

    def __init__(self, loop: asyncio.AbstractEventLoop, on_written: Callable[[], None]) -> None:
        self._loop = loop
        self._on_written = on_written
        self._transport: asyncio.Transport | None = None
        self._buffers: deque[Buffer] = deque()
        self._is_flush_due = False
        self._watches = False

    def begin(self, transport: asyncio.Transport) -> None:
        self._transport = transport

    def end(self) -> None:
        """The connection is lost: nothing will be written any more."""
        self._transport = None
        self._buffers.clear()

    @property
    def is_waiting(self) -> bool:
        """Whether there are bytes that the transport has not been given."""
        return bool(self._buffers)

    @property
    def is_written(self) -> bool:
        """Whether the socket has everything. False on a connection that is closing: what it held may be lost."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return False
        return not self._buffers and not transport.get_write_buffer_size()

    def write(self, buffers: Iterable[Buffer]) -> None:
        self._buffers.extend(buffers)
        self._write_pieces()

    def write_soon(self, buffers: Iterable[Buffer]) -> None:
        """Together with whatever else is written in this turn of the loop."""
        self._buffers.extend(buffers)
        if not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self._flush)

    def watch(self) -> None:
        """From now on the transport calls `resume_writing` whenever its buffer is empty again."""
        transport = self._transport
        # One that is closing may refuse (uvloop); `connection_lost` is on its way.
        if not self._watches and transport is not None and not transport.is_closing():
            self._watches = True
            transport.set_write_buffer_limits(0)

    def resume(self) -> None:
        """The transport's buffer is empty."""
        self._write_pieces()
        if self.is_written:
            self._on_written()

    def _flush(self) -> None:
        self._is_flush_due = False
        self.resume()

    def _write_pieces(self) -> None:
        transport = self._transport
        buffers = self._buffers
        # A transport that is closing takes nothing more; `connection_lost` is on its way and ends what is in flight.
        while buffers and transport is not None and not transport.is_closing():
            if transport.get_write_buffer_size():
                self.watch()
                return
            piece: list[Buffer] = []
            size = 0
            while buffers and size < PIECE_BYTES:
                buffer = buffers.popleft()
                piece.append(buffer)
                size += len(buffer)
            transport.writelines(piece)
