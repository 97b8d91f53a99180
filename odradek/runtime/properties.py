"""Java's properties syntax, in which the settings of Kafka's brokers and clients are kept. Pure.

`name=value`, `name: value` or `name value` a line; `#` or `!` begins a comment line; a backslash at the end continues
the line, leading white space of the next one left out; elsewhere it escapes: `\\t \\n \\r \\f \\uXXXX`, or the
character behind it. A name that stands twice has the last value (java.util.Properties).
"""

import re
from collections.abc import Iterator
from typing import Final

__all__ = ["parse_properties"]

_SPACE: Final = " \t\f"
_PAIR: Final = re.compile(r"((?:[^\\=: \t\f]|\\.)*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_CONTROL: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties(text: str) -> dict[str, str]:
    """Names and values in the order of the lines. Raises ValueError with the line's number."""
    properties: dict[str, str] = {}
    for number, line in _logical_lines(text):
        match = _PAIR.fullmatch(line)
        assert match is not None, "the pattern fits every line"
        try:
            name, value = (_whole(_ESCAPE.sub(_unescaped, part)) for part in match.groups())
        except ValueError as why:
            raise ValueError(f"line {number}: {why}") from None
        properties[name] = value
    return properties


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their continuations, numbered by their first, without comments and blank lines."""
    parts: list[str] = []
    first = 0
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        rest = line.lstrip(_SPACE)
        if not parts:
            if not rest or rest[0] in "#!":
                continue
            first = number
        continues = (len(rest) - len(rest.rstrip("\\"))) % 2 == 1
        parts.append(rest[:-1] if continues else rest)
        if not continues:
            yield first, "".join(parts)
            parts.clear()
    if parts:
        yield first, "".join(parts)


def _whole(text: str) -> str:
    """Two escapes may be the halves of one character, as in Java. Raises ValueError for a half alone."""
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ValueError("it has half of a character: \\uD800 to \\uDBFF wants \\uDC00 to \\uDFFF behind it") from None


def _unescaped(match: re.Match[str]) -> str:
    escaped = match[1]
    if escaped == "u":
        raise ValueError("\\u wants four hexadecimal digits behind it")
    return chr(int(escaped[1:], 16)) if len(escaped) == 5 else _CONTROL.get(escaped, escaped)
