"""What keys and values of coordinators' records have in common, whoever coordinates.

key      int16 type of the record      then the fields of the key
value    int16 version of the value    then its fields at this version
"""

from struct import Struct
from typing import Final, Generic, TypeVar

from odradek.protocol.codec.schema import Buffer, Message
from odradek.protocol.errors import MalformedMessage

KEY_VERSION: Final = 0
"""The version of every key's schema: a key in another form would be another key, so another type (KIP-915)."""

_PREFIX: Final = Struct(">h")
PREFIX_SIZE: Final = _PREFIX.size

V = TypeVar("V", bound=Message)


class RecordKey(Message, Generic[V]):
    """The key of a record whose value is a `V`. Both have the record's type as `api_key`, as in Kafka's schemas."""

    __slots__ = ()


def prefixed(number: int, fields: bytes) -> bytes:
    """A key of this type, or a value of this version."""
    return _PREFIX.pack(number) + fields


def read_type(key: Buffer) -> int:
    """Raises MalformedMessage."""
    return _read(key, "key")


def read_version(value: Buffer) -> int:
    """Raises MalformedMessage."""
    return _read(value, "value")


def _read(data: Buffer, what: str) -> int:
    if len(data) < PREFIX_SIZE:
        raise MalformedMessage(f"the {what} of a record has {len(data)} bytes")
    number: int = _PREFIX.unpack_from(data)[0]
    return number
