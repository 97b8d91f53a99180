"""Frames of the socket, and what they are made of. Pure.

    frame     u32 size of the rest | u8 kind | u32 number | body
    text      u32 size | UTF-8, in which bytes that are no text stand as surrogates
    blob      u32 size | the bytes

All numbers are big-endian. The number of a request comes back with its answer; a watch has one as long as it lasts.
"""

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

FRAME_BYTES_MAX: Final = 1 << 30
"""An answer holds every key of the store at most."""
_HEAD: Final = struct.Struct(">IBI")
_BEHIND_SIZE: Final = 5
_U32: Final = struct.Struct(">I")
_U64: Final = struct.Struct(">Q")


class MalformedFrame(Exception):
    """What came is no frame, or its body is not what its kind says."""


class Frame(NamedTuple):
    """One message. `kind`: of messages.py."""

    kind: int
    number: int
    body: bytes


def encode_frame(kind: int, number: int, body: bytes = b"") -> bytes:
    return _HEAD.pack(_BEHIND_SIZE + len(body), kind, number) + body


class FrameSplitter:
    """Cuts what a socket brings into frames."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that are whole now. Raises MalformedFrame."""
        buffer = self._buffer
        buffer += data
        position = 0
        try:
            while len(buffer) - position >= _HEAD.size:
                size, kind, number = _HEAD.unpack_from(buffer, position)
                if not _BEHIND_SIZE <= size <= FRAME_BYTES_MAX:
                    raise MalformedFrame(f"a frame says that it has {size} bytes")
                end = position + _U32.size + size
                if end > len(buffer):
                    break
                body = bytes(buffer[position + _HEAD.size : end])
                position = end
                yield Frame(kind, number, body)
        finally:
            del buffer[:position]


class Packer:
    """Puts a body together."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def u8(self, value: int) -> "Packer":
        self._parts.append(bytes((value,)))
        return self

    def u32(self, value: int) -> "Packer":
        self._parts.append(_U32.pack(value))
        return self

    def u64(self, value: int) -> "Packer":
        self._parts.append(_U64.pack(value))
        return self

    def text(self, value: str) -> "Packer":
        return self.blob(value.encode(errors="surrogateescape"))

    def blob(self, value: bytes) -> "Packer":
        self._parts += (_U32.pack(len(value)), value)
        return self

    def body(self) -> bytes:
        return b"".join(self._parts)


class Unpacker:
    """Takes a body apart, in the order in which it was put together. Each method raises MalformedFrame."""

    __slots__ = ("_body", "_position")

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._position = 0

    def u8(self) -> int:
        return self._take(1)[0]

    def u32(self) -> int:
        return int(_U32.unpack(self._take(_U32.size))[0])

    def u64(self) -> int:
        return int(_U64.unpack(self._take(_U64.size))[0])

    def text(self) -> str:
        try:
            return self.blob().decode(errors="surrogateescape")
        except UnicodeDecodeError as error:
            raise MalformedFrame(f"a text is none: {error}") from None

    def blob(self) -> bytes:
        return self._take(self.u32())

    def end(self) -> None:
        """That nothing is left."""
        if self._position != len(self._body):
            raise MalformedFrame(f"{len(self._body) - self._position} bytes follow what its kind has")

    def _take(self, size: int) -> bytes:
        end = self._position + size
        if end > len(self._body):
            raise MalformedFrame(f"it ends after {len(self._body)} bytes, within what begins at {self._position}")
        taken = self._body[self._position : end]
        self._position = end
        return taken
