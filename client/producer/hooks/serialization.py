"""Serializers for keys and values, and the way of anything a caller hands over into bytes.

A serializer is any callable `(topic, value) -> bytes | None`; None stands for no key, or for a tombstone. Those here
write what Kafka's own serializers of the same types write, so that its deserializers read it:

    serialize_str      UTF-8                              StringSerializer
    serialize_bytes    bytes-like objects as they are     ByteArraySerializer, ByteBufferSerializer
    serialize_int      int32, big-endian                  IntegerSerializer
    serialize_long     int64, big-endian                  LongSerializer
    serialize_double   IEEE 754 double, big-endian        DoubleSerializer
    serialize_json     compact JSON in UTF-8              (Kafka Connect's JsonSerializer)

None passes through each of them. Whatever goes wrong on the way into bytes is a SerializationError that names topic,
setting and serializer, and fails this record only.
"""

import json
from collections.abc import Callable
from struct import Struct
from struct import error as StructError
from typing import Any, Final, cast

from odradek.client.errors.client_errors import SerializationError
from odradek.client.producer.record import RecordHeaders
from odradek.protocol.batches.records import HEADERS_MAX, Headers
from odradek.protocol.primitives import Buffer

__all__ = [
    "Serializer",
    "encoded_headers",
    "require_bytes",
    "serialize_bytes",
    "serialize_double",
    "serialize_int",
    "serialize_json",
    "serialize_long",
    "serialize_str",
    "serialized",
]

Serializer = Callable[[str, Any], Buffer | None]
"""Takes the topic and a key or value. A method of an object will do, when there is something to configure."""

_INT32: Final = Struct(">i")
_INT64: Final = Struct(">q")
_DOUBLE: Final = Struct(">d")


# -------------------------------------------------------------------------------------------------------- serializers
def serialize_str(topic: str, value: str | None) -> bytes | None:
    """UTF-8. Raises UnicodeEncodeError for half of a surrogate pair."""
    return None if value is None else str.encode(value)


def serialize_bytes(topic: str, value: bytes | bytearray | memoryview | None) -> bytes | None:
    """A copy of what is not bytes already, so that a buffer may be used again at once."""
    return None if value is None else _bytes(value)


def serialize_int(topic: str, value: int | None) -> bytes | None:
    """From -2³¹ to 2³¹-1."""
    return None if value is None else _packed(_INT32, value, "an integer from -2147483648 to 2147483647")


def serialize_long(topic: str, value: int | None) -> bytes | None:
    """From -2⁶³ to 2⁶³-1."""
    return None if value is None else _packed(_INT64, value, "an integer that fits into 64 bits")


def serialize_double(topic: str, value: float | None) -> bytes | None:
    return None if value is None else _packed(_DOUBLE, value, "a number")


def serialize_json(topic: str, value: Any) -> bytes | None:
    """Whatever `json` writes, without NaN and infinities, which are no JSON."""
    if value is None:
        return None
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _packed(struct: Struct, value: float, wanted: str) -> bytes:
    try:
        return struct.pack(value)
    except StructError:
        raise ValueError(f"{value!r} is not {wanted}") from None


# ------------------------------------------------------------------------------------------------ from a call to bytes
def serialized(serializer: Serializer, setting: str, topic: str, value: Any) -> bytes | None:
    """What the serializer makes of a key or value. `setting`: "key_serializer" or "value_serializer"."""
    try:
        result = serializer(topic, value)
    except Exception as error:
        raise SerializationError(
            topic, setting, value, f"{type(error).__name__}: {error}", _name(serializer)
        ) from error
    if result is None or type(result) is bytes:
        return result
    try:
        return _bytes(result)
    except TypeError:
        why = f"it returned a {type(result).__name__}, where bytes or None are wanted"
        raise SerializationError(topic, setting, value, why, _name(serializer)) from None


def require_bytes(topic: str, part: str, value: object) -> bytes:
    """The bytes of a key or value for which no serializer is set. `part`: "key" or "value"."""
    try:
        return _bytes(value)
    except TypeError:
        why = "it is not bytes, and no serializer is set"
        raise SerializationError(topic, f"{part}_serializer", value, why) from None


def encoded_headers(topic: str, headers: RecordHeaders) -> Headers:
    """Headers as batches hold them: pairs of a name and bytes or None."""
    encoded: list[tuple[str, bytes | None]] = []
    try:
        for name, value in headers:
            str.encode(name)  # half of a surrogate pair is a name for Python, and none for Kafka
            encoded.append((name, None if value is None else _bytes(value)))
    except (TypeError, ValueError) as error:
        why = "headers are pairs of a name (str) and a value (bytes or None)"
        raise SerializationError(topic, "headers", headers, why) from error
    if len(encoded) > HEADERS_MAX:
        why = f"there are {len(encoded)} of them, where a record has {HEADERS_MAX} at most"
        refusal = SerializationError(topic, "headers", headers, why)
        refusal.hint = "Put fewer headers on one record."
        raise refusal
    return tuple(encoded)


def _bytes(value: object) -> bytes:
    """A copy of what is not bytes already: a buffer may be used again at once. Raises TypeError."""
    return value if type(value) is bytes else memoryview(cast(bytes, value)).tobytes()


def _name(serializer: object) -> str:
    """Of a function its own, of any other object that of its class."""
    return str(getattr(serializer, "__qualname__", None) or type(serializer).__qualname__)
