"""What a KIP-848 group has assigned to a member, by topic id, and as far as it is known by name.

A topic that was deleted and made again has another id: its partitions are others, though they are called the same.
"""

from collections.abc import Iterable, Mapping

from odradek.client.consumer.membership.requests import AssignmentByTopicId
from odradek.client.topic_partition import TopicPartition

__all__ = ["Target"]


class Target:
    """Names of ids are kept: an id has one name for ever."""

    def __init__(self) -> None:
        self.partitions: AssignmentByTopicId = {}
        self._names: dict[bytes, str] = {}
        self._owned_ids: dict[TopicPartition, bytes] = {}

    def set(self, partitions: AssignmentByTopicId) -> bool:
        """False: it is the same as before."""
        wanted = {topic_id: numbers for topic_id, numbers in partitions.items() if numbers}
        if wanted == self.partitions:
            return False
        self.partitions = wanted
        return True

    def name(self, names: Mapping[bytes, str]) -> None:
        """These are the names of topic ids."""
        self._names.update(names)

    @property
    def unnamed(self) -> frozenset[bytes]:
        return frozenset(self.partitions.keys() - self._names.keys())

    @property
    def named(self) -> dict[TopicPartition, bytes]:
        """The partitions that can be read, with the ids of their topics."""
        return {
            TopicPartition(self._names[topic_id], number): topic_id
            for topic_id, numbers in self.partitions.items()
            if topic_id in self._names
            for number in numbers
        }

    # ----------------------------------------------------------------------------------------------------------- owned
    def gone(self, owned: Iterable[TopicPartition]) -> frozenset[TopicPartition]:
        """What of it is not assigned any more."""
        named = self.named
        return frozenset(each for each in owned if named.get(each) != self._owned_ids[each])

    def take(self, owned: Iterable[TopicPartition]) -> frozenset[TopicPartition]:
        """What can be taken in addition; it is owned from now on."""
        had = {partition: self._owned_ids[partition] for partition in owned}
        added = {partition: topic_id for partition, topic_id in self.named.items() if partition not in had}
        self._owned_ids = had | added
        return frozenset(added)

    def has_more_than(self, owned: frozenset[TopicPartition]) -> bool:
        return not owned.issuperset(self.named)

    def by_id(self, owned: Iterable[TopicPartition]) -> dict[bytes, frozenset[int]]:
        """As it is told to the broker."""
        found: dict[bytes, set[int]] = {}
        for partition in owned:
            found.setdefault(self._owned_ids[partition], set()).add(partition.partition)
        return {topic_id: frozenset(numbers) for topic_id, numbers in found.items()}
