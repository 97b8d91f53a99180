"""Frames: how requests and responses follow one another on a connection.

    int32 size | header | body                        `size` counts what follows it

    request header    int16 api_key, int16 api_version, int32 correlation_id, nullable string client_id
                      (v1; v2, of flexible versions, adds a tag section; the client id stays old-style in both)
    response header   int32 correlation_id            (v0; v1, of flexible versions, adds a tag section, but the
                                                      responses of ApiVersions have v0 always, KIP-511)

`FrameReader` takes bytes in any portions and gives whole frames out without copying them. Rules of its buffer:

- There is none before the first bytes come, which land in a buffer that readers share: thousands of connections may say
  nothing, or close together. It grows with the bytes that have come, at most doubling, or by the `growth` of a reader
  that has asked for what comes. What a peer announces makes it grow less, never more. It shrinks again with what comes,
  and is given back when the connection says that it has fallen quiet (`shrink`).
- A frame is a view of it. While anybody holds a frame, or a slice of one, its bytes are not written to again: new bytes
  are received behind the last frame, and the beginning is used again only when Python itself says that no view is left.
  (A bytearray refuses to change its size while a view of it exists. That is the question put to it.)
- A partial frame that has no room to become whole moves, into a buffer of which it takes at most half (one part in
  `growth`), unless it needs no more; so no byte is copied more than twice on average, however large the frame and
  however small the portions.

The reader fits `asyncio.BufferedProtocol`, whose `get_buffer` and `buffer_updated` it has.
"""

from collections.abc import Sequence
from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple

from odradek.protocol.errors import MalformedMessage
from odradek.protocol.primitives import Buffer, skip_tags

CAPACITY_MIN: Final = 16 * 1024
"""Size of a buffer at least, but for the first one."""
CAPACITY_FIRST: Final = 2 * 1024
"""Size of the buffer behind a landing, where little has come: clients say hello, and then nothing for hours."""
CAPACITY_KEPT_MAX: Final = 2 * 1024 * 1024
"""Buffers up to this size are used again by a connection that fills them. Kept at 256 KiB, a connection that sends
frames of 1 MiB allocated four buffers for each, and took 1,300 µs a frame rather than 270."""

NO_BUFFER: Final = bytearray()
NO_VIEW: Final = memoryview(NO_BUFFER)
FRAME_PREFIX_BYTES: Final = 4
"""The length before each frame."""
_SIZE: Final = Struct(">i")
_REQUEST: Final = Struct(">hhi")
_REQUEST_WITH_CLIENT: Final = Struct(">hhih")
_CORRELATION_ID: Final = Struct(">i")


