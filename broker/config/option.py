"""One configuration option: its name, type, default, bounds and meaning, and the way between text and value.

The options themselves are rows in broker_options.py. A row is a class attribute, so that reading it from an instance is
typed (`config.segment_bytes` is an int to mypy and pyright) while the row itself stays at the class
(`TopicOptions.segment_bytes.name`). An instance keeps its values in its `__dict__`, which Python asks before a
descriptor without `__set__`: reading a value costs what any attribute costs.

Parsing follows Kafka's ConfigDef: text is stripped, `true` and `false` in any case, lists separated by commas.
"""

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from difflib import get_close_matches
from enum import Enum, IntEnum
from math import inf, isfinite
from typing import Any, Generic, NamedTuple, TypeVar, cast, overload

from odradek.protocol.errors import ErrorCode, KafkaError

T = TypeVar("T")
Value = bool | int | float | str | tuple[str, ...] | None
_SelfT = TypeVar("_SelfT", bound="Option[Any]")

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,20}")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")


class ConfigError(KafkaError):
    """A configuration that is refused. The message names option, value and what is allowed, in one sentence."""

    def __init__(self, message: str, code: ErrorCode = ErrorCode.INVALID_CONFIG) -> None:
        super().__init__(code, message)

    def __str__(self) -> str:
        return self.message


class ConfigMistakes(ConfigError):
    """The mistakes in what a broker was started with, a line each. It answers no request, so it is told in full."""

    def __init__(self, mistakes: Sequence[str]) -> None:
        text = mistakes[0]
        if len(mistakes) > 1:
            text = "\n  ".join((f"{len(mistakes)} mistakes in the configuration of the broker:", *mistakes))
        super().__init__(text)
        self.message = text


