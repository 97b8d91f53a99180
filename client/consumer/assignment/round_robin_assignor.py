"""`roundrobin`: all partitions, topic after topic, are dealt to the members in turn (RoundRobinAssignor.java).

A member that does not subscribe to the topic of a partition is passed over, and its turn is lost.
"""

from collections.abc import Mapping, Sequence
from itertools import cycle

from odradek.client.consumer.assignment.assignor import (
    EagerAssignor,
    Member,
    TopicLayout,
    in_java_order,
    ordered_members,
    partitions_of,
)
from odradek.client.topic_partition import TopicPartition

__all__ = ["RoundRobinAssignor", "assign_round_robin"]


def assign_round_robin(members: Sequence[Member], topics: Mapping[str, TopicLayout]) -> dict[str, list[TopicPartition]]:
    """Equal to what Java's RoundRobinAssignor gives."""
    assignment: dict[str, list[TopicPartition]] = {member.member_id: [] for member in members}
    subscribed = frozenset[str]().union(*(member.topics for member in members))
    turns = cycle(ordered_members(members))
    for topic in sorted(subscribed & topics.keys(), key=in_java_order):
        for partition in partitions_of(topic, topics[topic]):
            # It ends: at least one member subscribes to the topic.
            taker = next(member for member in turns if topic in member.topics)
            assignment[taker.member_id].append(partition)
    return assignment


class RoundRobinAssignor(EagerAssignor):
    """See `assign_round_robin`. It has no user data."""

    name: str = "roundrobin"

    def assign(self, members: Sequence[Member], topics: Mapping[str, TopicLayout]) -> dict[str, list[TopicPartition]]:
        return assign_round_robin(members, topics)
