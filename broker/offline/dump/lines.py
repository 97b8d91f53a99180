"""What is printed: lines of named values, as text for people and `grep`, or as JSON.

    batch base_offset=0 last_offset=2 position=0 size_bytes=97 …
    {"file": "…", "kind": "batch", "base_offset": 0, "last_offset": 2, "position": 0, "size_bytes": 97, …}

Names are the same in both. Bytes are printed as text where they are UTF-8 that can be seen; otherwise in hexadecimal
digits, and in JSON as base64 under `<name>_base64`, as `odradek consume --json` does.
"""

import json
from base64 import b64encode
from collections.abc import Mapping
from typing import NamedTuple

from odradek.protocol.batches.records import Headers

Value = str | int | bool | bytes | Headers | None

_BLANKS = "\t\n\r"


class Line(NamedTuple):
    """A thing that stands in a file, and its fields."""

    kind: str
    fields: Mapping[str, Value]


def text_of(line: Line) -> str:
    """The line for people."""
    return " ".join([line.kind, *(f"{name}={_text(value)}" for name, value in line.fields.items())])


def json_of(line: Line, path: str) -> str:
    """The line as a JSON object; `path` is the file's."""
    found: dict[str, object] = {"file": printable_path(path), "kind": line.kind}
    for name, value in line.fields.items():
        _put(found, name, value)
    return json.dumps(found, ensure_ascii=False)


def printable_path(path: str) -> str:
    """The path without the surrogates that stand for bytes which are no UTF-8."""
    return path.encode(errors="surrogateescape").decode(errors="replace")


def _text(value: Value) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case str():
            return value if value.isprintable() and value and " " not in value and '"' not in value else _quoted(value)
        case bytes():
            text = _visible(value)
            return f"0x{value.hex()}" if text is None else _quoted(text)
        case _:
            return f"[{', '.join(f'{_quoted(name)}: {_text(content)}' for name, content in value)}]"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _visible(data: bytes) -> str | None:
    """The bytes as text; None where they are none that can be seen."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if all(character.isprintable() or character in _BLANKS for character in text) else None


def _put(found: dict[str, object], name: str, value: Value) -> None:
    match value:
        case None | bool() | int():
            found[name] = value
        case str():
            found[name] = printable_path(value)
        case bytes():
            text = _visible(value)
            if text is None:
                found[f"{name}_base64"] = b64encode(value).decode()
            else:
                found[name] = text
        case _:
            headers: list[dict[str, object]] = []
            for header_name, content in value:
                header: dict[str, object] = {"name": header_name}
                _put(header, "value", content)
                headers.append(header)
            found[name] = headers
