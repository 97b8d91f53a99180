"""Shows what serializers write, byte for byte as Kafka's own do, and how anything that is not bytes is refused."""

import json
import math
from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.client.errors.client_errors import SerializationError
from odradek.client.producer.hooks import serialization
from odradek.client.producer.hooks.serialization import (
    Serializer,
    encoded_headers,
    require_bytes,
    serialize_bytes,
    serialize_double,
    serialize_int,
    serialize_json,
    serialize_long,
    serialize_str,
    serialized,
)
from odradek.protocol.batches.records import HEADERS_MAX
from tests.client.golden import java_facts

JAVA: dict[str, list[tuple[Any, str | None]]] = java_facts.read()["serializers"]


@pytest.mark.parametrize(
    ("name", "value", "written"),
    [(name, value, written) for name, examples in JAVA.items() for value, written in examples],
)
def test_bytes_are_those_of_kafkas_serializers(name: str, value: Any, written: str | None) -> None:
    serializer: Serializer = getattr(serialization, name)
    assert serializer("orders", value) == (None if written is None else bytes.fromhex(written))


def test_java_wrote_examples_of_each() -> None:
    assert JAVA.keys() == {"serialize_str", "serialize_int", "serialize_long", "serialize_double"}
    assert all(len(examples) >= 5 for examples in JAVA.values())


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
PLAIN = st.none() | st.booleans() | st.integers() | st.text()
JSON = st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


@given(TEXTS, st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1))
def test_what_was_written_can_be_read(text: str, small: int, large: int) -> None:
    assert (serialize_str("t", text) or b"").decode() == text
    assert int.from_bytes(serialize_int("t", small) or b"", signed=True) == small
    assert int.from_bytes(serialize_long("t", large) or b"", signed=True) == large


@given(JSON)
def test_json_can_be_read(value: Any) -> None:
    try:
        written = serialize_json("t", value)
    except UnicodeEncodeError:
        assert any(0xD800 <= ord(char) < 0xE000 for char in json.dumps(value, ensure_ascii=False))
    else:
        assert written is None if value is None else json.loads(written or b"") == value


def test_json_is_compact_and_strict() -> None:
    assert serialize_json("t", {"a": [1, "ü"]}) == '{"a":[1,"ü"]}'.encode()
    for number in (math.nan, math.inf):
        with pytest.raises(ValueError, match="JSON"):
            serialize_json("t", number)


BYTES_LIKE = [b"abc", bytearray(b"abc"), memoryview(b"xabc")[1:], array("B", b"abc"), memoryview(b"a-b-c")[::2]]


@pytest.mark.parametrize("value", BYTES_LIKE)
def test_bytes_like_objects_are_copied(value: Any) -> None:
    for written in (serialize_bytes("t", value), require_bytes("t", "value", value)):
        assert written == b"abc"
        assert type(written) is bytes
    assert (serialize_bytes("t", value) is value) is (type(value) is bytes)


def test_a_buffer_may_be_used_again() -> None:
    buffer = bytearray(b"abc")
    written = serialize_bytes("t", buffer)
    buffer[:] = b"xyz"
    buffer.clear()  # nothing holds it
    assert written == b"abc"


