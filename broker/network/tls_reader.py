"""What a client sends over TLS: decrypted at once, into the connection's own buffer, as long as that wants to read.

    reader.receive(data)        what the socket has brought

- What the connection does not want stays encrypted, and the socket is not read meanwhile.
- In one turn of the loop no more than `READS_A_TURN` records are decrypted, so that small ones hold nobody up.
- OpenSSL is given at most `RECORDS_A_PORTION` records at a time, since it goes through all that bring no data at once.
  A client that sends such records again and again, to have keys updated, is told of by `Owner.idle`.
"""

import asyncio
import ssl
from collections.abc import Callable
from typing import Final, Protocol, cast

from odradek.broker.tls.record_counter import RecordCounter

READ_BYTES_MAX: Final = 128 * 1024
"""The most that one read of a socket brings."""
FIRST_READ_BYTES: Final = 16 * 1024
"""How much is read at a time, first. Whoever fills it is read twice as much the next time, since OpenSSL keeps a buffer
that has grown."""
RECORDS_A_PORTION: Final = 64
READS_A_TURN: Final = 256
IDLE_RECORDS_MAX: Final = 32
"""So many records without data a client may send, and one more for each `BYTES_PER_IDLE_RECORD` of data."""
BYTES_PER_IDLE_RECORD: Final = 16 * 1024 * 1024
NOTHING: Final = memoryview(b"")


class Reading(Protocol):
    """Who reads: as `asyncio.BufferedProtocol`."""

    def get_buffer(self, sizehint: int) -> memoryview: ...

    def buffer_updated(self, nbytes: int) -> None: ...


class Owner(Protocol):
    """Who is told how it ends. Each of the last three ends the reading (`TlsReader.stop`)."""

    def flush(self) -> None:
        """OpenSSL may have something to say."""
        ...

    def goodbye(self) -> None:
        """The client says that nothing follows."""
        ...

    def idle(self) -> None:
        """It sends records without data, again and again."""
        ...

    def broken(self, error: ssl.SSLError) -> None:
        """It sends what is no TLS, or not its own."""
        ...


class TlsReader:
    """The reading half of one connection, from the end of the handshake on."""

    __slots__ = (
        "_bytes",
        "_counter",
        "_incoming",
        "_is_over",
        "_is_paused",
        "_is_socket_paused",
        "_is_under_way",
        "_loop",
        "_object",
        "_owner",
        "_queue",
        "_reading",
        "_records",
        "_records_before",
        "_socket",
        "read_bytes",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        socket_transport: asyncio.Transport,
        tls_object: ssl.SSLObject,
        incoming: ssl.MemoryBIO,
        counter: RecordCounter,
        reading: Reading,
        owner: Owner,
    ) -> None:
        """`counter` has counted what came until now, of which OpenSSL may still hold some."""
        self._loop = loop
        self._socket = socket_transport
        self._object = tls_object
        self._incoming = incoming
        self._counter = counter
        self._reading = reading
        self._owner = owner
        self.read_bytes = FIRST_READ_BYTES
        """How much the socket may bring the next time."""
        self._queue = NOTHING  # what has come and OpenSSL has not
        self._is_paused = False  # the connection does not want more
        self._is_socket_paused = False
        self._is_under_way = False  # the loop's next turn goes on
        self._is_over = False
        self._records_before = counter.count
        self._records = 0  # with data
        self._bytes = 0  # of data

    def receive(self, data: memoryview) -> None:
        """The socket has brought this."""
        if len(data) == self.read_bytes < READ_BYTES_MAX:
            self.read_bytes *= 2
        if self._queue or self._is_paused or self._is_under_way:
            self._queue = memoryview(bytes(self._queue) + bytes(data))
            self._pause_or_resume_socket()
            return
        position = self._counter.feed(data, RECORDS_A_PORTION)
        self._incoming.write(data[:position])
        if position < len(data):
            self._queue = memoryview(bytes(data[position:]))
        self.go_on()

    def go_on(self) -> None:
        """Decrypts as far as the connection wants, and one turn of the loop allows."""
        reads = 0
        while not self._is_over and not self._is_paused:
            if not self._has_encrypted:
                if self._sends_no_data:
                    self._owner.idle()
                    return
                if not self._queue:
                    break
                self._next_portion()
            elif reads >= READS_A_TURN:
                self._go_on_later()
                break
            else:
                reads += self._read()
        if not self._is_over:
            self._owner.flush()
            self._pause_or_resume_socket()

    def pause(self) -> None:
        """The connection does not want more."""
        self._is_paused = True
        self._pause_or_resume_socket()

    def resume(self) -> None:
        """It does again. What has come meanwhile follows in the loop's next turn: it is in the middle of something."""
        self._is_paused = False
        self._go_on_later()

    def stop(self) -> None:
        """Nothing more is wanted; what has come is dropped."""
        self._is_over = self._is_paused = True
        self._queue = NOTHING
        self._pause_or_resume_socket()

    # -- one portion after the other --------------------------------------------------------------------------------

    @property
    def _has_encrypted(self) -> bool:
        """Whether OpenSSL may give something out. (Less than a record is taken in, and waits for the rest.)"""
        return self._incoming.pending > 0 or self._object.pending() > 0

    @property
    def _sends_no_data(self) -> bool:
        idle_records = self._counter.count - self._records_before - self._records
        return idle_records > IDLE_RECORDS_MAX + self._bytes // BYTES_PER_IDLE_RECORD

    def _next_portion(self) -> None:
        position = self._counter.feed(self._queue, RECORDS_A_PORTION)
        self._incoming.write(self._queue[:position])
        self._queue = self._queue[position:] if position < len(self._queue) else NOTHING

    def _read(self) -> int:
        """Reads into the connection's buffer until that is full or nothing is left; how many records that were."""
        incoming, pending = self._incoming, self._object.pending
        read = cast(Callable[[int, memoryview], int], self._object.read)
        room = self._reading.get_buffer(-1)
        size_bytes = len(room)
        count_bytes = records = 0
        failure: ssl.SSLError | None = None
        is_at_end = False
        try:
            while count_bytes < size_bytes and records < READS_A_TURN:
                asked_bytes = size_bytes - count_bytes
                received_bytes = read(asked_bytes, room[count_bytes:])
                if received_bytes == 0:
                    is_at_end = True
                    break
                records += 1
                count_bytes += received_bytes
                if received_bytes < asked_bytes or not pending():  # else the rest of the record follows
                    self._records += 1
                    if not incoming.pending:
                        break
        except ssl.SSLWantReadError:
            records += 1
        except ssl.SSLZeroReturnError:
            is_at_end = True
        except ssl.SSLError as error:
            failure = error
        del room  # else the connection's buffer counts as held
        if count_bytes:
            self._bytes += count_bytes
            self._reading.buffer_updated(count_bytes)
        if failure is not None and not self._is_over:
            self._owner.broken(failure)
        elif is_at_end:
            self._owner.goodbye()
        return records

    def _go_on_later(self) -> None:
        if not self._is_under_way:
            self._is_under_way = True
            self._loop.call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._is_under_way = False
        self.go_on()

    def _pause_or_resume_socket(self) -> None:
        wants_pause = self._is_paused or self._is_under_way or bool(self._queue)
        if wants_pause != self._is_socket_paused and not self._socket.is_closing():
            self._is_socket_paused = wants_pause
            if wants_pause:
                self._socket.pause_reading()
            else:
                self._socket.resume_reading()
