"""One option: text to value and back as Kafka's ConfigDef does it, and refusals that say what is allowed."""

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.config.option import LONG_MAX, ByReference, ConfigError, ConfigType, Option, unknown_name
from odradek.protocol.errors import ErrorCode

BOOLEAN = Option("a.boolean", ConfigType.BOOLEAN, False, "")
INT = Option("an.int", ConfigType.INT, 5, "", minimum=-1, unit="ms")
SHORT = Option("a.short", ConfigType.SHORT, 5, "")
LONG = Option("a.long", ConfigType.LONG, 5, "")
DOUBLE = Option("a.double", ConfigType.DOUBLE, 0.5, "", minimum=0, maximum=1)
FREE_DOUBLE = Option("a.free.double", ConfigType.DOUBLE, 0.5, "")
STRING = Option("a.string", ConfigType.STRING, "x", "", choices=("x", "y"))
LIST = Option("a.list", ConfigType.LIST, ("x",), "", choices=("x", "y"))
FREE_LIST = Option[tuple[str, ...]]("a.free.list", ConfigType.LIST, (), "")
PASSWORD = Option[str]("a.password", ConfigType.PASSWORD, "", "", refuse=lambda value: f"{len(value)} characters")


@pytest.mark.parametrize(("text", "value"), [("true", True), (" TRUE ", True), ("False", False)])
def test_booleans(text: str, value: bool) -> None:
    assert BOOLEAN.parse(text) is value


@pytest.mark.parametrize(("text", "value"), [("7", 7), (" -1 ", -1), ("+3", 3), ("2147483647", 2147483647), ("007", 7)])
def test_whole_numbers(text: str, value: int) -> None:
    assert INT.parse(text) == value


@pytest.mark.parametrize(("text", "value"), [("0.5", 0.5), ("1", 1.0), (".25", 0.25), ("5e-1", 0.5), ("0.", 0.0)])
def test_decimals(text: str, value: float) -> None:
    assert DOUBLE.parse(text) == value


@pytest.mark.parametrize(
    ("text", "value"), [("", ()), (" ", ()), ("x", ("x",)), (" y , x ", ("y", "x")), ("x,x,y,x", ("x", "y"))]
)
def test_lists_hold_each_item_once(text: str, value: tuple[str, ...]) -> None:
    assert LIST.parse(text) == FREE_LIST.parse(text) == value


@pytest.mark.parametrize("text", [",", "x,", ",x", "x,,y", "x, ,y"])
def test_an_empty_item_is_none_of_the_choices(text: str) -> None:
    """`cleanup.policy=,` would be neither delete nor compact. Where anything may stand it is left out."""
    with pytest.raises(ConfigError, match=r"for configuration a\.list: its items must not be empty"):
        LIST.parse(text)
    assert FREE_LIST.parse(text) == tuple(item.strip() for item in text.split(",") if item.strip())


@pytest.mark.parametrize(
    ("option", "text", "allowed"),
    [
        (BOOLEAN, "yes", "true or false"),
        (BOOLEAN, "", "true or false"),
        (INT, "1.5", "a whole number of 32 bits of at least -1 (ms)"),
        (INT, "-2", "a whole number of 32 bits of at least -1 (ms)"),
        (INT, "2147483648", "a whole number of 32 bits of at least -1 (ms)"),
        (INT, "1_000", "a whole number of 32 bits of at least -1 (ms)"),
        (INT, "٣", "a whole number of 32 bits of at least -1 (ms)"),
        (INT, "", "a whole number of 32 bits of at least -1 (ms)"),
        (SHORT, "32768", "a whole number of 16 bits"),
        (SHORT, "-32769", "a whole number of 16 bits"),
        (LONG, str(LONG_MAX + 1), "a whole number of 64 bits"),
        (LONG, str(-LONG_MAX - 2), "a whole number of 64 bits"),
        (DOUBLE, "1.01", "a decimal number between 0 and 1"),
        (DOUBLE, "nan", "a decimal number between 0 and 1"),
        (DOUBLE, "inf", "a decimal number between 0 and 1"),
        (FREE_DOUBLE, "1e999", "a decimal number"),
        (FREE_DOUBLE, "-1e999", "a decimal number"),
        (STRING, "z", "one of x, y"),
        (STRING, "x,y", "one of x, y"),
        (LIST, "x,z", "a list of x, y"),
    ],
)
def test_a_refusal_names_option_value_and_what_is_allowed(option: Option[Any], text: str, allowed: str) -> None:
    with pytest.raises(ConfigError) as caught:
        option.parse(text)
    assert caught.value.code is ErrorCode.INVALID_CONFIG
    assert str(caught.value) == f"Invalid value {text} for configuration {option.name}: it must be {allowed}."


