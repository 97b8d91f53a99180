r"""Regular expressions as Java has them, for rules that an operator brings along: translated, or refused. Pure.

What both languages write alike stays as it is. What differs in meaning is written out: `.` stops at five kinds of line
ends, `\h` is a horizontal blank, `\z` and `\Z` are ends, a group's name has no P, `\p{Alpha}` is a class. What Python
cannot say (unions and intersections of classes, `\G`, `\R`, `\X`, other `\p{...}`, `\Q...\E`) is refused: a rule that
matched something else than in Kafka would give a client the rights of another.
"""

import re
from typing import Final

_LINE_ENDS: Final = r"\n\r\x85\u2028\u2029"
_ANY: Final = f"[^{_LINE_ENDS}]"
_END_OR_LAST_LINE_END: Final = rf"(?=(?:\r\n|[{_LINE_ENDS}])?\Z)"
_SPACE: Final = r" \t\n\x0b\f\r"
_CLASSES: Final = {
    "Alnum": "a-zA-Z0-9",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Lower": "a-z",
    "Punct": r"!-/:-@\[-`{-~",
    "Space": _SPACE,
    "Upper": "A-Z",
    "XDigit": "0-9a-fA-F",
}
_BLANK: Final = r" \t\xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000"
_CLASS_ESCAPES: Final = {"d": "0-9", "w": "a-zA-Z0-9_", "s": _SPACE, "h": _BLANK}
_NEGATED: Final = {"D": "d", "W": "w", "S": "s", "H": "h"}
_SAME_ESCAPES: Final = frozenset("bBAtnrf")
_OUTSIDE_ONLY: Final = {"z": r"\Z", "Z": _END_OR_LAST_LINE_END}
_GROUP: Final = re.compile(r"\((\?(?:<([a-zA-Z][a-zA-Z0-9]*)>|[:=!>]|<[=!]|(?P<flags>[a-zA-Z-]+)[:)])?)?")
_PROPERTY: Final = re.compile(r"\{(\w+)\}")


def python_pattern(text: str) -> re.Pattern[str]:
    """The same expression. Raises ValueError, which says what Python cannot say, or what is wrong."""
    try:
        return re.compile(_Translation(text).whole(), re.ASCII)
    except re.error as error:
        raise ValueError(f"it is no regular expression: {error}") from None


class _Translation:
    """The way through one expression, a position at a time."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._parts: list[str] = []

    def whole(self) -> str:
        while self._position < len(self._text):
            character = self._text[self._position]
            match character:
                case "\\":
                    self._parts.append(self._escape())
                case "[":
                    self._parts.append(self._class())
                case "(":
                    self._parts.append(self._group())
                case ".":
                    self._take(_ANY)
                case "$":
                    self._take(_END_OR_LAST_LINE_END)
                case _:
                    self._take(character)
        return "".join(self._parts)

    def _take(self, translated: str) -> None:
        self._parts.append(translated)
        self._position += 1

    def _group(self) -> str:
        found = _GROUP.match(self._text, self._position)
        assert found is not None, "it begins with a parenthesis"
        if found["flags"] is not None:
            raise ValueError(f"flags within it, {found[0]}…, are not supported")
        if self._text.startswith("(?", self._position) and found[1] == "?":
            raise ValueError(f"{self._text[self._position : self._position + 3]}… is not supported")
        self._position = found.end()
        return found[0].replace("(?<", "(?P<", 1) if found[2] is not None else found[0]

    def _escape(self) -> str:
        """One escape outside of a class."""
        letter = self._after_backslash()
        if letter in _OUTSIDE_ONLY:
            return _OUTSIDE_ONLY[letter]
        if letter in _SAME_ESCAPES:
            return f"\\{letter}"
        if letter.isdigit():
            return self._back_reference(letter)
        if letter == "k":
            return self._named_reference()
        is_negated = letter in _NEGATED or letter == "P"
        content = self._class_escape(letter)
        if letter in _CLASS_ESCAPES or is_negated or letter == "p":
            return f"[{'^' * is_negated}{content}]"
        return content

    def _after_backslash(self) -> str:
        if self._position + 1 >= len(self._text):
            raise ValueError("it ends with a backslash")
        letter = self._text[self._position + 1]
        self._position += 2
        return letter

    def _back_reference(self, digit: str) -> str:
        if digit == "0" or self._text[self._position : self._position + 1].isdigit():
            raise ValueError(f"\\{digit}… is not supported")
        return f"(?:\\{digit})"  # in a group of its own, so that no digit behind it counts

    def _named_reference(self) -> str:
        found = re.compile(r"<([a-zA-Z][a-zA-Z0-9]*)>").match(self._text, self._position)
        if found is None:
            raise ValueError("\\k is not followed by the name of a group")
        self._position = found.end()
        return f"(?P={found[1]})"

    def _class_escape(self, letter: str) -> str:
        """What an escape stands for within a class; a negated one for what it negates."""
        if letter in "pP":
            return self._property()
        if letter in _CLASS_ESCAPES or letter in _NEGATED:
            return _CLASS_ESCAPES[_NEGATED.get(letter, letter)]
        if letter in "xu":
            size = 2 if letter == "x" else 4
            digits = self._text[self._position : self._position + size]
            if not re.fullmatch(f"[0-9a-fA-F]{{{size}}}", digits):
                raise ValueError(f"\\{letter}{digits} is not supported")
            self._position += size
            return f"\\{letter}{digits}"
        if letter.isascii() and letter.isalnum():
            raise ValueError(f"\\{letter} is not supported")
        return re.escape(letter)

    def _property(self) -> str:
        found = _PROPERTY.match(self._text, self._position)
        content = None if found is None else _CLASSES.get(found[1])
        if found is None or content is None:
            raise ValueError(f"\\p{found[0] if found else ''} is not supported")
        self._position = found.end()
        return content

    def _class(self) -> str:
        """A class in brackets, of single characters, ranges and escapes."""
        self._position += 1
        parts = ["["]
        if self._text.startswith("^", self._position):
            parts.append("^")
            self._position += 1
        begun = self._position
        while not self._text.startswith("]", self._position) or self._position == begun:
            rest = self._text[self._position : self._position + 2]
            if not rest:
                raise ValueError("a class without an end")
            if rest[0] in "[]" or rest == "&&":
                raise ValueError(f"{rest[0]} within a class is not supported; write \\{rest[0]} for the character")
            if rest[0] == "\\":
                parts.append(self._escape_in_class())
            else:
                parts.append(f"\\{rest[0]}" if rest[0] in "&~|" else rest[0])
                self._position += 1
        self._position += 1
        return "".join((*parts, "]"))

    def _escape_in_class(self) -> str:
        letter = self._after_backslash()
        if letter in _NEGATED or letter == "P" or letter in "bB":
            raise ValueError(f"\\{letter} within a class is not supported")
        if letter in _SAME_ESCAPES and letter != "A":
            return f"\\{letter}"
        return self._class_escape(letter)
