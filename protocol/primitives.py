"""The primitive types of the wire, as annotations, and the numbers of variable length.

An annotation such as `i32` is `int` for the type checkers and carries a `Fixed` for the codec. All fixed numbers are
big-endian. Beside them stand Kafka's variable-length numbers, seven bits a byte, least significant first, the high
bit meaning "more follows":

    unsigned varint   at most 5 bytes    lengths and tags of flexible versions (KIP-482)
    varint, varlong   at most 5, 10      zigzag-coded, inside record batches (KIP-98)
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Annotated, Final, NamedTuple

from odradek.protocol.errors import MalformedMessage

Buffer = bytes | bytearray | memoryview


class Fixed(NamedTuple):
    """A value of fixed size: its `struct` format, without byte order, and its size in bytes."""

    format: str
    size_bytes: int


class RecordsMark(NamedTuple):
    """Marks the annotation of a field that holds record batches, which are passed on and never copied."""


i8 = Annotated[int, Fixed("b", 1)]
i16 = Annotated[int, Fixed("h", 2)]
i32 = Annotated[int, Fixed("i", 4)]
i64 = Annotated[int, Fixed("q", 8)]
u16 = Annotated[int, Fixed("H", 2)]
u32 = Annotated[int, Fixed("I", 4)]
f64 = Annotated[float, Fixed("d", 8)]
uuid = Annotated[bytes, Fixed("16s", 16)]
Records = Annotated[Buffer | None, RecordsMark()]

BOOL: Final = Fixed("?", 1)
ZERO_UUID: Final = bytes(16)


def uuid_text(value: bytes) -> str:
    """The form in which Kafka shows an id: url-safe base64 without padding, 22 characters (Uuid.java)."""
    if len(value) != 16:
        raise ValueError(f"an id has 16 bytes, not {len(value)}")
    return urlsafe_b64encode(value)[:22].decode("ascii")


def uuid_from_text(text: str) -> bytes:
    """The inverse of `uuid_text`. Raises ValueError for anything that `uuid_text` would not have written."""
    try:
        value = urlsafe_b64decode(text.encode("ascii") + b"==")
    except ValueError as why:
        raise ValueError(f"not an id: {text!r}") from why
    if len(value) != 16 or uuid_text(value) != text:
        raise ValueError(f"not an id: {text!r}")
    return value


# Nearly every length, count and tag takes one byte: it is looked up.
SMALL_UNSIGNED_VARINTS: Final = tuple(bytes((value,)) for value in range(128))


def unsigned_varint(value: int) -> bytes:
    """The bytes of a number from 0 to 2**32 - 1. Raises ValueError outside of that range."""
    if 0 <= value < 128:
        return SMALL_UNSIGNED_VARINTS[value]
    if not 0 <= value < 1 << 32:
        raise ValueError(f"{value} is no unsigned varint")
    return _sevens(value)


def varint(value: int) -> bytes:
    """The zigzag bytes of a signed number of 32 bits. Raises ValueError outside of that range."""
    if not -(1 << 31) <= value < 1 << 31:
        raise ValueError(f"{value} is no varint")
    return _sevens((value << 1) ^ (value >> 31))


def varlong(value: int) -> bytes:
    """The zigzag bytes of a signed number of 64 bits. Raises ValueError outside of that range."""
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"{value} is no varlong")
    return _sevens((value << 1) ^ (value >> 63))


def _sevens(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_unsigned_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """The number at `position` and the position after it.

    Raises MalformedMessage beyond 5 bytes or 32 bits, IndexError where the buffer ends first.
    """
    value = buffer[position]
    position += 1
    if value < 128:
        return value, position
    return rest_of_unsigned_varint(buffer, position, value)


def rest_of_unsigned_varint(buffer: Buffer, position: int, first: int) -> tuple[int, int]:
    """The same, once the first byte, 128 or more, has been read: `position` is that of the second byte."""
    value = first & 127
    for shift in (7, 14, 21, 28):
        byte = buffer[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value >= 1 << 32:
                break
            return value, position
    raise MalformedMessage("an unsigned varint of more than 32 bits")


def read_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """A zigzag number of 32 bits and the position after it. Errors as in `read_unsigned_varint`."""
    value, position = read_unsigned_varint(buffer, position)
    return (value >> 1) ^ -(value & 1), position


def read_varlong(buffer: Buffer, position: int) -> tuple[int, int]:
    """A zigzag number of 64 bits and the position after it.

    Raises MalformedMessage beyond 10 bytes or 64 bits, IndexError where the buffer ends first.
    """
    value = 0
    for shift in range(0, 70, 7):
        byte = buffer[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value >= 1 << 64:
                break
            return (value >> 1) ^ -(value & 1), position
    raise MalformedMessage("a varlong of more than 64 bits")


def skip_tags(buffer: Buffer, position: int, size_bytes: int) -> int:
    """The position after a tag section, none of whose fields is known here; they are left out (KIP-482).

    Raises MalformedMessage for a field that ends beyond `size_bytes`, the end of the message; IndexError as above.
    """
    count, position = read_unsigned_varint(buffer, position)
    for _ in range(count):  # every turn consumes two bytes or raises, so a huge count ends with the buffer
        _tag, position = read_unsigned_varint(buffer, position)
        length, position = read_unsigned_varint(buffer, position)
        position += length
        if position > size_bytes:
            raise MalformedMessage("a tagged field that ends beyond the message")
    return position
