"""Shows the variable-length numbers by known examples, at their bounds, and cut; ids by Kafka's text form."""

import uuid as standard
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.errors import MalformedMessage
from odradek.protocol.primitives import (
    ZERO_UUID,
    Buffer,
    read_unsigned_varint,
    read_varint,
    read_varlong,
    rest_of_unsigned_varint,
    skip_tags,
    unsigned_varint,
    uuid_from_text,
    uuid_text,
    varint,
    varlong,
)

Write = Callable[[int], bytes]
Read = Callable[[Buffer, int], tuple[int, int]]

# (value, bytes): the examples of the protocol buffers documentation, whose coding this is, and the bounds.
UNSIGNED = [(0, "00"), (1, "01"), (127, "7f"), (128, "8001"), (300, "ac02"), (16383, "ff7f"), (2**32 - 1, "ffffffff0f")]
SIGNED = [
    (0, "00"),
    (-1, "01"),
    (1, "02"),
    (-64, "7f"),
    (64, "8001"),
    (2**31 - 1, "feffffff0f"),
    (-(2**31), "ffffffff0f"),
]
LONG = [(0, "00"), (-1, "01"), (150, "ac02"), (2**63 - 1, "feffffffffffffffff01"), (-(2**63), "ffffffffffffffffff01")]


@pytest.mark.parametrize(
    ("write", "read", "value", "encoded"),
    [(unsigned_varint, read_unsigned_varint, *example) for example in UNSIGNED]
    + [(varint, read_varint, *example) for example in SIGNED]
    + [(varlong, read_varlong, *example) for example in LONG],
)
def test_known_numbers(write: Write, read: Read, value: int, encoded: str) -> None:
    """Written, read behind and before other bytes, and cut: IndexError, which the codec turns into MalformedMessage."""
    data = bytes.fromhex(encoded)
    assert write(value) == data
    assert read(b"\xff" + data + b"\xff", 1) == (value, 1 + len(data))
    for size_bytes in range(len(data)):
        with pytest.raises(IndexError):
            read(data[:size_bytes], 0)


@given(st.integers(0, 2**32 - 1), st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1))
def test_numbers_come_back(unsigned: int, signed: int, long: int) -> None:
    """Property, read one after the other from one buffer. At seven bits a byte, none is longer than it has to be."""
    data = unsigned_varint(unsigned) + varint(signed) + varlong(long)
    read, position = read_unsigned_varint(data, 0)
    assert (read, position) == (unsigned, max(1, -(-unsigned.bit_length() // 7)))
    read, position = read_varint(data, position)
    assert read == signed
    read, position = read_varlong(memoryview(data), position)
    assert (read, position) == (long, len(data))


@pytest.mark.parametrize(
    ("write", "values"),
    [(unsigned_varint, (-1, 2**32)), (varint, (-(2**31) - 1, 2**31)), (varlong, (-(2**63) - 1, 2**63))],
)
def test_numbers_out_of_range_are_refused(write: Write, values: tuple[int, ...]) -> None:
    for value in values:
        with pytest.raises(ValueError, match=str(value)):
            write(value)


@pytest.mark.parametrize(
    ("read", "encoded"),
    [
        (read_unsigned_varint, "ffffffff10"),  # a 33rd bit
        (read_unsigned_varint, "808080808000"),  # a sixth byte
        (read_unsigned_varint, "ff" * 100),
        (read_varint, "ffffffff7f"),
        (read_varint, "ff" * 100),
        (read_varlong, "ffffffffffffffffff02"),  # a 65th bit
        (read_varlong, "8080808080808080808000"),  # an eleventh byte
        (read_varlong, "ff" * 100),
    ],
)
def test_numbers_that_are_too_long_are_malformed(read: Read, encoded: str) -> None:
    with pytest.raises(MalformedMessage):
        read(bytes.fromhex(encoded), 0)


def test_a_number_is_read_on_after_its_first_byte() -> None:
    assert rest_of_unsigned_varint(b"\xac\x02\xff", 1, 0xAC) == (300, 2)


def test_a_number_longer_than_needed_is_read() -> None:
    """Java accepts them too."""
    assert read_unsigned_varint(b"\x81\x80\x00", 0) == (1, 3)


def test_tags_are_skipped() -> None:
    assert skip_tags(b"x\x00y", 1, 3) == 2
    data = b"\x02\x00\x03abc\x80\x01\x00"
    assert skip_tags(data + b"y", 0, len(data) + 1) == len(data)


def test_a_tag_that_ends_beyond_the_message_is_malformed() -> None:
    with pytest.raises(MalformedMessage, match="ends beyond"):
        skip_tags(b"\x01\x00\x03ab", 0, 5)
    for size_bytes in range(3):
        with pytest.raises(IndexError):
            skip_tags(b"\x01\x00\x03"[:size_bytes], 0, size_bytes)


@given(st.binary(min_size=16, max_size=16))
def test_ids_come_back_from_their_text(value: bytes) -> None:
    assert uuid_from_text(uuid_text(value)) == value
    assert len(uuid_text(value)) == 22


def test_known_ids() -> None:
    """Kafka's Uuid.toString of zero and one, and a value with both url-safe characters."""
    assert uuid_text(ZERO_UUID) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert uuid_text(standard.UUID(int=1).bytes) == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert uuid_text(b"\xfb\xff" + bytes(14)) == "-_8AAAAAAAAAAAAAAAAAAA"


@pytest.mark.parametrize("text", ["", "A" * 21, "A" * 23, "A" * 24, "A" * 21 + "B", "A" * 21 + "=", "é" * 22, "+" * 22])
def test_other_texts_are_no_ids(text: str) -> None:
    with pytest.raises(ValueError, match="not an id"):
        uuid_from_text(text)


def test_an_id_has_16_bytes() -> None:
    with pytest.raises(ValueError, match="16 bytes, not 15"):
        uuid_text(bytes(15))
