"""The hash of a topic's metadata: another one for whatever an assignment depends on."""

import pytest

from odradek.broker.group.topics_view import ViewedTopic

ID = b"t" * 16
ORDERS = ViewedTopic("orders", ID, 2, (frozenset({"a", "b"}), frozenset({"c"})))


def test_equal_topics_have_equal_hashes() -> None:
    again = ViewedTopic("orders", ID, 2, (frozenset({"b", "a"}), frozenset({"c"})))
    assert again.metadata_hash == ORDERS.metadata_hash
    assert len(ORDERS.metadata_hash) == 8


@pytest.mark.parametrize(
    "other",
    [
        ViewedTopic("bills", ID, 2, ORDERS.racks),
        ViewedTopic("orders", b"u" * 16, 2, ORDERS.racks),
        ViewedTopic("orders", ID, 3, ORDERS.racks),
        ViewedTopic("orders", ID, 2, (frozenset({"a"}), frozenset({"b", "c"}))),
        ViewedTopic("orders", ID, 2, (frozenset({"ab"}), frozenset({"c"}))),
        ViewedTopic("orders", ID, 2),
    ],
)
def test_whatever_differs_is_in_the_hash(other: ViewedTopic) -> None:
    assert other.metadata_hash != ORDERS.metadata_hash
