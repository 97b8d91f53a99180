"""Subscriptions and assignments of consumers: back from their bytes in each version, read as leniently as Kafka does.

Java's bytes are compared in `test_kafka_serialization.py`.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.consumer_protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from odradek.protocol.errors import MalformedMessage

PARTITIONS = st.dictionaries(st.text(max_size=5), st.lists(st.integers(0, 2**31 - 1), max_size=3), max_size=3)
SUBSCRIPTIONS = st.builds(
    Subscription,
    st.lists(st.text(max_size=5), max_size=3).map(sorted).map(tuple),
    st.none() | st.binary(max_size=5),
    PARTITIONS,
    st.integers(-1, 2**31 - 1),
    st.none() | st.text(min_size=1, max_size=5),
)
WHOLE = Subscription(("a", "b"), b"u", {"a": [0, 1]}, 7, "r")
WHOLE_V3 = (
    b"\x00\x03"
    b"\x00\x00\x00\x02\x00\x01a\x00\x01b"  # topics
    b"\x00\x00\x00\x01u"  # user_data
    b"\x00\x00\x00\x01\x00\x01a\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x01"  # owned_partitions
    b"\x00\x00\x00\x07"  # generation_id
    b"\x00\x01r"  # rack_id
)


@given(SUBSCRIPTIONS, st.integers(0, 3))
def test_a_subscription_comes_back_as_far_as_its_version_goes(subscription: Subscription, version: int) -> None:
    expected = subscription._replace(
        owned_partitions={topic: sorted(of_topic) for topic, of_topic in subscription.owned_partitions.items()}
    )
    if version < 3:
        expected = expected._replace(rack=None)
    if version < 2:
        expected = expected._replace(generation=-1)
    if version < 1:
        expected = expected._replace(owned_partitions={})
    assert decode_subscription(encode_subscription(subscription, version)) == expected


@given(PARTITIONS, st.none() | st.binary(max_size=5), st.integers(0, 3))
def test_an_assignment_comes_back(partitions: dict[str, list[int]], user_data: bytes | None, version: int) -> None:
    assignment = Assignment(partitions, user_data)
    assert decode_assignment(encode_assignment(assignment, version)) == assignment


def test_a_subscription_written_out_by_hand() -> None:
    assert encode_subscription(WHOLE) == WHOLE_V3
    assert decode_subscription(WHOLE_V3) == WHOLE
    assert decode_subscription(memoryview(WHOLE_V3)) == WHOLE


def test_topics_and_owned_partitions_are_sorted_as_java_does() -> None:
    unsorted = Subscription(["b", "a"], None, {"b": [2, 0], "a": [1]})
    found = decode_subscription(encode_subscription(unsorted))
    assert found.topics == ("a", "b")
    assert list(found.owned_partitions.items()) == [("a", [1]), ("b", [0, 2])]


def test_an_assignment_keeps_its_order() -> None:
    found = decode_assignment(encode_assignment(Assignment({"b": [2, 0], "a": [1]})))
    assert list(found.partitions.items()) == [("b", [2, 0]), ("a", [1])]


def test_a_newer_version_is_read_as_the_newest_known_one() -> None:
    assert decode_subscription(b"\x00\x09" + WHOLE_V3[2:] + b"what came later") == WHOLE


def test_what_follows_is_ignored_in_every_version() -> None:
    assert decode_subscription(encode_subscription(WHOLE, 1) + b"x") == WHOLE._replace(generation=-1, rack=None)
    assert decode_assignment(encode_assignment(Assignment({"a": [0]}), 0) + b"x") == Assignment({"a": [0]})


def test_an_empty_rack_is_none() -> None:
    assert decode_subscription(WHOLE_V3[:-3] + b"\x00\x00").rack is None


def test_a_topic_that_comes_twice_is_put_together() -> None:
    part = b"\x00\x01a\x00\x00\x00\x01\x00\x00\x00"
    data = b"\x00\x00\x00\x00\x00\x02" + part + b"\x04" + part + b"\x02\xff\xff\xff\xff"
    assert decode_assignment(data) == Assignment({"a": [4, 2]})


@pytest.mark.parametrize("size_bytes", range(len(WHOLE_V3)))
def test_no_part_of_a_subscription_passes_for_a_whole_one(size_bytes: int) -> None:
    with pytest.raises(MalformedMessage):
        decode_subscription(WHOLE_V3[:size_bytes])


@pytest.mark.parametrize(
    "data", [b"", b"\x00", b"\xff\xff" + WHOLE_V3[2:], b"\x00\x01\xff\xff\xff\xff", b"opaque bytes"]
)
def test_what_is_no_subscription_or_assignment_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_subscription(data)
    with pytest.raises(MalformedMessage):
        decode_assignment(data)


def test_a_version_that_is_not_declared_is_not_written() -> None:
    with pytest.raises(ValueError, match="declared for versions 0 to 3, not for 4"):
        encode_subscription(WHOLE, 4)
