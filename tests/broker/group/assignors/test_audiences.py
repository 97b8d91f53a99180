"""Who has subscribed to what."""

from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.broker.group.assignors.audiences import audiences

TOPICS = st.frozensets(st.sampled_from([b"a", b"b", b"c"]))


@settings(max_examples=40)
@given(st.lists(TOPICS, max_size=6))
def test_an_audience_is_all_who_have_subscribed_in_order(subscriptions: list[frozenset[bytes]]) -> None:
    found = audiences(subscriptions)
    assert found == {
        topic_id: tuple(place for place, topics in enumerate(subscriptions) if topic_id in topics)
        for topic_id in set[bytes]().union(*subscriptions)
    }


def test_equal_audiences_are_one_object() -> None:
    found = audiences([frozenset({b"a", b"b"}), frozenset({b"b", b"a"}), frozenset({b"c"})])
    assert found[b"a"] is found[b"b"]
