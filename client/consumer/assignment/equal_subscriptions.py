"""Divides partitions among members that all subscribe to the same topics: evenly, and with the fewest moves.

Every member gets `share` partitions, and `extra` of them one more. Who owns most keeps most: the places for one more go
first to members that own so many, the rest of what they own is given up. What is left is dealt in turn to those below
their share, then one each to others until the extra places are used up.
(Source: AbstractStickyAssignor.java, ConstrainedAssignmentBuilder, without racks.)
"""

from collections import deque
from collections.abc import Mapping, Sequence

from odradek.client.topic_partition import TopicPartition

__all__ = ["divide_equally"]


def divide_equally(
    member_ids: Sequence[str], partitions: Sequence[TopicPartition], owners: Mapping[TopicPartition, str]
) -> dict[str, list[TopicPartition]]:
    """`partitions` are in the order in which they are dealt, `owners` are members that may keep a partition."""
    share, extra = divmod(len(partitions), len(member_ids))
    assignment, extra_left = _kept(member_ids, owners, share, extra)
    kept = {partition for mine in assignment.values() for partition in mine}
    free = iter([partition for partition in partitions if partition not in kept])

    below = deque(member_id for member_id in member_ids if len(assignment[member_id]) < share)
    while below:
        member_id = below.popleft()
        assignment[member_id].append(next(free))
        if len(assignment[member_id]) < share:
            below.append(member_id)
    even = (member_id for member_id in member_ids if len(assignment[member_id]) == share)
    for partition, member_id in zip(free, even, strict=False):
        assignment[member_id].append(partition)
        extra_left -= 1
    assert extra_left == 0
    assert sum(map(len, assignment.values())) == len(partitions)
    return assignment


def _kept(
    member_ids: Sequence[str], owners: Mapping[TopicPartition, str], share: int, extra: int
) -> tuple[dict[str, list[TopicPartition]], int]:
    """What the members keep, and how many places for one more are left."""
    owned: dict[str, list[TopicPartition]] = {member_id: [] for member_id in member_ids}
    for partition, member_id in owners.items():
        owned[member_id].append(partition)
    assignment: dict[str, list[TopicPartition]] = {}
    for member_id in member_ids:
        mine = sorted(owned[member_id], key=lambda each: (each.partition, each.topic))
        has_extra = len(mine) > share and extra > 0
        extra -= has_extra
        assignment[member_id] = mine[: share + has_extra]
    return assignment, extra
