"""One end of a connection in memory: a transport that keeps asyncio's promises, between a protocol and two pipes.

It is as strict as uvloop where that differs from asyncio's own loop:

- What was given to `write` is kept by reference until the pipe takes it, and compared then: whoever changed the bytes
  meanwhile gets `BytesChanged`. Writing to a closing transport raises.
- While the pipe takes no more, the write buffer grows, and the protocol is paused and resumed at its limits.
- An end that closes sends what it has and then an end of stream, or a reset when it leaves bytes unread; who writes to
  a closed end is reset. What a protocol raises goes to the loop's exception handler and ends the connection.
"""

import asyncio
import errno
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

from odradek.testing.sim.world.memory_pipe import End, Pipe

HIGH_WATER_BYTES: Final = 64 * 1024

Later = Callable[[Callable[[], object]], asyncio.Handle]


class BytesChanged(AssertionError):
    """A buffer was changed between its `write` and the moment it was sent."""


class MemoryTransport(asyncio.Transport):
    """One end of a connection."""

    # Says to `loop.start_tls` that TLS may be laid over this transport.
    _start_tls_compatible = True

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        protocol: asyncio.BaseProtocol,
        outgoing: Pipe,
        incoming: Pipe,
        *,
        sends_late: bool,
        extra: dict[str, Any],
        on_gone: Callable[[], None],
        later: Later | None = None,
    ) -> None:
        """`sends_late`: nothing is sent before the present callback has ended, as uvloop does it; asyncio tries at
        once. It is sent in the next round then, or when `later` calls what it is given."""
        super().__init__(extra)
        self.outgoing = outgoing
        self.incoming = incoming
        self.is_gone = False
        """The socket is closed: what comes is answered with a reset."""
        self._loop = loop
        self._sends_late = sends_late
        self._on_gone = on_gone
        self._later: Later = loop.call_soon if later is None else later
        self._buffer: deque[tuple[memoryview, bytes]] = deque()  # what was given, and what it said then
        self._buffer_bytes = 0
        self._flushing: asyncio.Handle | None = None
        self._high, self._low = HIGH_WATER_BYTES, HIGH_WATER_BYTES // 4
        self._is_protocol_paused = False
        self._is_reading_paused = False
        self._is_started = False
        self._is_closing = False
        self._has_sent_eof = False
        self._has_received_eof = False
        outgoing.sender = incoming.receiver = self
        self.set_protocol(protocol)

    def start(self) -> None:
        """Tells the protocol, and begins to read."""
        if self._is_closing:
            return
        try:
            self._protocol.connection_made(self)
        except Exception as error:  # noqa: BLE001 - what asyncio does with it: the handler, or a failed test, shows it
            self._report(error, "connection_made")
        self._is_started = True
        self.incoming.flow()

    # -- what asyncio asks of a transport --------------------------------------------------------------------------

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol
        self._is_buffered = isinstance(protocol, asyncio.BufferedProtocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def is_closing(self) -> bool:
        return self._is_closing

    def is_reading(self) -> bool:
        return not self._is_closing and not self._is_reading_paused

    def pause_reading(self) -> None:
        self._is_reading_paused = True

    def resume_reading(self) -> None:
        self._is_reading_paused = False
        self.incoming.flow()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if high is None:
            high = HIGH_WATER_BYTES if low is None else 4 * low
        if low is None:
            low = high // 4
        if not high >= low >= 0:
            raise ValueError(f"high ({high!r}) must be >= low ({low!r}) must be >= 0")
        self._high, self._low = high, low
        self._pause_if_full()

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def get_write_buffer_size(self) -> int:
        return self._buffer_bytes

    def write(self, data: Any) -> None:
        self.writelines((data,))

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        if self._has_sent_eof:
            raise RuntimeError("cannot write after write_eof()")
        if self._is_closing:
            raise RuntimeError("the transport is closing; ask is_closing() before writing to it")
        for data in list_of_data:
            if len(data):
                view = memoryview(data).cast("B")
                self._buffer.append((view, bytes(view)))
                self._buffer_bytes += len(view)
        if not self._sends_late:
            self._flush()
        elif self._flushing is None:
            self._flushing = self._later(self._flush)
        if self._buffer_bytes > self._high:
            self._pause_if_full()

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if not self._has_sent_eof and not self._is_closing:
            self._has_sent_eof = True
            if not self._buffer:
                self.outgoing.send_end(End.STREAM)

    def close(self) -> None:
        if self._is_closing:
            return
        self._is_closing = True
        if not self._buffer:
            self._go(None)

    def abort(self) -> None:
        self._force_close(None)

    # -- what the pipes and the network tell -----------------------------------------------------------------------

    def reads(self) -> bool:
        return self._is_started and not self._is_closing and not self._is_reading_paused and not self._has_received_eof

    def receive(self, size: int) -> None:
        """Takes so many bytes to the protocol, or as many as it has room for."""
        protocol = self._protocol
        try:
            if not isinstance(protocol, asyncio.BufferedProtocol):
                assert isinstance(protocol, asyncio.Protocol)
                protocol.data_received(self.incoming.take(size))
                return
            with memoryview(protocol.get_buffer(-1)) as room:  # pyright: ignore
                if not len(room):
                    raise RuntimeError("get_buffer() returned an empty buffer")
                size = min(size, len(room))
                room[:size] = self.incoming.take(size)
            protocol.buffer_updated(size)
        except Exception as error:  # noqa: BLE001 - as asyncio: reported, and the connection ends
            self._report(error, "data_received" if isinstance(protocol, asyncio.Protocol) else "buffer_updated")

    def receive_end(self, end: End) -> None:
        if end is End.RESET:
            self.reset()
            return
        self._has_received_eof = True
        protocol = self._protocol
        assert isinstance(protocol, (asyncio.Protocol, asyncio.BufferedProtocol))
        try:
            keeps_open = protocol.eof_received()
        except Exception as error:  # noqa: BLE001 - as asyncio
            self._report(error, "eof_received")
            return
        if not keeps_open:
            self.close()

    def room_came(self) -> None:
        if self._buffer and self._flushing is None:
            self._flushing = self._later(self._flush)

    def reset(self) -> None:
        """The peer, or the network, has reset the connection."""
        self.outgoing.stop()
        self.outgoing.is_dead = True
        self._force_close(ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"))

    # -- below (asyncio's TLS calls `_force_close`, too) ---------------------------------------------------------------

    def _force_close(self, error: Exception | None) -> None:
        """Ends it at once, without what was not sent yet."""
        self._is_closing = True
        self._buffer.clear()
        self._buffer_bytes = 0
        self._go(error)

    def _flush(self) -> None:
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        buffer, outgoing = self._buffer, self.outgoing
        while buffer and (room := outgoing.room_bytes):
            view, said = buffer.popleft()
            piece = said if len(said) <= room else said[:room]
            if bytes(view[: len(piece)]) != piece:
                error = BytesChanged(f"some of {len(piece)} bytes were changed after they were given to write()")
                self._report(error, "write")
                return
            outgoing.send(piece)
            self._buffer_bytes -= len(piece)
            if room < len(said):
                buffer.appendleft((view[room:], said[room:]))
        if not self._buffer:
            if self._is_closing:
                self._go(None)
                return
            if self._has_sent_eof:
                self.outgoing.send_end(End.STREAM)
        if self._is_protocol_paused and self._buffer_bytes <= self._low:
            self._is_protocol_paused = False
            self._tell(self._protocol.resume_writing)

    def _pause_if_full(self) -> None:
        if self._buffer_bytes > self._high and not self._is_protocol_paused and not self._is_closing:
            self._is_protocol_paused = True
            self._tell(self._protocol.pause_writing)

    def _tell(self, callback: Callable[[], object]) -> None:
        try:
            callback()
        except Exception as error:  # noqa: BLE001 - as asyncio: reported only
            message = f"protocol.{callback.__name__}() failed"
            self._loop.call_exception_handler({"message": message, "exception": error, "transport": self})

    def _go(self, error: Exception | None) -> None:
        """Closes the socket, and tells both ends."""
        if self.is_gone:
            return
        self.is_gone = True
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        self.outgoing.send_end(End.RESET if self.incoming.arrived_bytes else End.STREAM)
        self.incoming.drop_arrived()
        self._loop.call_soon(self._lose, error)

    def _lose(self, error: Exception | None) -> None:
        self._on_gone()
        if not self._is_started:
            return  # nobody has been told that there is a connection
        try:
            self._protocol.connection_lost(error)
        except Exception as raised:  # noqa: BLE001 - as asyncio
            message = "protocol.connection_lost() failed"
            self._loop.call_exception_handler({"message": message, "exception": raised, "transport": self})

    def _report(self, error: Exception, where: str) -> None:
        message = f"Fatal error: protocol.{where}() failed"
        self._loop.call_exception_handler({"message": message, "exception": error, "transport": self})
        self._force_close(error)
