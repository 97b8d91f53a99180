r"""`ssl.principal.mapping.rules`: from the name in a certificate to the name that ACLs use (SslPrincipalMapper.java).
Pure.

    RULE:^CN=([^,]+),.*$/$1/L,DEFAULT

Rules are separated by commas, and the first one whose pattern matches the whole name counts; DEFAULT takes the name as
it is. `$1` stands for a group, and L or U behind the last slash changes the case of the result. What Kafka would refuse
when the first client comes, an unknown group for instance, is refused at the start.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from odradek.broker.tls.java_pattern import python_pattern
from odradek.broker.tls.tls_error import TlsError

OPTION: Final = "ssl.principal.mapping.rules"
DEFAULT: Final = "DEFAULT"
_RULE: Final = r"(DEFAULT)|RULE:((\\.|[^\\/])*)/((\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLITTER: Final = re.compile(rf"\s*({_RULE})\s*(,\s*|$)", re.ASCII)
_PARSER: Final = re.compile(_RULE, re.ASCII)
_BACK_REFERENCE: Final = re.compile(r"\$(\d+)", re.ASCII)
_NAMED: Final = re.compile(r"\{([a-zA-Z][a-zA-Z0-9]*)\}")

Replacement = list[str | int]
"""Literal texts, and numbers of groups."""


class _Rule(NamedTuple):
    pattern: re.Pattern[str] | None
    """None: DEFAULT."""
    replacement: Replacement
    case: str

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        return _CASES[self.case](_all_replaced(self.pattern, self.replacement, name))


def _all_replaced(pattern: re.Pattern[str], replacement: Replacement, text: str) -> str:
    """As String.replaceAll, which looks for the pattern again, wherever it is; behind a match of nothing, from the next
    character on. (Python looks there for more than nothing first.)"""
    parts: list[str] = []
    done = start = 0
    while start <= len(text) and (found := pattern.search(text, start)) is not None:
        parts.append(text[done : found.start()])
        parts += (part if isinstance(part, str) else found[part] or "" for part in replacement)
        done = found.end()
        start = done if done > found.start() else done + 1
    return "".join((*parts, text[done:]))


def _same(text: str) -> str:
    return text


_CASES: Final[dict[str, Callable[[str], str]]] = {"": _same, "L": str.lower, "U": str.upper}


class PrincipalMapping:
    """The rules of one listener."""

    def __init__(self, rules: str = DEFAULT) -> None:
        """Raises TlsError."""
        self._rules = [rule for text in _split(rules) if (rule := _rule(text)) is not None]

    def principal_name(self, distinguished_name: str) -> str | None:
        """The name of the principal; None where no rule matches, and the client is not let in."""
        for rule in self._rules:
            if (name := rule.apply(distinguished_name)) is not None:
                return name
        return None


def _split(rules: str) -> list[str]:
    return [found[1] for found in _SPLITTER.finditer(rules.strip())]


def _rule(text: str) -> _Rule | None:
    """None for an empty rule, which is passed over. Raises TlsError."""
    found = _PARSER.match(text)
    assert found is not None, "the last alternative matches nothing at all"
    if found.end() != len(text):
        raise TlsError(f"{OPTION}: the rule {text!r} is neither DEFAULT nor RULE:pattern/replacement/ with L or U")
    if found[1] is not None:
        return _Rule(None, [], "")
    if found[2] is None:
        return None
    try:
        pattern = python_pattern(found[2])
        replacement = _replacement(found[4], pattern)
    except ValueError as error:
        raise TlsError(f"{OPTION}: the rule {text!r} cannot be used: {error}") from None
    return _Rule(pattern, replacement, found[6])


def _replacement(text: str, pattern: re.Pattern[str]) -> Replacement:
    """What Matcher.appendReplacement makes of it. Raises ValueError where that would fail for each client."""
    text = _with_literal_references(text, pattern.groups)
    parts: Replacement = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character not in "\\$":
            parts.append(character)
            continue
        if position == len(text):
            raise ValueError(f"the replacement ends with {character}")
        if character == "\\":
            parts.append(text[position])
            position += 1
        else:
            group, position = _group(text, position, pattern)
            parts.append(group)
    return parts


def _group(text: str, position: int, pattern: re.Pattern[str]) -> tuple[int, int]:
    """The group that is meant behind a `$`, and where the text goes on. Raises ValueError."""
    if (named := _NAMED.match(text, position)) is not None:
        if named[1] not in pattern.groupindex:
            raise ValueError(f"there is no group named {named[1]}")
        return pattern.groupindex[named[1]], named.end()
    if not (text[position].isascii() and text[position].isdigit()):
        raise ValueError("a $ in the replacement is not followed by the number of a group; write \\$ for the character")
    group = int(text[position])
    if group > pattern.groups:
        raise ValueError(f"there is no group {group}")
    position += 1
    # A further digit counts as long as there is such a group.
    while position < len(text) and text[position].isdigit() and group * 10 + int(text[position]) <= pattern.groups:
        group = group * 10 + int(text[position])
        position += 1
    return group, position


def _with_literal_references(text: str, group_count: int) -> str:
    """A reference to a group that there is not is text, as SslPrincipalMapper.escapeLiteralBackReferences has it: it
    finds the places in the text as it was, so that a second such reference is not made literal, and is refused."""
    if group_count == 0:
        return text
    value = text
    for found in _BACK_REFERENCE.finditer(text):
        if found[1].startswith("0"):
            continue
        index = int(found[1])
        while index > group_count and index >= 10:
            index //= 10
        if index > group_count:
            start = found.start(1)
            value = f"{value[: start - 1]}\\{value[start - 1 :]}"
    return value
