"""`uniform`, where all members have the same subscription. Pure. Rules: Kafka's UniformHomogeneousAssignmentBuilder.

Every member ends with `total // members` partitions or one more. A member keeps what it has, up to its quota. Those who
already have more than the smaller quota get the larger one first, so that no partition moves that need not: Kafka gives
the larger quotas in the order of its hash table, and may move one partition of a member for nothing.
"""

from collections.abc import Iterator
from itertools import islice

from odradek.broker.group.assignors.spec import GroupSpec, MemberSpec, Partitions


def assign_homogeneous(spec: GroupSpec) -> dict[str, Partitions]:
    """`spec` has a member at least, and all have the same topics."""
    topics = sorted(next(iter(spec.members.values())).topics)
    free = {topic_id: set(range(spec.partition_counts[topic_id])) for topic_id in topics}
    total = sum(map(len, free.values()))
    kept = {member_id: _take_assigned(member, free) for member_id, member in spec.members.items()}
    sizes = {member_id: sum(map(len, partitions.values())) for member_id, partitions in kept.items()}
    quotas = _quotas(sizes, total)
    for member_id, partitions in kept.items():
        if sizes[member_id] > quotas[member_id]:
            kept[member_id] = _shortened(partitions, quotas[member_id], free)
    unassigned = ((topic_id, partition) for topic_id in topics for partition in sorted(free[topic_id]))
    return {
        member_id: _filled(partitions, quotas[member_id] - sizes[member_id], unassigned)
        for member_id, partitions in kept.items()
    }


def _take_assigned(member: MemberSpec, free: dict[bytes, set[int]]) -> Partitions:
    """What the member had that still exists and that no member before it has, too. They stop being free."""
    taken: dict[bytes, frozenset[int]] = {}
    for topic_id, partitions in member.assigned.items():
        left = free.get(topic_id)
        if left is None:
            continue
        mine = partitions if partitions <= left else partitions & left
        if mine:
            taken[topic_id] = mine
            left -= mine
    return taken


def _quotas(sizes: dict[str, int], total: int) -> dict[str, int]:
    quota, extra = divmod(total, len(sizes))
    larger = sorted(sizes, key=lambda member_id: sizes[member_id] <= quota)[:extra]
    return dict.fromkeys(sizes, quota) | dict.fromkeys(larger, quota + 1)


def _shortened(partitions: Partitions, quota: int, free: dict[bytes, set[int]]) -> Partitions:
    """The first `quota` partitions, by topic id and index. The others become free."""
    kept: dict[bytes, frozenset[int]] = {}
    for topic_id in sorted(partitions):
        mine = partitions[topic_id]
        if len(mine) > quota:
            released = sorted(mine)[quota:]
            free[topic_id].update(released)
            mine = mine.difference(released)
        if mine:
            kept[topic_id] = mine
        quota -= len(mine)
    return kept


def _filled(partitions: Partitions, count: int, unassigned: Iterator[tuple[bytes, int]]) -> Partitions:
    """With the next `count` unassigned partitions; the same object where there is nothing to add."""
    if count <= 0:
        return partitions
    added: dict[bytes, list[int]] = {}
    for topic_id, partition in islice(unassigned, count):
        added.setdefault(topic_id, []).append(partition)
    filled = dict(partitions)
    for topic_id, indexes in added.items():
        filled[topic_id] = filled.get(topic_id, frozenset[int]()).union(indexes)
    return filled