def divides(topic: str, value: object) -> bytes:
    return bytes(1 // 0)


def returns_text(topic: str, value: object) -> str:
    return "text"


def returns_a_number(topic: str, value: object) -> int:
    return 5


def takes_no_topic(value: object) -> bytes:
    return b""


FAILING: list[tuple[Any, object, str]] = [
    (serialize_str, b"bytes", "TypeError"),
    (serialize_str, "\ud800", "UnicodeEncodeError"),
    (serialize_bytes, "text", "TypeError"),
    (serialize_int, 2**31, "2147483648 is not an integer from -2147483648 to 2147483647"),
    (serialize_int, 1.5, "1.5 is not an integer"),
    (serialize_long, -(2**63) - 1, "is not an integer that fits into 64 bits"),
    (serialize_double, "1.5", "is not a number"),
    (serialize_json, {1, 2}, "TypeError"),
    (divides, "x", "ZeroDivisionError"),
    (returns_text, "x", "it returned a str, where bytes or None are wanted"),
    (returns_a_number, "x", "it returned a int"),
    (takes_no_topic, "x", "TypeError"),
]


@pytest.mark.parametrize(("serializer", "value", "why"), FAILING)
@pytest.mark.parametrize("setting", ["key_serializer", "value_serializer"])
def test_a_serializer_that_fails_is_named(serializer: Any, value: object, why: str, setting: str) -> None:
    with pytest.raises(SerializationError) as caught:
        serialized(serializer, setting, "orders", value)
    error = caught.value
    for part in ("orders", type(value).__name__, setting, serializer.__qualname__, why):
        assert part in str(error)
    assert (error.topic, error.setting, error.serializer) == ("orders", setting, serializer.__qualname__)
    assert not error.retriable
    assert (error.__cause__ is None) is ("returned" in why)


class Registry:
    """A serializer with something to configure."""

    def __call__(self, topic: str, value: object) -> bytearray:
        if value == "bad":
            raise LookupError(topic)
        return bytearray(b"\0" + topic.encode())


def test_any_callable_serializes() -> None:
    written = serialized(Registry(), "value_serializer", "orders", 1)
    assert written == b"\0orders"
    assert type(written) is bytes
    with pytest.raises(SerializationError, match=r"by Registry \(value_serializer\): LookupError: orders"):
        serialized(Registry(), "value_serializer", "orders", "bad")
    assert serialized(serialize_long, "key_serializer", "orders", None) is None


def test_without_a_serializer_bytes_are_required() -> None:
    with pytest.raises(SerializationError) as caught:
        require_bytes("orders", "value", {"a": 1})
    assert "the value of a record for orders, a dict, cannot be serialized: it is not bytes" in str(caught.value)
    assert "set value_serializer" in caught.value.hint
    with pytest.raises(SerializationError, match="key_serializer"):
        require_bytes("orders", "key", "text")


@pytest.mark.parametrize(
    ("headers", "encoded"),
    [
        ((), ()),
        ([], ()),
        ([("a", b"1"), ("a", None)], (("a", b"1"), ("a", None))),
        ((["ü", bytearray(b"2")],), (("ü", b"2"),)),
        ({"a": b"1"}.items(), (("a", b"1"),)),
        (iter([("a", memoryview(b"3"))]), (("a", b"3"),)),
    ],
)
def test_headers_become_pairs(headers: Any, encoded: tuple[tuple[str, bytes | None], ...]) -> None:
    assert encoded_headers("orders", headers) == encoded


def test_more_headers_than_a_record_of_a_batch_may_have_are_refused() -> None:
    """A batch with such a record could be neither read nor split."""
    headers = [("a", b"")] * HEADERS_MAX
    assert len(encoded_headers("orders", headers)) == HEADERS_MAX
    with pytest.raises(SerializationError, match=r"orders.* 65537 .* 65536") as caught:
        encoded_headers("orders", [*headers, ("a", b"")])
    assert caught.value.setting == "headers"
    assert "fewer" in caught.value.hint


NO_HEADERS: list[object] = [
    *({"a": b"1"}, "ab", 5, None, [None], [5]),
    *([("a", "1")], [("a", 1)], [(b"a", b"1")], [("a",)], [("a", b"1", 0)], [("\ud800", b"")]),
]


@pytest.mark.parametrize("headers", NO_HEADERS, ids=repr)
def test_headers_of_another_form_are_refused(headers: Any) -> None:
    with pytest.raises(SerializationError, match="headers are pairs") as caught:
        encoded_headers("orders", headers)
    assert caught.value.setting == "headers"
    assert "the headers of a record for orders" in str(caught.value)
