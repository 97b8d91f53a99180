"""The wire format of etcd's messages, protobuf's: as much of it as they use. Pure.

A message is a row of fields, in any order: a tag (field number × 8 + kind), then the value.

    kind 0   a number: seven bits a byte, the lowest first; negative ones as their 64 bits
    kind 2   a size, then so many bytes: text, bytes, or another message
    kind 1   eight bytes, kind 5 four bytes: skipped, etcd's messages have none

A number that is 0, and bytes that are empty, are left out and come back as such (proto3), except where the presence of
a field says something: `present` and `message` write it always. Fields that we do not know are skipped, so newer
versions of etcd may add some.
"""

from odradek.broker.cluster.store import Unknown

_CONTINUED = 0x80
_NUMBER, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
_BITS_MAX = 64


class MalformedMessage(Unknown):
    """These bytes are no message; an answer of which that is true says nothing."""


def varint(value: int) -> bytes:
    """A number of up to 64 bits."""
    value &= (1 << _BITS_MAX) - 1
    out = bytearray()
    while value >= _CONTINUED:
        out.append(value & 0x7F | _CONTINUED)
        value >>= 7
    out.append(value)
    return bytes(out)


def present(number: int, value: int) -> bytes:
    """A number, 0 too."""
    return varint(number << 3 | _NUMBER) + varint(value)


def integer(number: int, value: int) -> bytes:
    return present(number, value) if value else b""


def message(number: int, body: bytes) -> bytes:
    """A message inside another one, an empty one too."""
    return varint(number << 3 | _BYTES) + varint(len(body)) + body


def blob(number: int, value: bytes) -> bytes:
    return message(number, value) if value else b""


class Fields:
    """The fields of one message, by number. What is absent reads as 0 or as empty."""

    __slots__ = ("_blobs", "_integers")

    def __init__(self, data: bytes) -> None:
        """Raises MalformedMessage."""
        self._integers: dict[int, int] = {}
        self._blobs: dict[int, list[bytes]] = {}
        position, end = 0, len(data)
        while position < end:
            tag, position = _read_varint(data, position)
            kind = tag & 7
            if kind == _NUMBER:
                self._integers[tag >> 3], position = _read_varint(data, position)
            elif kind == _BYTES:
                size, position = _read_varint(data, position)
                self._blobs.setdefault(tag >> 3, []).append(data[position : position + size])
                position += size
            elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
                position += 8 if kind == _EIGHT_BYTES else 4
            else:
                raise MalformedMessage(f"a field of kind {kind}")
        if position > end:
            raise MalformedMessage(f"it ends {position - end} bytes too early")

    def integer(self, number: int) -> int:
        """The number of 64 bits with its sign."""
        value = self._integers.get(number, 0)
        return value - (1 << _BITS_MAX) if value >> (_BITS_MAX - 1) else value

    def flag(self, number: int) -> bool:
        return self._integers.get(number, 0) != 0

    def blob(self, number: int) -> bytes:
        """The last one, where there are several."""
        found = self._blobs.get(number)
        return found[-1] if found else b""

    def text(self, number: int) -> str:
        return self.blob(number).decode(errors="replace")

    def blobs(self, number: int) -> list[bytes]:
        return self._blobs.get(number, [])

    def fields(self, number: int) -> "Fields":
        """The message inside. Raises MalformedMessage."""
        return Fields(self.blob(number))


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    try:
        byte = data[position]
        if byte < _CONTINUED:
            return byte, position + 1
        value, shift = byte & 0x7F, 7
        while shift < _BITS_MAX:
            position += 1
            byte = data[position]
            value |= (byte & 0x7F) << shift
            if byte < _CONTINUED:
                return value & ((1 << _BITS_MAX) - 1), position + 1
            shift += 7
    except IndexError:
        raise MalformedMessage("it ends within a number") from None
    raise MalformedMessage("a number of more than ten bytes")