class FrameReader:
    """Turns received bytes into frames; `size_bytes_max` bounds one, its size apart (`socket.request.max.bytes`)."""

    __slots__ = ("_buffer", "_capacity", "_end", "_growth", "_landing", "_start", "_view", "size_bytes_max")

    def __init__(self, size_bytes_max: int, landing: memoryview | None = None, growth: int = 2) -> None:
        """`landing`: where the first bytes are received while the reader has no buffer; `CAPACITY_MIN` bytes that all
        readers of one event loop may share, which receive and say so in one go. Without it a buffer is made before.
        `growth`: how many times what has come the buffer may be."""
        self.size_bytes_max = size_bytes_max
        self._landing = landing
        self._growth = growth
        self._start = 0  # of what has been received and not given out
        self._end = 0
        self._capacity = CAPACITY_MIN  # of the next buffer
        self._buffer = NO_BUFFER
        self._view = NO_VIEW

    @property
    def capacity_bytes(self) -> int:
        """The size of the buffer."""
        return len(self._buffer)

    def get_buffer(self, sizehint: int = -1) -> memoryview:
        """Room for the next bytes, never empty, until the next call of a method. The hint of the loop is not needed."""
        if self._start == self._end:
            if self._end:
                self._begin_again()
            elif not self._buffer:
                if self._landing is not None:
                    return self._landing[:]
                self._replace(self._capacity)
        elif self._room_is_short():
            self._move()
        return self._view[self._end :]

    def buffer_updated(self, size_bytes: int) -> None:
        """Says that so many bytes were written to the beginning of what `get_buffer` returned."""
        if not self._buffer and self._landing is not None:
            self._capacity = CAPACITY_FIRST if 2 * size_bytes <= CAPACITY_FIRST else CAPACITY_MIN
            self._replace(self._capacity)
            self._view[:size_bytes] = self._landing[:size_bytes]
        self._end += size_bytes
        assert self._end <= len(self._buffer)
        if self._end == len(self._buffer):  # more may have been waiting than there was room for
            self._capacity = max(self._capacity, min(2 * self._end, CAPACITY_KEPT_MAX))

    def next_frame(self) -> memoryview | None:
        """The next frame without its size, or None until more bytes have come.

        The view stays valid and unchanged for as long as it, or a slice of it, is held.
        Raises MalformedMessage for a negative size and for one over the bound; the connection is lost then.
        """
        start = self._start
        received = self._end - start
        if received < 4:
            if received == 0 and len(self._buffer) > CAPACITY_KEPT_MAX:
                self._replace(self._capacity)  # what one very large frame took
                self._start = self._end = 0
            return None
        (size_bytes,) = _SIZE.unpack_from(self._buffer, start)
        if not 0 <= size_bytes <= self.size_bytes_max:
            raise MalformedMessage(
                f"a frame of {size_bytes} bytes, where 0 to {self.size_bytes_max} are allowed{_guess(size_bytes)}"
            )
        if received < 4 + size_bytes:
            return None
        self._start = end = start + 4 + size_bytes
        return self._view[start + 4 : end]

    def shrink(self) -> None:
        """Gives the buffer back, if nothing waits in it. For a connection that has been quiet for a while."""
        if self._start == self._end:
            self.drop()

    def drop(self) -> None:
        """Gives the buffer back with what waits in it: the connection is lost."""
        self._capacity = CAPACITY_MIN
        self._buffer, self._view = NO_BUFFER, NO_VIEW
        self._start = self._end = 0

    def feed(self, data: Buffer) -> None:
        """Receives `data`, as a transport does through `get_buffer` and `buffer_updated`."""
        rest = memoryview(data)
        while len(rest):
            with self.get_buffer() as room:
                count = min(len(room), len(rest))
                room[:count] = rest[:count]
            self.buffer_updated(count)
            rest = rest[count:]

    def _begin_again(self) -> None:
        """Everything has been given out: continues at the beginning of a buffer, where nobody looks at this one."""
        if self._end < self._capacity // 8 and self._capacity > CAPACITY_MIN:
            self._capacity //= 2
        if len(self._buffer) != self._capacity:
            self._replace(self._capacity)
        elif self._is_held():
            if len(self._buffer) - self._end >= len(self._buffer) // 8:
                return  # there is room behind the frames that are held
            self._replace(self._capacity)
        self._start = self._end = 0

    def _room_is_short(self) -> bool:
        """Whether what was received has to move before more can be received well."""
        room = len(self._buffer) - self._end
        if room == 0:
            return True
        size_bytes = self._first_size()
        if size_bytes is not None and self._start + size_bytes <= len(self._buffer):
            return False
        # A frame that is too large for the whole buffer fills it first; one that only begins late in it moves earlier,
        # rather than being received by the last few bytes of room.
        return self._start > 0 and room < len(self._buffer) // 8

    def _move(self) -> None:
        """Moves what was received to the beginning of a buffer: one part in `growth` of it, or more if known."""
        received = self._end - self._start
        wanted = self._growth * received
        size_bytes = self._first_size()
        if size_bytes is not None and size_bytes > received:
            wanted = min(wanted, size_bytes)
        wanted = max(wanted, self._capacity)
        if wanted == len(self._buffer) and not self._is_held():
            self._view[:received] = self._view[self._start : self._end]
        else:
            source = self._view[self._start : self._end]
            self._replace(wanted)
            self._view[:received] = source
        self._start = 0
        self._end = received

    def _first_size(self) -> int | None:
        """What is announced of the first frame that was not given out, its four bytes included; None before these."""
        if self._end - self._start < 4:
            return None
        size_bytes: int = _SIZE.unpack_from(self._buffer, self._start)[0]
        return 4 + size_bytes

    def _is_held(self) -> bool:
        """Whether anybody but this reader holds a view of the buffer."""
        self._view.release()
        try:
            self._buffer.append(self._buffer.pop())  # shrinks and grows by one byte, without a new allocation
        except BufferError:
            return True
        finally:
            self._view = memoryview(self._buffer)
        return False

    def _replace(self, capacity_bytes: int) -> None:
        self._buffer = bytearray(capacity_bytes)
        self._view = memoryview(self._buffer)


