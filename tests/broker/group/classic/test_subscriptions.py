"""Which topics members subscribe to: Kafka's bytes, other bytes, all prefixes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.group.classic.subscriptions import topics_of

V0 = b"\0\0\0\0\0\2\0\6orders\0\5items\xff\xff\xff\xff"


def test_topics_of_all_members_are_joined() -> None:
    other = b"\0\0\0\0\0\1\0\6prices\xff\xff\xff\xff"
    assert topics_of([V0, other]) == frozenset({"orders", "items", "prices"})
    assert topics_of([]) == frozenset()


def test_what_a_newer_version_adds_does_not_matter() -> None:
    assert topics_of([b"\0\x63" + V0[2:] + b"anything"]) == frozenset({"orders", "items"})


@pytest.mark.parametrize("size", range(len(V0)))
def test_a_subscription_that_is_cut_off_leaves_the_topics_unknown(size: int) -> None:
    assert topics_of([V0, V0[:size]]) is None


@given(st.binary(max_size=40))
def test_no_bytes_of_a_member_are_an_error(data: bytes) -> None:
    topics = topics_of([data])
    assert topics is None or all(isinstance(topic, str) for topic in topics)
