"""`range`: of each topic, a member gets partitions in a row (RangeAssignor.java).

Topics with equal partition counts and the same subscribers are divided alike: who gets partition 3 of one gets
partition 3 of the other, so that a member can join them. The first members get one partition more where it does not
come out even.

Racks (KIP-881): where members and replicas tell theirs, and not every partition has a replica in every rack, partitions
are first given to members in the racks of their replicas, as far as neither balance nor the likeness of topics suffers.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import islice

from odradek.client.consumer.assignment.assignor import (
    EagerAssignor,
    Member,
    TopicLayout,
    in_java_order,
    ordered_members,
)
from odradek.client.topic_partition import TopicPartition

__all__ = ["RangeAssignor", "assign_ranges"]


class _TopicShares:
    """How far one topic has been divided."""

    def __init__(self, topic: str, layout: TopicLayout, subscribers: list[Member]) -> None:
        self.topic = topic
        self.racks_of = {member.member_id: member.rack or None for member in subscribers}
        """In the order of the members."""
        self.unassigned = dict.fromkeys(range(layout.partition_count))
        self._counts = dict.fromkeys(self.racks_of, 0)
        self._share, self._extra = divmod(layout.partition_count, len(subscribers)) if subscribers else (0, 0)
        member_racks = {rack for rack in self.racks_of.values() if rack is not None}
        self.partition_racks: tuple[frozenset[str], ...] = ()
        """Empty where no subscriber tells its rack."""
        if member_racks:
            self.partition_racks = layout.racks or (frozenset[str](),) * layout.partition_count
        replica_racks = frozenset[str]().union(*self.partition_racks)
        self.needs_racks = bool(member_racks & replica_racks) and any(
            racks != replica_racks for racks in self.partition_racks
        )

    def racks_match(self, member_id: str, partition: int) -> bool:
        """A member without a rack is at home in all of them."""
        rack = self.racks_of[member_id]
        return rack is None or (partition < len(self.partition_racks) and rack in self.partition_racks[partition])

    def room(self, member_id: str) -> int:
        """How many more partitions the member may get."""
        return max(0, self._share + (self._extra > 0) - self._counts[member_id])

    def give(self, member_id: str, partitions: Collection[int], assignment: dict[str, list[TopicPartition]]) -> None:
        for partition in partitions:
            del self.unassigned[partition]
        assignment[member_id] += [TopicPartition(self.topic, partition) for partition in partitions]
        self._counts[member_id] += len(partitions)
        if self._counts[member_id] > self._share:
            self._extra -= 1

    def give_ranges(self, assignment: dict[str, list[TopicPartition]], *, within_racks: bool) -> None:
        for member_id in self.racks_of:
            free = (each for each in self.unassigned if not within_racks or self.racks_match(member_id, each))
            if partitions := list(islice(free, self.room(member_id))):
                self.give(member_id, partitions, assignment)


def assign_ranges(members: Sequence[Member], topics: Mapping[str, TopicLayout]) -> dict[str, list[TopicPartition]]:
    """Equal to what Java's RangeAssignor gives, but for the order of topics in a member's list, which is by name."""
    assignment: dict[str, list[TopicPartition]] = {member.member_id: [] for member in members}
    ordered = ordered_members(members)
    shares = [
        _TopicShares(topic, topics[topic], [member for member in ordered if topic in member.topics])
        for topic in sorted(frozenset[str]().union(*(member.topics for member in members)), key=in_java_order)
        if topic in topics and topics[topic].partition_count
    ]
    if any(share.needs_racks for share in shares):
        _give_within_racks(shares, assignment)
    for share in shares:
        share.give_ranges(assignment, within_racks=False)
    for partitions in assignment.values():
        partitions.sort()
    return assignment


def _give_within_racks(shares: list[_TopicShares], assignment: dict[str, list[TopicPartition]]) -> None:
    alike: dict[tuple[tuple[tuple[str, str | None], ...], int], list[_TopicShares]] = {}
    for share in shares:
        alike.setdefault((tuple(share.racks_of.items()), len(share.partition_racks)), []).append(share)
    for (_, partition_count), group in alike.items():
        if len(group) > 1:
            _give_alike(group, partition_count, assignment)
        elif group[0].needs_racks:
            group[0].give_ranges(assignment, within_racks=True)


def _give_alike(group: list[_TopicShares], partition_count: int, assignment: dict[str, list[TopicPartition]]) -> None:
    """A partition is given in all topics at once, to a member in whose rack all of them have a replica."""
    takers = list(group[0].racks_of)
    for partition in range(partition_count):
        for taker in takers:
            if all(share.racks_match(taker, partition) and share.room(taker) for share in group):
                for share in group:
                    share.give(taker, (partition,), assignment)
                if not any(share.room(taker) for share in group):
                    takers.remove(taker)
                break


class RangeAssignor(EagerAssignor):
    """See `assign_ranges`. It has no user data."""

    name: str = "range"

    def assign(self, members: Sequence[Member], topics: Mapping[str, TopicLayout]) -> dict[str, list[TopicPartition]]:
        return assign_ranges(members, topics)
