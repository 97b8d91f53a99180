"""A message in words, for a log: plain values under Kafka's names, without anything that is secret or long.

    contents(request, 9, shows=lambda struct: False)
    {"transactionalId": None, "acks": -1, "timeoutMs": 30000, "topicData": [{"name": "orders", …}]}

Bytes and records are told by their sizes: they may hold passwords, keys and other people's data. A field that is
declared `is_sensitive` is hidden, unless `shows` says of the struct that holds it that it is none.
"""

from collections.abc import Callable
from typing import Any, Final

from odradek.protocol.codec.layout import Array, Blob, Kind, Layout, Nested, layout_of_message
from odradek.protocol.codec.schema import Message, Struct, uuid_text
from odradek.protocol.primitives import Fixed, RecordsMark

HIDDEN: Final = "[hidden]"
UUID_FORMAT: Final = "16s"

Shows = Callable[[Struct], bool]
"""Whether the sensitive fields of this struct may be shown."""

_LAYOUTS: Final[dict[tuple[type[Message], int], Layout]] = {}
"""Of what has been told: to read a declaration takes its time."""


def contents(message: Message, version: int, shows: Shows) -> dict[str, Any]:
    """What this version carries of the message; it can be written as JSON. Raises ValueError for a version that is not
    declared."""
    key = type(message), version
    if (layout := _LAYOUTS.get(key)) is None:
        layout = _LAYOUTS[key] = layout_of_message(*key)
    return _struct(message, layout, shows)


def _struct(struct: Struct, layout: Layout, shows: Shows) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for slot in layout.slots:
        if slot.is_carried:
            value = getattr(struct, slot.name)
            if slot.declared.is_sensitive and value is not None and not shows(struct):
                told[_kafka_name(slot.name)] = HIDDEN
            else:
                told[_kafka_name(slot.name)] = _value(value, slot.kind, shows)
    return told


def _value(value: Any, kind: Kind, shows: Shows) -> Any:
    if value is None:
        return None
    match kind:
        case Array():
            return [_value(element, kind.element, shows) for element in value]
        case Nested():
            return _struct(value, kind.layout, shows)
        case Blob() | RecordsMark():
            return f"{len(value)} bytes"
        case Fixed(format=format_) if format_ == UUID_FORMAT:
            return uuid_text(value)
        case _:
            return value


def _kafka_name(name: str) -> str:
    """`topic_data` -> `topicData`."""
    first, *others = name.split("_")
    return first + "".join(part.capitalize() for part in others)
