"""The wire format: what is written is read, known bytes are these, and bytes that are none are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.cluster.etcd.wire import Fields, MalformedMessage, blob, integer, message, present, varint

NUMBERS = st.integers(min_value=1, max_value=2**29 - 1)
LONGS = st.integers(min_value=-(2**63), max_value=2**63 - 1)


def test_known_bytes() -> None:
    """The examples of protobuf's own description of its encoding."""
    assert integer(1, 150) == bytes.fromhex("08 96 01")
    assert blob(2, b"testing") == bytes.fromhex("12 07 74 65 73 74 69 6e 67")
    assert message(3, integer(1, 150)) == bytes.fromhex("1a 03 08 96 01")
    assert varint(-2) == bytes.fromhex("fe ff ff ff ff ff ff ff ff 01")


@given(NUMBERS, LONGS)
def test_numbers_come_back(number: int, value: int) -> None:
    assert Fields(integer(number, value)).integer(number) == value
    assert Fields(present(number, value)).integer(number) == value
    assert Fields(integer(number, value)).flag(number) == bool(value)


@given(NUMBERS, st.lists(st.binary(), max_size=5))
def test_bytes_come_back_each_and_in_order(number: int, values: list[bytes]) -> None:
    fields = Fields(b"".join(message(number, value) for value in values))
    assert fields.blobs(number) == values
    assert fields.blob(number) == (values[-1] if values else b"")


def test_what_is_0_or_empty_is_left_out_unless_its_presence_says_something() -> None:
    assert integer(1, 0) == blob(1, b"") == b""
    assert present(1, 0) == b"\x08\x00"
    assert message(1, b"") == b"\x0a\x00"
    nothing = Fields(b"")
    assert (nothing.integer(1), nothing.flag(1), nothing.blob(1), nothing.text(1), nothing.blobs(1)) == (
        0,
        False,
        b"",
        "",
        [],
    )
    assert nothing.fields(1).integer(1) == 0


def test_fields_that_are_not_known_are_skipped() -> None:
    """Eight bytes and four, which etcd's messages do not have so far, too."""
    unknown = varint(9 << 3 | 1) + b"8" * 8 + varint(10 << 3 | 5) + b"4" * 4 + message(11, b"?") + integer(12, 7)
    fields = Fields(integer(1, 5) + unknown + blob(2, "ö".encode()))
    assert (fields.integer(1), fields.text(2)) == (5, "ö")


@given(st.binary(max_size=40))
def test_any_bytes_are_a_message_or_refused(data: bytes) -> None:
    try:
        Fields(data)
    except MalformedMessage:
        return


@pytest.mark.parametrize(
    "data",
    [
        b"\x08",  # a tag without its number
        b"\x08\x80",  # a number that goes on
        b"\x12\x05abc",  # five bytes, of which three are there
        b"\x09abc",  # eight bytes, of which three are there
        b"\x08" + b"\xff" * 10 + b"\x01",  # eleven bytes of a number
        b"\x0b",  # a group, which proto3 does not have
    ],
)
def test_what_ends_too_early_or_is_of_no_kind_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        Fields(data)
