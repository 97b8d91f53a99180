"""Divides partitions among members that subscribe to different topics: as evenly as possible, with the fewest moves.

As evenly as possible means that the sum of the squares of what members have is the least: then no partition, and no
chain of partitions, can be handed on so that a member with more ends up nearer to one with less. Among such divisions,
the one counts in which the fewest partitions leave their owners.

A draft comes first: owners keep theirs, what is free goes to whoever has least, and single moves even it out. Then it
is improved by cycles of moves (`move_graph`), each of which makes it more even, or as even with fewer moves, until
there is none. (Java's GeneralAssignmentBuilder improves by single moves alone, which may end before it is even.)
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final

from odradek.client.consumer.assignment.move_graph import MoveGraph
from odradek.client.topic_partition import TopicPartition

__all__ = ["divide_unequally"]

WORK_MAX: Final = 4_000_000
"""Arcs of the graph that are looked at, about a second of a processor: then the division is taken as it is."""


class _Division:
    """Which member holds which partition, while it is worked out."""

    def __init__(self, topics_of: Mapping[str, frozenset[str]], owners: Mapping[TopicPartition, str]) -> None:
        self.owners = owners
        self.held: dict[str, dict[str, list[TopicPartition]]] = {member_id: {} for member_id in topics_of}
        """By member and topic."""
        self.load = dict.fromkeys(topics_of, 0)
        self.subscribers: dict[str, list[str]] = {}
        for member_id, topics in topics_of.items():
            for topic in sorted(topics):
                self.subscribers.setdefault(topic, []).append(member_id)
        for partition, member_id in owners.items():
            self._give(partition, member_id)

    def give_to_least(self, free: Sequence[TopicPartition]) -> None:
        """Partitions of topics with few subscribers first: they have the least choice."""
        by_choice = sorted(free, key=lambda each: (len(self.subscribers.get(each.topic, ())), each))
        for partition in by_choice:
            if partition.topic in self.subscribers:
                self._give(partition, self.least_loaded(partition.topic))

    def least_loaded(self, topic: str) -> str:
        """The first of those with the fewest."""
        return min(self.subscribers[topic], key=self.load.__getitem__)

    def level(self) -> None:
        """Moves single partitions from members to others that have at least two fewer, until there are none."""
        has_moved = True
        while has_moved:
            has_moved = False
            for member_id in sorted(self.load, key=self.load.__getitem__, reverse=True):
                for topic in list(self.held[member_id]):
                    while self.held[member_id][topic]:
                        taker = self.least_loaded(topic)
                        if self.load[taker] + 2 > self.load[member_id]:
                            break
                        self.move(self._best_to_move(member_id, topic, taker), member_id, taker)
                        has_moved = True

    def move(self, partition: TopicPartition, giver: str, taker: str) -> None:
        self.held[giver][partition.topic].remove(partition)
        self.load[giver] -= 1
        self._give(partition, taker)

    def _best_to_move(self, giver: str, topic: str, taker: str) -> TopicPartition:
        """One that goes home, else one that is not at home."""

        def rank(partition: TopicPartition) -> tuple[int, TopicPartition]:
            owner = self.owners.get(partition)
            return (0 if owner == taker else 2 if owner == giver else 1), partition

        return min(self.held[giver][topic], key=rank)

    def _give(self, partition: TopicPartition, member_id: str) -> None:
        self.held[member_id].setdefault(partition.topic, []).append(partition)
        self.load[member_id] += 1


def divide_unequally(
    topics_of: Mapping[str, frozenset[str]],
    partitions: Sequence[TopicPartition],
    owners: Mapping[TopicPartition, str],
    work_max: int = WORK_MAX,
) -> dict[str, list[TopicPartition]]:
    """`topics_of` holds every member in order; `owners` are members that may keep a partition."""
    division = _Division(topics_of, owners)
    division.give_to_least([partition for partition in partitions if partition not in owners])
    division.level()
    graph = MoveGraph(division.subscribers, owners, division.held, division.load)
    while work_max > 0:
        moves, work = graph.better_moves()
        work_max -= work
        if not moves:
            break
        for partition, giver, taker in moves:
            division.move(partition, giver, taker)
    return {member_id: sorted(chain(*held.values())) for member_id, held in division.held.items()}
