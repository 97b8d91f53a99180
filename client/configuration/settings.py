"""Rows of settings: what a field of a configuration class accepts, in which unit, by which name in Kafka, and why.

A configuration class is a frozen dataclass, each of its fields declared once by one of the functions below:

    linger_ms: int = whole(5, "How long a batch waits for more records.", unit="ms")

To type checkers that is an int with a default; at run time it is a dataclass field whose metadata hold a `Row`. From
the rows come the checks, the reading of Kafka's dotted names and property texts, and the page of documentation.

Texts are read as Kafka's ConfigDef reads them: stripped, `true` and `false` in any case, lists separated by commas. A
secret that Kafka has no name for keeps its blanks.
"""

import dataclasses
import re
from collections.abc import Callable
from enum import Enum
from typing import Any, Final, Generic, TypeVar, cast, get_args, overload

from odradek.client.arguments import is_plain_callable
from odradek.client.errors.client_errors import ConfigError

__all__ = ["INT_MAX", "LONG_MAX", "Accepting", "Kind", "Row", "choice", "converted", "flag", "rows", "text", "thing"]
__all__ += ["DefaultInt", "is_default", "metadata_of", "optional_flag", "optional_text", "whole"]

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
_WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,20}")
_BLANKS: Final = "".join(map(chr, range(33)))
"""What `String.trim` of Java leaves out at both ends."""

T = TypeVar("T")
_In = TypeVar("_In")
_Out = TypeVar("_Out")


class Kind(Enum):
    """What a setting holds."""

    WHOLE = "a whole number"
    FLAG = "true or false"
    TEXT = "text"
    CHOICE = "one of a few words"
    OBJECT = "a Python object"
    CONVERTED = "read by a function of its own"


class DefaultInt(int):
    """A default that knows it is one: so that a rule can tell whether the user set the same number."""


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """One setting. `convert` returns the value to keep, or raises ValueError with what it must be."""

    kind: Kind
    default: object
    doc: str
    minimum: int = 0
    maximum: int = LONG_MAX
    also: tuple[int, ...] = ()
    choices: tuple[str, ...] = ()
    unit: str = ""
    kafka_name: str = ""
    """Where it is not the field's name with dots."""
    is_ours: bool = False
    """Kafka has no such setting."""
    is_secret: bool = False
    convert: Callable[[object], object] | None = None
    expected: str = ""
    hint: str = ""
    """What to do when a value is refused."""

    def checked(self, name: str, value: object) -> object:
        """The value to keep. Raises ConfigError: wrong type, or out of bounds."""
        if value is None and self.default is None:
            return None
        expected = self.expected
        match self.kind:
            case Kind.WHOLE:
                good = isinstance(value, int) and not isinstance(value, bool) and self._within(value)
                if isinstance(value, int) and value > self.maximum:
                    expected = _whole_number(f"from {self.minimum} to {self.maximum}", self.also, self.unit)
            case Kind.FLAG:
                good = isinstance(value, bool)
            case Kind.TEXT:
                good = isinstance(value, str)
            case Kind.CHOICE:
                folded = {word.lower(): word for word in self.choices}
                word = folded.get(value.strip().lower()) if isinstance(value, str) else None
                good, value = word is not None, value if word is None else word
            case _:
                good, value = True, self._converted(name, value)
        if not good:
            raise self._refused(name, value, expected)
        return value

    def parsed(self, name: str, written: str) -> object:
        """The value that a text of a property file stands for, not checked yet."""
        stripped = written.strip(_BLANKS)
        match self.kind:
            case Kind.WHOLE if _WHOLE_NUMBER.fullmatch(stripped):
                return int(stripped)
            case Kind.FLAG if stripped.lower() in ("true", "false"):
                return stripped.lower() == "true"
            case Kind.OBJECT:
                shown = "a text [hidden]" if self.is_secret else repr(stripped)
                raise ConfigError(
                    f"{name} is {shown}, where this client needs {self.expected}",
                    settings=(name,),
                    hint="Java classes cannot be used from Python; hand over the object itself.",
                )
            case Kind.TEXT if self.is_secret and self.is_ours:
                return written  # a password may begin or end with a space
            case _:
                return stripped

    def shown(self, value: object) -> str:
        """The value for people: secrets hidden."""
        return "[hidden]" if self.is_secret and value else repr(value)

    def _converted(self, name: str, value: object) -> object:
        assert self.convert is not None
        try:
            return self.convert(value)
        except ValueError as error:
            raise self._refused(name, value, str(error)) from None

    def _within(self, value: int) -> bool:
        return self.minimum <= value <= self.maximum or value in self.also

    def _refused(self, name: str, value: object, expected: str) -> ConfigError:
        shown = f"{type(value).__name__} [hidden]" if self.is_secret else repr(value)
        return ConfigError(f"{name} must be {expected}, not {shown}", settings=(name,), hint=self.hint)


_rows: Final[dict[type[Any], dict[str, Row]]] = {}


