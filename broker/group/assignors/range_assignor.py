"""`range`: each topic is cut into ranges, one for each subscriber. Pure. Rules: Kafka's RangeAssignor.

Topics with equal partition counts and equal subscribers are assigned alike, so that a join over them is local. Static
members stand first, by instance id, and keep their place when they come back under another member id; the others follow
by member id. The assignment does not look at the former one.
"""

from odradek.broker.group.assignors.audiences import audiences
from odradek.broker.group.assignors.spec import GroupSpec, MemberSpec, Partitions


def assign_range(spec: GroupSpec) -> dict[str, Partitions]:
    """The first `count % subscribers` subscribers of a topic get one partition more than the others."""
    members = sorted(spec.members.items(), key=_rank)
    assigned: list[dict[bytes, frozenset[int]]] = [{} for _ in members]
    for topic_id, audience in audiences([member.topics for _, member in members]).items():
        share, extra = divmod(spec.partition_counts[topic_id], len(audience))
        start = 0
        for rank, place in enumerate(audience):
            end = start + share + (rank < extra)
            if start == end:
                break
            assigned[place][topic_id] = frozenset(range(start, end))
            start = end
    return {member_id: partitions for (member_id, _), partitions in zip(members, assigned, strict=True)}


def _rank(item: tuple[str, MemberSpec]) -> tuple[bool, str]:
    member_id, member = item
    return (member.instance_id is None, member.instance_id or member_id)
