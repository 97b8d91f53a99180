"""When a group of raw members is stable, as the members themselves have been told; and what such a member is."""

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from odradek.protocol.codec.schema import Request

Question = tuple[Request[Any], int]
"""A request and its version."""
MemberSteps = Generator[Question, Any, None]
"""Yields what it asks, and is sent the responses. Raises KafkaError."""


@dataclass(slots=True)
class Stability:
    """Who is where, of `members` members and a topic's `partitions` partitions."""

    members: int
    partitions: int
    _generations: dict[int, int] = field(default_factory=dict[int, int])
    _owned: dict[int, frozenset[int]] = field(default_factory=dict[int, frozenset[int]])
    is_reached: bool = False

    def tell(self, member: int, generation: int, owned: frozenset[int]) -> None:
        """This member owns these partitions in this generation, or with this epoch."""
        self._generations[member], self._owned[member] = generation, owned
        if len(self._owned) == self.members and len(set(self._generations.values())) == 1:
            told = [partition for partitions in self._owned.values() for partition in partitions]
            self.is_reached = self.is_reached or sorted(told) == list(range(self.partitions))