def rows(kind: type[Any]) -> dict[str, Row]:
    """The rows of a configuration class by the names of its fields."""
    found = _rows.get(kind)
    if found is None:
        found = _rows[kind] = {
            field.name: dataclasses.replace(row, kafka_name=row.kafka_name or field.name.replace("_", "."))
            for field in dataclasses.fields(kind)
            if (row := cast("Row | None", field.metadata.get("row"))) is not None
        }
    return found


# ----------------------------------------------------------------------------------------------- fields of dataclasses
def whole(
    default: int,
    doc: str,
    *,
    minimum: int = 0,
    maximum: int = LONG_MAX,
    also: tuple[int, ...] = (),
    unit: str = "",
    is_ours: bool = False,
) -> int:
    """A whole number within bounds, or one of `also`. It keeps track of whether it is the default (`is_default`)."""
    bounds = f"{minimum} or more" if maximum >= INT_MAX else f"from {minimum} to {maximum}"
    expected = _whole_number(bounds, also, unit)
    row = Row(
        Kind.WHOLE, default, doc, minimum, maximum, also=also, unit=unit, is_ours=is_ours, expected=expected
    )  # fmt: skip
    return cast(int, _field(DefaultInt(default), row))


def _whole_number(bounds: str, also: tuple[int, ...], unit: str) -> str:
    others = "".join(f", or {number}" for number in also)
    return f"a whole number{f' of {unit}' if unit else ''}, {bounds}{others}"


def is_default(value: int) -> bool:
    """Whether a number stands as the row has it, and not because the user wrote it."""
    return isinstance(value, DefaultInt)


def flag(default: bool, doc: str, *, is_ours: bool = False) -> bool:
    return cast(bool, _field(default, Row(Kind.FLAG, default, doc, is_ours=is_ours, expected="True or False")))


def optional_flag(doc: str) -> bool | None:
    """True, False, or unset."""
    return cast("bool | None", _field(None, Row(Kind.FLAG, None, doc, expected="True, False or None")))


def text(default: str, doc: str) -> str:
    return cast(str, _field(default, Row(Kind.TEXT, default, doc, expected="text")))


def optional_text(doc: str, *, is_secret: bool = False, is_ours: bool = False) -> str | None:
    row = Row(Kind.TEXT, None, doc, is_secret=is_secret, is_ours=is_ours, expected="text, or None")
    return cast("str | None", _field(None, row))


def choice(default: T, words: object, doc: str, *, hint: str = "") -> T:
    """One of the words of a `Literal`, in any case."""
    choices = tuple(str(word) for word in get_args(words))
    expected = f"one of {', '.join(word or 'an empty text' for word in choices)}"
    return cast(T, _field(default, Row(Kind.CHOICE, default, doc, choices=choices, expected=expected, hint=hint)))


def thing(
    default: T,
    doc: str,
    *,
    expected: str,
    check: Callable[[object], bool] = is_plain_callable,
    kafka_name: str = "",
    is_ours: bool = False,
    is_secret: bool = False,
) -> T:
    """A Python object for which `check` is true (by default: a callable, no coroutine function). Not read from text."""

    def convert(value: object) -> object:
        if not check(value):
            raise ValueError(expected)
        return value

    row = Row(
        Kind.OBJECT,
        default,
        doc,
        kafka_name=kafka_name,
        is_ours=is_ours,
        is_secret=is_secret,
        convert=convert,
        expected=expected,
    )
    return cast(T, _field(default, row))


class Accepting(Generic[_In, _Out]):
    """The type of a field that takes an `_In` and has an `_Out` then. Only type checkers see it.

    Where a subclass inherits the field, mypy makes an `_In` of it, and a property has to help.
    """

    @overload
    def __get__(self, instance: None, owner: object) -> "Accepting[_In, _Out]": ...
    @overload
    def __get__(self, instance: object, owner: object) -> _Out: ...
    def __get__(self, instance: object | None, owner: object) -> "_Out | Accepting[_In, _Out]":
        raise NotImplementedError

    def __set__(self, instance: object, value: _In) -> None:
        raise NotImplementedError


def converted(
    convert: Callable[[object], _Out],
    doc: str,
    *,
    default: object,
    kind: Kind = Kind.CONVERTED,
    expected: str,
    kafka_name: str = "",
    is_ours: bool = False,
) -> Any:
    """A setting with a function of its own."""
    row = Row(kind, default, doc, convert=convert, kafka_name=kafka_name, expected=expected, is_ours=is_ours)
    return _field(default, row)


def metadata_of(convert: Callable[[object], object], doc: str, *, expected: str) -> dict[str, Row]:
    """For `dataclasses.field`, of a setting that is required: type checkers learn that from no other call."""
    return {"row": Row(Kind.CONVERTED, dataclasses.MISSING, doc, convert=convert, expected=expected)}


def _field(default: object, row: Row) -> object:
    return dataclasses.field(default=default, metadata={"row": row})
