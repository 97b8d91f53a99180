"""The user data of sticky assignors: both forms of the eager one, told apart by their sizes, and the cooperative one's.

Java's bytes are compared in `test_kafka_serialization.py`.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.assignor_user_data import (
    StickyUserData,
    decode_cooperative_user_data,
    decode_sticky_user_data,
    encode_cooperative_user_data,
    encode_sticky_user_data,
)
from odradek.protocol.errors import MalformedMessage

INT32 = st.integers(-(2**31), 2**31 - 1)
PARTITIONS = st.dictionaries(st.text(max_size=5), st.lists(INT32, max_size=3), max_size=3)
V0 = b"\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x03"
HAD = {"t": [0, 3]}


@given(PARTITIONS, st.none() | INT32)
def test_sticky_user_data_comes_back(partitions: dict[str, list[int]], generation: int | None) -> None:
    had = StickyUserData(partitions, generation)
    assert decode_sticky_user_data(encode_sticky_user_data(had)) == had


def test_sticky_user_data_written_out_by_hand() -> None:
    assert encode_sticky_user_data(StickyUserData(HAD, None)) == V0
    assert encode_sticky_user_data(StickyUserData(HAD, 7)) == V0 + b"\x00\x00\x00\x07"


@pytest.mark.parametrize(("tail", "generation"), [(b"", None), (b"\x00\x00\x00", None), (b"\x00\x00\x00\x07x", 7)])
def test_the_generation_is_read_where_there_is_one(tail: bytes, generation: int | None) -> None:
    assert decode_sticky_user_data(V0 + tail) == StickyUserData(HAD, generation)


@pytest.mark.parametrize("data", [b"", V0[:-1], b"\xff\xff\xff\xff", b"\x00\x00\x00\x01\xff\xff\x00\x00\x00\x00"])
def test_what_is_no_sticky_user_data_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_sticky_user_data(data)


@given(INT32)
def test_cooperative_user_data_is_the_generation(generation: int) -> None:
    encoded = encode_cooperative_user_data(generation)
    assert encoded == generation.to_bytes(4, signed=True)
    assert decode_cooperative_user_data(encoded + b"more") == generation


def test_cooperative_user_data_that_is_short_is_malformed() -> None:
    with pytest.raises(MalformedMessage):
        decode_cooperative_user_data(b"\x00\x00\x07")
