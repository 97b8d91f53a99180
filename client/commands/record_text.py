"""Records as text: what `consume` prints and `produce` reads. Pure.

As lines, a record is its value, behind its key and a separator where one is given. As JSON, it is an object:

    {"topic": "orders", "partition": 0, "offset": 7, "timestamp_ms": 1700000000000,
     "key": "k", "value": "two coffees", "headers": [{"name": "h", "value": "1"}]}

Bytes that are no UTF-8 stand as base64 under another name: `key_base64`, `value_base64`. No key or value is null.
`produce --json` reads what `consume --json` prints, and leaves topic, partition and offset to the new topic.
"""

import json
import reprlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Final, NamedTuple, TypeGuard, cast

from odradek.protocol.batches.records import Headers, Record

__all__ = ["RecordToSend", "json_of", "line_of", "record_of_json", "record_of_line"]

KNOWN: Final = frozenset(
    ("topic", "partition", "offset", "timestamp_ms", "key", "key_base64", "value", "value_base64", "headers")
)
INT64_MAX: Final = (1 << 63) - 1


class RecordToSend(NamedTuple):
    """What a line of the input says."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp_ms: int | None = None


# ----------------------------------------------------------------------------------------------------------- writing
def json_of(topic: str, partition: int, record: Record) -> bytes:
    """The record as one line of JSON."""
    found: dict[str, object] = {
        "topic": topic,
        "partition": partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms if record.timestamp_ms >= 0 else None,
    }
    _put(found, "key", record.key)
    _put(found, "value", record.value)
    headers: list[dict[str, object]] = []
    for name, value in record.headers:
        header: dict[str, object] = {"name": name}
        _put(header, "value", value)
        headers.append(header)
    found["headers"] = headers
    return json.dumps(found, ensure_ascii=False).encode(errors="surrogatepass") + b"\n"


def _put(found: dict[str, object], name: str, content: bytes | None) -> None:
    try:
        found[name] = None if content is None else content.decode()
    except UnicodeDecodeError:
        found[f"{name}_base64"] = b64encode(cast(bytes, content)).decode()


def line_of(record: Record, key_separator: bytes | None) -> bytes:
    """The record as a line: its value, behind its key where there is a separator. Nothing stands for no value."""
    value = record.value or b""
    return b"%s\n" % value if key_separator is None else b"%s%s%s\n" % (record.key or b"", key_separator, value)


# ----------------------------------------------------------------------------------------------------------- reading
def record_of_line(line: bytes, key_separator: bytes | None, null_marker: bytes | None) -> RecordToSend:
    """Raises ValueError where the separator is missing."""
    key: bytes | None = None
    value: bytes | None = line
    if key_separator is not None:
        key, found, value = line.partition(key_separator)
        if not found:
            raise ValueError(f"there is no key separator {key_separator.decode(errors='replace')!r} in it")
    return RecordToSend(None if key == null_marker else key, None if value == null_marker else value)


def record_of_json(line: bytes) -> RecordToSend:
    """Raises ValueError for anything that `json_of` would not have written, but for what is left out."""
    try:
        found: object = json.loads(line)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("it is no JSON object")
    fields = cast("dict[str, object]", found)
    if unknown := sorted(fields.keys() - KNOWN):
        raise ValueError(f"{_shown(unknown[0])} is none of {', '.join(sorted(KNOWN))}")
    timestamp = fields.get("timestamp_ms")
    if not _is_timestamp(timestamp):
        raise ValueError(f"timestamp_ms is {_shown(timestamp)}, not a number of milliseconds")
    return RecordToSend(_content(fields, "key"), _content(fields, "value"), _headers(fields.get("headers")), timestamp)


def _shown(value: object) -> str:
    """What a line says, for a sentence: neither long nor deep."""
    return reprlib.repr(value)


def _is_timestamp(found: object) -> TypeGuard[int | None]:
    return found is None or (isinstance(found, int) and not isinstance(found, bool) and 0 <= found <= INT64_MAX)


def _content(fields: Mapping[str, object], name: str) -> bytes | None:
    text, encoded = fields.get(name), fields.get(f"{name}_base64")
    if text is not None and encoded is not None:
        raise ValueError(f"{name} and {name}_base64 exclude each other")
    if not isinstance(text, str | None) or not isinstance(encoded, str | None):
        raise ValueError(f"{name} is no text")
    if encoded is not None:
        return b64decode(encoded, validate=True)
    return None if text is None else text.encode()


def _headers(found: object) -> Headers:
    if found is None:
        return ()
    if not isinstance(found, list):
        raise ValueError("headers is no list")
    headers: list[tuple[str, bytes | None]] = []
    for each in cast("list[object]", found):
        header = cast("dict[str, object]", each) if isinstance(each, dict) else {}
        name = header.get("name")
        if not isinstance(name, str):
            raise ValueError("a header is an object with a name and a value")
        headers.append((name, _content(header, "value")))
    return tuple(headers)
