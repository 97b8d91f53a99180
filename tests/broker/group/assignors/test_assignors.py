"""The names of the assignors, and what an assignment costs."""

import time

import pytest

from odradek.broker.group.assignors.assignors import ASSIGNORS
from odradek.broker.group.assignors.spec import GroupSpec, MemberSpec

MEMBERS, PARTITIONS = 500, 1_000
SECONDS_MAX = 0.5
"""Ten times what it takes, for slow machines."""


def test_the_names_are_kafkas() -> None:
    assert sorted(ASSIGNORS) == ["range", "uniform"]


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
@pytest.mark.parametrize("topic_count", [1, 10, 1_000])
@pytest.mark.parametrize("equal", [True, False])
def test_a_large_group_is_assigned_at_once(name: str, topic_count: int, equal: bool) -> None:
    topics = [index.to_bytes(16, "big") for index in range(topic_count)]
    everything, rest = frozenset(topics), frozenset(topics[: topic_count // 2 + 1])
    members = {f"member-{index:03}": MemberSpec(everything if equal or index % 2 else rest) for index in range(MEMBERS)}
    counts = dict.fromkeys(topics, PARTITIONS // topic_count)
    started = time.process_time()
    assigned = ASSIGNORS[name](GroupSpec(members, counts))
    taken = time.process_time() - started
    assert sum(len(indexes) for partitions in assigned.values() for indexes in partitions.values()) == PARTITIONS
    assert taken < SECONDS_MAX
