"""What a member owns, and which of it is being given up.

A partition is owned from `Assigned` until the consumer says that it is given up, not until it is told to: so nobody is
told that it is free while something is still done with it.
"""

from collections.abc import Collection, Iterable

from odradek.client.topic_partition import TopicPartition

__all__ = ["Holdings"]


class Holdings:
    """`being_given_up` is a part of `owned`."""

    def __init__(self) -> None:
        self.owned: frozenset[TopicPartition] = frozenset()
        self.being_given_up: frozenset[TopicPartition] = frozenset()
        self._lost: frozenset[TopicPartition] = frozenset()

    def add(self, partitions: Iterable[TopicPartition]) -> None:
        self.owned |= frozenset(partitions)

    def begin_giving_up(self, partitions: Iterable[TopicPartition]) -> frozenset[TopicPartition]:
        """Returns those that the consumer has not been told of: it is told once."""
        new = (frozenset(partitions) & self.owned) - self.being_given_up
        self.being_given_up |= new
        return new

    def lose(self) -> frozenset[TopicPartition]:
        """All are lost. Returns those that the consumer has not been told so, even if it is giving them up."""
        new = self.owned - self._lost
        self._lost = self.being_given_up = self.owned
        return new

    def give_up(self, partitions: Collection[TopicPartition]) -> None:
        gone = self.being_given_up & frozenset(partitions)
        self.owned -= gone
        self.being_given_up -= gone
        self._lost -= gone
