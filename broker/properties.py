"""Java's properties syntax, which Kafka's configuration files use. Pure.

`name=value`, `name: value` or `name value` a line; `#` or `!` begins a comment line; a backslash at the end continues
the line, leading white space of the next one left out; elsewhere it escapes: `\\t \\n \\r \\f \\uXXXX`, or the
character behind it. A name that stands twice has the last value (java.util.Properties).
"""

import re
from collections.abc import Iterator

from broker.option import ConfigError

_SPACE = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_HEX = re.compile(r"[0-9A-Fa-f]{4}")
_NAME_END = re.compile(r"(?<!\\)(?:\\\\)*[=: \t\f]")


def parse_properties(text: str, source: str = "the configuration file") -> dict[str, str]:
    """Names and values in order of the lines. Raises ConfigError with the line's number."""
    properties: dict[str, str] = {}
    for number, line in _logical_lines(text):
        name, value = _split(line)
        try:
            properties[_unescape(name)] = _unescape(value)
        except ValueError as error:
            raise ConfigError(f"{source}, line {number}: {error}") from None
    return properties


def parse_assignment(text: str) -> tuple[str, str]:
    """`name=value` of a command line. Raises ConfigError."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ConfigError(f"{text!r} is not of the form name=value")
    return name.strip(), value.strip()


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their continuations, numbered by their first; without comments and blank lines."""
    parts: list[str] = []
    first = 0
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        stripped = line.lstrip(_SPACE)
        if not parts:
            if not stripped or stripped[0] in "#!":
                continue
            first = number
        continues = (len(stripped) - len(stripped.rstrip("\\"))) % 2 == 1
        parts.append(stripped[:-1] if continues else stripped)
        if not continues:
            yield first, "".join(parts)
            parts.clear()
    if parts:
        yield first, "".join(parts)


def _split(line: str) -> tuple[str, str]:
    match = _NAME_END.search(line)
    if match is None:
        return line, ""
    end = match.end() - 1
    rest = line[end:].lstrip(_SPACE)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_SPACE)
    return line[:end], rest


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    pieces: list[str] = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character != "\\":
            pieces.append(character)
            continue
        escaped = text[position : position + 1]
        position += 1
        if escaped == "u":
            digits = text[position : position + 4]
            if not _HEX.fullmatch(digits):
                raise ValueError(f"\\u{digits} is not \\u and four hexadecimal digits")
            pieces.append(chr(int(digits, 16)))
            position += 4
        else:
            pieces.append(_ESCAPES.get(escaped, escaped))
    return "".join(pieces)
