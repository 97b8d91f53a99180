"""`sticky`: evenly, and with the fewest moves (StickyAssignor.java, KIP-54).

It goes with the eager protocol: a member has given up everything when it joins, so what it had comes in the user data.
What moves is given to its new owner at once.
"""

from collections.abc import Collection, Mapping, Sequence

from odradek.client.consumer.assignment.assignor import (
    NO_GENERATION,
    Member,
    RebalanceProtocol,
    TopicLayout,
    in_java_order,
    ordered_members,
    partitions_of,
)
from odradek.client.consumer.assignment.claims import Claims, weigh
from odradek.client.consumer.assignment.equal_subscriptions import divide_equally
from odradek.client.consumer.assignment.unequal_subscriptions import divide_unequally
from odradek.client.consumer.assignment.user_data import decode_previous_assignment, encode_previous_assignment
from odradek.client.topic_partition import TopicPartition

__all__ = ["StickyAssignor", "divide"]


def divide(
    members: Sequence[Member], topics: Mapping[str, TopicLayout], claims: Claims
) -> dict[str, list[TopicPartition]]:
    """As evenly as the subscriptions allow; then with as few moves from the owners of `claims` as that allows."""
    ordered = ordered_members(members)
    if not ordered:
        return {}
    subscribed = sorted(
        frozenset[str]().union(*(member.topics for member in ordered)) & topics.keys(), key=in_java_order
    )
    partitions = [partition for topic in subscribed for partition in partitions_of(topic, topics[topic])]
    topics_of = {member.member_id: member.topics.intersection(subscribed) for member in ordered}
    if len(set(topics_of.values())) == 1:
        return divide_equally(list(topics_of), partitions, claims.owners)
    return divide_unequally(topics_of, partitions, claims.owners)


class StickyAssignor:
    """Remembers its member's last assignment, even if that was lost: the generation tells what it is worth."""

    name: str = "sticky"
    protocols: frozenset[RebalanceProtocol] = frozenset((RebalanceProtocol.EAGER,))

    def __init__(self) -> None:
        self._previous: tuple[TopicPartition, ...] | None = None
        self._generation = NO_GENERATION

    def user_data(self, topics: Collection[str]) -> bytes | None:
        if self._previous is None:
            return None
        return encode_previous_assignment(self._previous, self._generation)

    def on_assignment(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        self._previous = tuple(partitions)
        self._generation = generation

    def assign(self, members: Sequence[Member], topics: Mapping[str, TopicLayout]) -> dict[str, list[TopicPartition]]:
        claims = {member.member_id: decode_previous_assignment(member.user_data) for member in members}
        return divide(members, topics, weigh(members, claims, topics))
