"""How tests write the records that they produce, and how records are shown to people. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from odradek.client.consumer.records import ConsumerRecord


Value = bytes | str | None
RecordShape = Value | tuple[Value, Value] | Mapping[str, Any]
"""A value; a key and a value; or the arguments of `Producer.send` by name: value, key, partition, headers,
timestamp_ms. Text goes out in UTF-8."""

FIELDS: Final = frozenset({"value", "key", "partition", "headers", "timestamp_ms"})
SHOWN_BYTES_MAX: Final = 60
SHOWN_RECORDS_MAX: Final = 20


def send_arguments(record: RecordShape, now_ms: int) -> dict[str, Any]:
    """What `Producer.send` is given, besides the topic. `now_ms`: the timestamp of a record that has none. Raises
    TypeError."""
    if isinstance(record, Mapping):
        if unknown := record.keys() - FIELDS:
            raise TypeError(f"a record has no {', '.join(sorted(map(repr, unknown)))}; it has {sorted(FIELDS)}")
        given = {name: _encoded(value) if name in ("value", "key") else value for name, value in record.items()}
        return {"timestamp_ms": now_ms, **given}
    if not isinstance(record, tuple):
        return {"timestamp_ms": now_ms, "value": _encoded(record)}
    if len(record) != 2:
        raise TypeError(f"a tuple is a key and a value, and this one has {len(record)} items: {record!r}")
    key, value = record
    return {"timestamp_ms": now_ms, "key": _encoded(key), "value": _encoded(value)}


def _encoded(value: Any) -> bytes | None:
    if isinstance(value, str):
        return value.encode()
    if value is None or isinstance(value, bytes):
        return value
    raise TypeError(f"keys and values of records are bytes, str or None, not {type(value).__name__}: {value!r}")


def shown(records: "Sequence[ConsumerRecord]") -> str:
    """A line a record, the last ones of many."""
    lines = [shown_record(record) for record in records[-SHOWN_RECORDS_MAX:]]
    if (left_out := len(records) - len(lines)) > 0:
        lines.insert(0, f"  … {left_out} before")
    return "\n".join(lines) if lines else "  none"


def shown_record(record: "ConsumerRecord") -> str:
    parts = [f"  {record.topic}-{record.partition}@{record.offset}"]
    if record.key is not None:
        parts.append(f"key={_short(record.key)}")
    parts.append(f"value={_short(record.value)}")
    if record.headers:
        parts.append(f"headers={_named(record.headers)}")
    return " ".join(parts)


def _short(data: bytes | None) -> str:
    text = repr(data)
    return text if len(text) <= SHOWN_BYTES_MAX else f"{text[:SHOWN_BYTES_MAX]}… ({len(data or b'')} bytes)"


def _named(headers: Iterable[tuple[str, bytes | None]]) -> str:
    return "{" + ", ".join(f"{name}: {_short(value)}" for name, value in headers) + "}"
