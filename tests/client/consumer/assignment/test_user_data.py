"""The user data of sticky assignors, good and bad. Equality with Java's bytes: tests/protocol."""

import pytest

from odradek.client.consumer.assignment.claims import Claim
from odradek.client.consumer.assignment.user_data import (
    decode_generation,
    decode_previous_assignment,
    encode_previous_assignment,
    flat,
    sorted_by_topic,
)
from odradek.protocol.assignor_user_data import (
    StickyUserData,
    encode_cooperative_user_data,
    encode_sticky_user_data,
)
from tests.client.consumer.assignment.groups import parts

SOME = parts("a0 a2 b1")


def test_what_was_owned_comes_back_with_its_generation() -> None:
    assert decode_previous_assignment(encode_previous_assignment(reversed(SOME), 7)) == Claim(tuple(SOME), 7)


def test_partitions_sorted_by_topic_are_sorted_and_flat_again() -> None:
    assert sorted_by_topic(reversed(SOME)) == {"a": [0, 2], "b": [1]}
    assert flat(sorted_by_topic(SOME)) == tuple(SOME)


def test_data_without_a_generation_is_of_none() -> None:
    old = encode_sticky_user_data(StickyUserData({"a": [1]}, None))
    assert decode_previous_assignment(old) == Claim(tuple(parts("a1")), -1)


@pytest.mark.parametrize("data", [None, b"", b"\0", b"\0\0\0\1", b"\xff" * 40, b"\x7f\xff\xff\xff"])
def test_what_is_not_understood_is_nothing(data: bytes | None) -> None:
    assert decode_previous_assignment(data) == Claim((), -1)


def test_the_generation_of_a_cooperative_member() -> None:
    assert decode_generation(encode_cooperative_user_data(9)) == 9
    assert decode_generation(None) == decode_generation(b"") == decode_generation(b"\0\0\0") == -1
