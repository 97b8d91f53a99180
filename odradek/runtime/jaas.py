"""A login module in Java's notation, as `sasl.jaas.config` has it: of clients, and of brokers' listeners. Pure.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="billing" password="secret";

The rules are those of `JaasConfig.java`, by way of Java's `StreamTokenizer`: values in quotes have backslash escapes,
comments are passed over, one module ends with a semicolon. A name of an option may hold more characters here than
there (`user_b@x`), where Java would end it. What is wrong is said without quoting the text: it holds passwords.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

__all__ = ["JaasEntry", "MalformedJaas", "parse_jaas"]

_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_TOKEN: Final = re.compile(
    r"""
    (?P<blank>\s+ | /\*.*?\*/ | //[^\r\n]*)
    | "(?P<double>(?:[^"\\\r\n]|\\.)*)"
    | '(?P<single>(?:[^'\\\r\n]|\\.)*)'
    | (?P<sign>[=;])
    | (?P<word>[^\s"'=;/]+)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)


class MalformedJaas(ValueError):
    """The text is no login module; the words quote nothing of it."""


class JaasEntry(NamedTuple):
    """A login module and its options."""

    module: str
    options: Mapping[str, str]

    def __repr__(self) -> str:
        return f"JaasEntry(module={self.module!r}, options=[hidden])"


class _Token(NamedTuple):
    text: str
    is_sign: bool = False
    """`=` or `;`"""


def parse_jaas(text: str) -> JaasEntry:
    """Raises MalformedJaas."""
    tokens = _tokens(text)
    module, flag = next(tokens, None), next(tokens, None)
    if module is None or flag is None or module.is_sign or flag.is_sign or flag.text.lower() not in _FLAGS:
        raise MalformedJaas(f"it has to begin with the name of a login module and one of {', '.join(_FLAGS)}")
    options: dict[str, str] = {}
    for token in tokens:
        if token == _Token(";", True):
            if next(tokens, None) is not None:
                raise MalformedJaas("something follows the semicolon: it takes one login module")
            return JaasEntry(module.text, options)
        sign, value = next(tokens, None), next(tokens, None)
        if token.is_sign or sign != _Token("=", True) or value is None or value.is_sign:
            raise MalformedJaas('its options have to be NAME="VALUE", separated by blanks, and a semicolon to end them')
        options[token.text] = value.text
    raise MalformedJaas("it has to end with a semicolon")


def _tokens(text: str) -> Iterator[_Token]:
    position = 0
    while position < len(text):
        if (found := _TOKEN.match(text, position)) is None:
            raise MalformedJaas("a quote is not closed, or a character stands where none may: put values in quotes")
        position = found.end()
        if found["blank"] is not None:
            continue
        if (quoted := found["double"] if found["double"] is not None else found["single"]) is not None:
            yield _Token(_ESCAPE.sub(_unescaped, quoted))
        elif found["sign"] is not None:
            yield _Token(found["sign"], True)
        else:
            yield _Token(found["word"])


def _unescaped(found: re.Match[str]) -> str:
    escaped = found[1]
    return chr(int(escaped, 8)) if escaped[0] in "01234567" else _ESCAPES.get(escaped, escaped)
