"""Assignments in the bytes of classic members: by names, sorted, in the version of the subscription."""

import pytest

from odradek.broker.group.migration.embedded import assignment_for
from odradek.protocol.consumer_protocol import decode_assignment
from tests.broker.group.consumer.rig import Topics
from tests.broker.group.migration.mixed import subscription


@pytest.mark.parametrize(("version", "told"), [(0, 0), (1, 1), (3, 3), (7, 3)])
def test_an_assignment_is_in_the_version_that_the_member_speaks(version: int, told: int) -> None:
    topics = Topics()
    orders, bills = topics.put("orders", 4), topics.put("bills", 1)
    metadata = version.to_bytes(2, "big") + subscription()[2:]
    partitions = {orders: frozenset((3, 0)), bills: frozenset((0,)), b"gone" * 4: frozenset((1,))}
    data = assignment_for(partitions, metadata, topics)
    assert int.from_bytes(data[:2], "big") == told
    found = decode_assignment(data).partitions
    assert {name: list(indexes) for name, indexes in found.items()} == {"bills": [0], "orders": [0, 3]}
    assert list(found) == ["bills", "orders"]


def test_nothing_is_an_assignment_too() -> None:
    assert decode_assignment(assignment_for({}, subscription(), Topics())).partitions == {}