class ConfigType(IntEnum):
    """Numbers as DescribeConfigs answers them (ConfigDef.Type by way of DescribeConfigsResponse.ConfigType)."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Dynamic(Enum):
    """How an option may be changed while the broker runs (DynamicBrokerConfig). Topic options always may."""

    READ_ONLY = "read-only"
    PER_LISTENER = "per listener, as `listener.name.NAME.…`"
    """For one listener of one broker, under the name of the listener and never without it."""
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"
    ALL_BROKERS = "for all brokers only"
    """Those who decide about a partition together must have the same value."""


class ByReference(str):
    """A text that does not stand where the option does, but was looked up (config_providers.py): it may be a secret
    wherever it stands, so it is shown nowhere. The class outlives copies of the mapping, and no change of the text."""

    __slots__ = ()


def has_reference(text: str) -> bool:
    """Whether a part of the text has the form of a reference, `${provider:[path:]key}`. In one pass, for clients send
    what they like."""
    start = text.find("${")
    while start >= 0 and (end := text.find("}", start)) >= 0:
        if ":" in text[start:end]:
            return True
        start = text.find("${", end)
    return False


class Effect(Enum):
    """Whether a value does anything yet."""

    BUILT = "yes"
    STORED = "kept and reported, not applied yet"


class Fallback(NamedTuple):
    """Another option, in a coarser unit, that counts where this one is not set."""

    name: str
    factor: int


class Option(Generic[T]):
    """One row. `parse` and `text` are inverse up to notation: `parse(text(value)) == value`."""

    __slots__ = (
        "attribute",
        "check",
        "choices",
        "default",
        "deviation",
        "doc",
        "dynamic",
        "effect",
        "fallbacks",
        "kind",
        "maximum",
        "mechanism_alone",
        "minimum",
        "name",
        "per_listener",
        "per_mechanism",
        "refuse",
        "synonym",
        "unit",
    )

    def __init__(
        self,
        name: str,
        kind: ConfigType,
        default: T,
        doc: str,
        *,
        minimum: float | None = None,
        maximum: float | None = None,
        choices: tuple[str, ...] = (),
        check: Callable[[T], str | None] | None = None,
        refuse: Callable[[T], str | None] | None = None,
        unit: str = "",
        dynamic: Dynamic = Dynamic.READ_ONLY,
        effect: Effect = Effect.BUILT,
        synonym: str = "",
        fallbacks: tuple[Fallback, ...] = (),
        deviation: str = "",
        per_listener: bool = False,
        per_mechanism: bool = False,
        mechanism_alone: bool = False,
    ) -> None:
        self.name = name
        self.attribute = ""
        self.kind = kind
        self.default = default
        self.doc = doc
        self.minimum = minimum
        self.maximum = maximum
        self.choices = choices
        self.check = check
        """What is allowed instead, None for a good value."""
        self.refuse = refuse
        """Why a value that Kafka takes is refused here, None for one that is not."""
        self.unit = unit
        self.dynamic = dynamic
        self.effect = effect
        self.synonym = synonym
        """For a topic option: the broker option that counts where the topic has none of its own."""
        self.fallbacks = fallbacks
        self.deviation = deviation
        """How this differs from Apache Kafka 4.3.1, and why."""
        self.per_listener = per_listener or per_mechanism or mechanism_alone
        """Whether it may be set for one listener, `listener.name.NAME.OPTION` (listener_options.py)."""
        self.per_mechanism = per_mechanism or mechanism_alone
        """Whether also for one mechanism of SASL in it, `listener.name.NAME.MECHANISM.OPTION`."""
        self.mechanism_alone = mechanism_alone
        """Whether it counts for nothing without a mechanism, as `sasl.jaas.config` does on brokers."""

    def __repr__(self) -> str:
        return f"<Option {self.name}>"

    def __set_name__(self, owner: type, name: str) -> None:
        assert name == self.name.replace(".", "_"), (name, self.name)
        self.attribute = name

    @overload
    def __get__(self: _SelfT, instance: None, owner: type) -> _SelfT: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Any:
        if instance is None:
            return self
        raise AttributeError(f"{owner.__name__} was made without a value for {self.name}")

    @property
    def is_sensitive(self) -> bool:
        return self.kind is ConfigType.PASSWORD

    # -- text and value -----------------------------------------------------------------------------------------

    def parse(self, text: str, name: str = "") -> T:
        """`name`: under which it was given, where that is not the option's own (`listener.name.…`). Raises
        ConfigError."""
        is_referred = isinstance(text, ByReference)
        text = text.strip()
        value = cast(T, _PARSERS[self.kind](text))
        reason = self._problem(text, value)
        if reason is None:
            return value
        if is_referred:
            reason = f"it must be {self.allowed}"  # a reason may quote the value
        shown = "[hidden]" if self.is_sensitive or is_referred else text
        raise ConfigError(f"Invalid value {shown} for configuration {name or self.name}: {reason}.")

    def _problem(self, text: str, value: T) -> str | None:
        """Why the value is refused, in words that follow a colon."""
        if value is None or not self._is_in_bounds(value):
            return f"it must be {self.allowed}"
        if self.kind is ConfigType.LIST and self.choices and text and not all(map(str.strip, text.split(","))):
            return "its items must not be empty"  # "," would be a list of nothing
        if self.check is not None and (allowed := self.check(value)) is not None:
            return allowed
        return None if self.refuse is None else self.refuse(value)

    def text(self, value: Value) -> str | None:
        """As Kafka writes it (ConfigDef.convertToString). None stands for no value."""
        match value:
            case None:
                return None
            case bool():
                return "true" if value else "false"
            case tuple():
                return ",".join(value)
            case float():
                return _java_double(value)
            case _:
                return str(value)

    def normalised(self, text: str, name: str = "") -> str:
        """The text as it is stored and reported: `parse` and `text`. Raises ConfigError."""
        return self.text(cast(Value, self.parse(text, name))) or ""

    @property
    def is_read_only(self) -> bool:
        """Whether it cannot be changed while the broker runs."""
        return self.dynamic is Dynamic.READ_ONLY

    @property
    def default_text(self) -> str | None:
        return self.text(cast(Value, self.default))

    @property
    def allowed(self) -> str:
        """What a value may be, in words that follow "it must be"."""
        words = _KINDS[self.kind]
        if self.choices:
            kind = "a list of" if self.kind is ConfigType.LIST else "one of"
            return f"{kind} {', '.join(self.choices)}"
        if self.minimum is not None and self.maximum is not None:
            words += f" between {self.minimum} and {self.maximum}"
        elif self.minimum is not None:
            words += f" of at least {self.minimum}"
        return f"{words} ({self.unit})" if self.unit else words

    def _is_in_bounds(self, value: object) -> bool:
        if self.choices:
            chosen = cast("tuple[str, ...]", value) if isinstance(value, tuple) else (value,)
            return all(item in self.choices for item in chosen)
        if isinstance(value, int | float):
            if self.minimum is not None and value < self.minimum:
                return False
            return self.maximum is None or value <= self.maximum
        return True


_NEAR = 0.75
"""How alike two names must be, of 1, for one to be taken for a misspelling of the other."""


def nearest(name: str, known: Sequence[str]) -> str | None:
    """The option of `known` that `name` may be a misspelling of."""
    return next(iter(get_close_matches(name, known, n=1, cutoff=_NEAR)), None)


def unknown_name(what: str, name: str, known: Sequence[str]) -> ConfigError:
    """A refusal that suggests the nearest name."""
    near = nearest(name, known)
    hint = "" if near is None else f"; did you mean {near}?"
    return ConfigError(f"Unknown {what} config name: {name}{hint}")


def _parse_boolean(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.lower())


def _parse_whole(low: int, high: int) -> Callable[[str], int | None]:
    def parse(text: str) -> int | None:
        if not _WHOLE_NUMBER.fullmatch(text):
            return None
        value = int(text)
        return value if low <= value <= high else None

    return parse


def _parse_decimal(text: str) -> float | None:
    """None also for what a double takes for infinity, as 1e999."""
    value = float(text) if _DECIMAL.fullmatch(text) else inf
    return value if isfinite(value) else None


def _parse_list(text: str) -> tuple[str, ...]:
    """Each item once, in the order of its first appearance."""
    items = (item.strip() for item in text.split(","))
    return tuple(dict.fromkeys(item for item in items if item))


def _parse_string(text: str) -> str:
    return text


_PARSERS: dict[ConfigType, Callable[[str], Value]] = {
    ConfigType.BOOLEAN: _parse_boolean,
    ConfigType.STRING: _parse_string,
    ConfigType.INT: _parse_whole(-INT_MAX - 1, INT_MAX),
    ConfigType.SHORT: _parse_whole(-(2**15), 2**15 - 1),
    ConfigType.LONG: _parse_whole(-LONG_MAX - 1, LONG_MAX),
    ConfigType.DOUBLE: _parse_decimal,
    ConfigType.LIST: _parse_list,
    ConfigType.PASSWORD: _parse_string,
    ConfigType.CLASS: _parse_string,
}
_KINDS = {
    ConfigType.BOOLEAN: "true or false",
    ConfigType.STRING: "text",
    ConfigType.INT: "a whole number of 32 bits",
    ConfigType.SHORT: "a whole number of 16 bits",
    ConfigType.LONG: "a whole number of 64 bits",
    ConfigType.DOUBLE: "a decimal number",
    ConfigType.LIST: "a list separated by commas",
    ConfigType.PASSWORD: "text",
    ConfigType.CLASS: "the name of a class",
}


def _java_double(value: float) -> str:
    """As Double.toString writes it: with an exponent below 0.001 and from ten million on."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    is_negative, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int), "options are finite numbers"
    text = "".join(map(str, digits))
    return f"{'-' if is_negative else ''}{text[0]}.{text[1:] or '0'}E{exponent + len(text) - 1}"


# Short names for the rows of broker_options.py and topic_options.py.
BOOLEAN, STRING, INT, LONG = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT, ConfigType.LONG
SHORT = ConfigType.SHORT
DOUBLE, LIST, PASSWORD = ConfigType.DOUBLE, ConfigType.LIST, ConfigType.PASSWORD
CLASS = ConfigType.CLASS
CLUSTER_WIDE = Dynamic.CLUSTER_WIDE
STORED = Effect.STORED
OURS = "Odradek's own."
CODECS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")

DAY_MS = 24 * 60 * 60 * 1000
HOUR_MS = 60 * 60 * 1000
MINUTE_MS = 60 * 1000


def gzip_level(level: int) -> str | None:
    """The check of a gzip level."""
    return None if level == -1 or 1 <= level <= 9 else "it must be -1 (the codec's default) or between 1 and 9"


def rows(owner: type) -> dict[str, "Option[Any]"]:
    """The options of a class of rows and of those that it inherits, in order of their names."""
    found: list[Option[Any]] = [row for one in owner.__mro__ for row in vars(one).values() if isinstance(row, Option)]
    return {row.name: row for row in sorted(found, key=lambda row: row.name)}
