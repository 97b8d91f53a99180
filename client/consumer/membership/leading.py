"""What the leader of a classic group does: reads what the members said, and makes an assignment for each of them.

It also watches the topics of the whole group, since nobody else does: when one gets more partitions, or appears, the
leader has to join again so that there is another assignment. (Source: ConsumerCoordinator.java, onLeaderElected and
MetadataSnapshot.)
"""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from odradek.client.consumer.assignment.assignor import Assignor, Member, TopicLayout
from odradek.client.consumer.assignment.user_data import flat, sorted_by_topic
from odradek.client.consumer.membership.requests import JoinedMember
from odradek.protocol.consumer_protocol import Assignment, decode_subscription, encode_assignment
from odradek.protocol.errors import MalformedMessage

__all__ = ["Leading"]

Snapshot: TypeAlias = dict[str, tuple[int, tuple[frozenset[str], ...]]]


class Leading:
    """For one generation. `watches_racks`: a change of racks matters, too."""

    def __init__(self, members: Iterable[JoinedMember], *, watches_racks: bool) -> None:
        self._watches_racks = watches_racks
        self._snapshot: Snapshot | None = None
        self.not_understood: list[str] = []
        """The ids of members whose metadata does not parse: they get no partitions."""
        self._members = [self._read(member) for member in members]
        self.topics = frozenset[str]().union(*(member.topics for member in self._members))

    def assignments(self, assignor: Assignor, topics: Mapping[str, TopicLayout]) -> tuple[tuple[str, bytes], ...]:
        """The bytes for every member, by its id."""
        self._snapshot = self._snapshot_of(topics)
        existing = {topic: topics[topic] for topic in self.topics & topics.keys()}
        assigned = assignor.assign(self._members, existing)
        return tuple(
            (member.member_id, encode_assignment(Assignment(sorted_by_topic(assigned.get(member.member_id, ())))))
            for member in self._members
        )

    def is_outdated(self, topics: Mapping[str, TopicLayout]) -> bool:
        """Whether the topics of the group are laid out otherwise than when it was assigned.

        A leader that came back to the assignment of its former self does not know: it goes by what it sees first.
        """
        if self._snapshot is None:
            self._snapshot = self._snapshot_of(topics)
        return self._snapshot_of(topics) != self._snapshot

    def _snapshot_of(self, topics: Mapping[str, TopicLayout]) -> Snapshot:
        return {
            topic: (topics[topic].partition_count, topics[topic].racks if self._watches_racks else ())
            for topic in self.topics & topics.keys()
        }

    def _read(self, member: JoinedMember) -> Member:
        try:
            said = decode_subscription(member.metadata)
        except MalformedMessage:
            self.not_understood.append(member.member_id)
            return Member(member.member_id, frozenset(), member.group_instance_id)
        return Member(
            member.member_id,
            frozenset(said.topics),
            member.group_instance_id,
            flat(said.owned_partitions),
            said.generation,
            said.rack,
            said.user_data,
        )