def _guess(size_bytes: int) -> str:
    """What may have been read as a size: the beginning of another protocol, of which people ask what went wrong."""
    first = _SIZE.pack(size_bytes)
    if first in (b"GET ", b"HEAD", b"POST", b"PUT ", b"OPTI", b"PRI "):
        return "; this looks like HTTP, and here is Kafka's protocol"
    if first[:2] == b"\x16\x03":
        return "; this looks like a TLS hello, and this listener is plaintext"
    return ""


class RequestHeader(NamedTuple):
    """The header of a request, of either version."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def peek_request(frame: Buffer) -> tuple[int, int, int]:
    """(api_key, api_version, correlation_id), which stand first in every request. Raises MalformedMessage."""
    if len(frame) < _REQUEST.size:
        raise MalformedMessage(f"a request of {len(frame)} bytes has no header")
    api_key, api_version, correlation_id = _REQUEST.unpack_from(frame)
    return api_key, api_version, correlation_id


def read_request_header(frame: Buffer, flexible: bool) -> tuple[RequestHeader, int]:
    """The header of a request and the position of its body. Raises MalformedMessage."""
    try:
        api_key, api_version, correlation_id, length = _REQUEST_WITH_CLIENT.unpack_from(frame)
        position = _REQUEST_WITH_CLIENT.size
        client_id = None
        if length >= 0:
            client_id = str(frame[position : position + length], "utf-8")
            position += length
        elif length < -1:
            raise MalformedMessage(f"a client id of {length} bytes")
        if flexible:
            # No client sends any so far.
            position = skip_tags(frame, position, len(frame)) if frame[position] else position + 1
    except (StructError, IndexError, UnicodeDecodeError) as why:
        raise MalformedMessage(f"request header: {why}") from None
    if position > len(frame):
        raise MalformedMessage("a request header that ends beyond the request")
    return RequestHeader(api_key, api_version, correlation_id, client_id), position


def read_response_header(frame: Buffer, flexible_header: bool) -> tuple[int, int]:
    """(correlation_id, position of the body). Raises MalformedMessage."""
    if len(frame) < _CORRELATION_ID.size:
        raise MalformedMessage(f"a response of {len(frame)} bytes has no header")
    (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
    position = _CORRELATION_ID.size
    if flexible_header:
        try:
            position = skip_tags(frame, position, len(frame))
        except IndexError:
            raise MalformedMessage("a response header that ends beyond the response") from None
    return correlation_id, position


def request_frame(header: RequestHeader, flexible: bool, body_parts: Sequence[Buffer]) -> list[Buffer]:
    """A whole request, size first, as buffers to be written one after the other. Records are not copied."""
    client_id = None if header.client_id is None else header.client_id.encode()
    head = _REQUEST_WITH_CLIENT.pack(
        header.api_key, header.api_version, header.correlation_id, -1 if client_id is None else len(client_id)
    )
    return _frame(head + (client_id or b"") + (b"\0" if flexible else b""), body_parts)


def response_frame(correlation_id: int, flexible_header: bool, body_parts: Sequence[Buffer]) -> list[Buffer]:
    """A whole response, likewise."""
    return _frame(_CORRELATION_ID.pack(correlation_id) + (b"\0" if flexible_header else b""), body_parts)


def _frame(head: bytes, body_parts: Sequence[Buffer]) -> list[Buffer]:
    size = _SIZE.pack(len(head) + sum(map(len, body_parts)))
    if not body_parts:
        return [size + head]
    # The codec's first part is its own and short, unless there are no records: one buffer less to write.
    first, *others = body_parts
    return [b"".join((size, head, first)), *others]