def test_a_password_is_not_shown() -> None:
    assert PASSWORD.is_sensitive
    with pytest.raises(ConfigError, match=r"^Invalid value \[hidden\] for configuration a.password: 6 characters.$"):
        PASSWORD.parse("secret")


@given(st.integers(-LONG_MAX - 1, LONG_MAX), st.floats(0, 1), st.booleans(), st.lists(st.text("abc", min_size=1)))
def test_what_is_written_is_read(number: int, decimal: float, truth: bool, items: list[str]) -> None:
    values: list[tuple[Option[Any], Any]] = [
        (LONG, number),
        (DOUBLE, decimal),
        (BOOLEAN, truth),
        (FREE_LIST, tuple(dict.fromkeys(items))),
    ]
    for option, value in values:
        text = option.text(value)
        assert text is not None
        assert option.parse(text) == value
    assert LONG.text(None) is None


def test_an_attribute_is_the_row_at_the_class_and_the_value_at_the_instance() -> None:
    class Options:
        an_int = INT

    class View(Options):
        def __init__(self) -> None:
            self.__dict__["an_int"] = 7

    assert Options.an_int is INT
    assert View().an_int == 7
    assert INT.attribute == "an_int"
    with pytest.raises(AttributeError, match=r"without a value for an\.int"):
        _ = Options().an_int


def test_an_attribute_has_the_name_of_its_option() -> None:
    with pytest.raises((AssertionError, RuntimeError)):
        type("Options", (), {"an_integer": INT})


def test_the_nearest_name_is_suggested() -> None:
    known = ("retention.ms", "retention.bytes", "segment.ms")
    assert str(unknown_name("topic", "retention.m", known)) == (
        "Unknown topic config name: retention.m; did you mean retention.ms?"
    )
    assert str(unknown_name("topic", "colour", known)) == "Unknown topic config name: colour"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (0.0, "0.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (1.25e-7, "1.25E-7"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12345678.5, "1.23456785E7"),
        (-2.5e10, "-2.5E10"),
        (sys.float_info.max, "1.7976931348623157E308"),
    ],
)
def test_decimals_are_written_as_java_does(value: float, text: str) -> None:
    option = Option("o", ConfigType.DOUBLE, value, "A decimal.")
    assert option.text(value) == text
    assert option.parse(text) == value


def test_a_value_by_reference_is_shown_as_little_as_a_password() -> None:
    """Nor does a check quote it, nor is the name lost under which it was given."""
    quoting = Option[str]("an.option", ConfigType.STRING, "", "", check=lambda value: f"{value} is not good")
    with pytest.raises(ConfigError, match=r"^Invalid value \[hidden\] for configuration an\.option: it must be text"):
        quoting.parse(ByReference("hunter2"))
    given = "listener.name.x.an.int"
    with pytest.raises(ConfigError, match=rf"^Invalid value \[hidden\] for configuration {given}: it must be a whole"):
        INT.parse(ByReference("hunter2"), given)
    with pytest.raises(ConfigError, match=rf"^Invalid value x for configuration {given}: it must be a whole"):
        INT.normalised("x", given)
    assert INT.parse(ByReference(" 7 ")) == 7


def test_an_option_of_a_mechanism_is_one_of_a_listener() -> None:
    def flags(option: Option[Any]) -> tuple[bool, bool, bool]:
        return option.per_listener, option.per_mechanism, option.mechanism_alone

    assert flags(INT) == (False, False, False)
    assert flags(Option("o", ConfigType.INT, 1, "", per_listener=True)) == (True, False, False)
    assert flags(Option("o", ConfigType.INT, 1, "", per_mechanism=True)) == (True, True, False)
    assert flags(Option("o", ConfigType.INT, 1, "", mechanism_alone=True)) == (True, True, True)
