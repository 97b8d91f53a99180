"""The values of the metadata store: JSON objects with the version of their format, and what reads them. Pure.

A value has "v", the version of its format: 1 so far. A newer one is refused (`MalformedMetadata`), never guessed. A
later format may add fields without a new version when leaving them out means what it always meant.
"""

import json
from typing import Any, cast

from odradek.protocol.codec.schema import uuid_from_text

FORMAT_VERSION = 1


class MalformedMetadata(Exception):
    """A key or value of the metadata store that this version can not read."""


def encode(fields: dict[str, Any]) -> bytes:
    return json.dumps({"v": FORMAT_VERSION, **fields}, separators=(",", ":"), ensure_ascii=False).encode()


class Fields:
    """A decoded JSON object, asked for its fields by type."""

    __slots__ = ("_fields", "_what")

    def __init__(self, value: bytes, what: str) -> None:
        self._what = what
        try:
            decoded: object = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise MalformedMetadata(f"the metadata of {what} is no JSON: {error}") from None
        if not isinstance(decoded, dict):
            raise MalformedMetadata(f"the metadata of {what} is no JSON object")
        self._fields = cast("dict[str, object]", decoded)
        version = self.number("v")
        if version > FORMAT_VERSION:
            raise MalformedMetadata(
                f"the metadata of {what} has format version {version}, written by a newer Odradek; "
                f"this one reads up to {FORMAT_VERSION}"
            )

    def wrong(self, name: str) -> MalformedMetadata:
        return MalformedMetadata(f"the metadata of {self._what} has no usable field {name!r}")

    def get(self, name: str) -> object:
        return self._fields.get(name)

    def number(self, name: str, default: int | None = None) -> int:
        value = self._fields.get(name, default)
        # bool is an int in Python, and no number in JSON
        if type(value) is not int:
            raise self.wrong(name)
        return value

    def numbers(self, name: str, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        value = self._fields.get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, list):
            raise self.wrong(name)
        items = cast("list[object]", value)
        numbers = tuple(item for item in items if type(item) is int)
        if len(numbers) != len(items):
            raise self.wrong(name)
        return numbers

    def text(self, name: str) -> str:
        value = self._fields.get(name)
        if not isinstance(value, str):
            raise self.wrong(name)
        return value

    def uuid(self, name: str) -> bytes:
        try:
            return uuid_from_text(self.text(name))
        except ValueError:
            raise self.wrong(name) from None

    def items(self, name: str) -> list[object]:
        value = self._fields.get(name)
        if not isinstance(value, list):
            raise self.wrong(name)
        return cast("list[object]", value)

    def uuids(self, name: str) -> tuple[bytes, ...]:
        try:
            return tuple(uuid_from_text(str(text)) for text in self.items(name))
        except ValueError:
            raise self.wrong(name) from None

    def mapping(self, name: str) -> dict[str, object]:
        value = self._fields.get(name)
        if not isinstance(value, dict):
            raise self.wrong(name)
        return cast("dict[str, object]", value)

    def levels(self, name: str) -> dict[str, int]:
        """Numbers by name; none where the field is missing."""
        if self.get(name) is None:
            return {}
        levels: dict[str, int] = {}
        for key, level in self.mapping(name).items():
            if type(level) is not int:
                raise self.wrong(name)
            levels[key] = level
        return levels

    def endpoints(self) -> dict[str, tuple[str, int]]:
        """Listener name -> host and port."""
        endpoints: dict[str, tuple[str, int]] = {}
        for name, address in self.mapping("endpoints").items():
            match address:
                case [str(host), int(port)]:
                    endpoints[name] = host, port
                case _:
                    raise self.wrong("endpoints")
        return endpoints
