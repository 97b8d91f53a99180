"""Finds moves of partitions that make a division more even, or as even with fewer partitions away from their owners.

The graph has an arc for everything that a move consists of, with what it costs:

    member ──> kind of partition      it gives one away; costs 1 if it is the owner of that kind
    kind   ──> its owner              a partition comes home; costs −1
    kind   ──> topic ──> subscriber   a partition comes to another member; costs nothing
    member ──> level ──> member       the first ends with one more, the second with one less; costs the change of the
                                      sum of squares, times more than all other costs of a cycle together

Partitions of one topic with the same owner are one kind. A cycle with negative costs is an improvement; where there is
none, the division is the best (minimum cost flow with convex costs). Cycles are found by the Bellman-Ford algorithm.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from odradek.client.topic_partition import TopicPartition

__all__ = ["Move", "MoveGraph"]


class Move(NamedTuple):
    partition: TopicPartition
    giver: str
    taker: str


class _Arc(NamedTuple):
    source: int
    target: int
    cost: int


class MoveGraph:
    """`held` and `load` are those of the division; they change between two calls of `better_moves`."""

    def __init__(
        self,
        subscribers: Mapping[str, Sequence[str]],
        owners: Mapping[TopicPartition, str],
        held: Mapping[str, Mapping[str, Sequence[TopicPartition]]],
        load: Mapping[str, int],
    ) -> None:
        self._owners = owners
        self._held = held
        self._load = load
        self._members = list(load)
        self._number_of = {member_id: number for number, member_id in enumerate(self._members)}
        self._level = len(self._members)
        self._topics = {topic: self._level + 1 + number for number, topic in enumerate(subscribers)}
        self._kinds: dict[tuple[str, str | None], int] = {}
        self._fixed = [
            _Arc(self._topics[topic], self._number_of[member_id], 0)
            for topic, takers in subscribers.items()
            for member_id in takers
        ]

    def better_moves(self) -> tuple[list[Move], int]:
        """The moves of one cycle, empty where the division is the best; and how many arcs were looked at."""
        giving, example = self._giving()
        arcs = [*self._fixed, *self._kind_arcs(), *giving, *self._level_arcs()]
        cycle, work = _negative_cycle(self._level + 1 + len(self._topics) + len(self._kinds), arcs)
        moves: list[Move] = []
        members = [node for node in cycle if node < self._level]
        for index, giver in enumerate(members):
            position = cycle.index(giver)
            kind = cycle[(position + 1) % len(cycle)]
            if kind != self._level:
                taker = members[(index + 1) % len(members)]
                moves.append(Move(example[giver, kind], self._members[giver], self._members[taker]))
        return moves, work

    def _giving(self) -> tuple[list[_Arc], dict[tuple[int, int], TopicPartition]]:
        """What members can give away, with a partition for each arc."""
        example: dict[tuple[int, int], TopicPartition] = {}
        arcs: list[_Arc] = []
        for number, member_id in enumerate(self._members):
            for topic, partitions in self._held[member_id].items():
                for partition in partitions:
                    owner = self._owners.get(partition)
                    kind = self._kind(topic, owner)
                    if (number, kind) not in example:
                        example[number, kind] = partition
                        arcs.append(_Arc(number, kind, int(owner == member_id)))
        return arcs, example

    def _kind(self, topic: str, owner: str | None) -> int:
        first = self._level + 1 + len(self._topics)
        return self._kinds.setdefault((topic, owner), first + len(self._kinds))

    def _kind_arcs(self) -> list[_Arc]:
        arcs: list[_Arc] = []
        for (topic, owner), kind in self._kinds.items():
            arcs.append(_Arc(kind, self._topics[topic], 0))
            if owner is not None:
                arcs.append(_Arc(kind, self._number_of[owner], -1))
        return arcs

    def _level_arcs(self) -> list[_Arc]:
        """(n + 1)² − n² = 2n + 1, and (n − 1)² − n² = −(2n − 1). A cycle has no more moves than there are members."""
        weight = 2 * len(self._members) + 1
        arcs: list[_Arc] = []
        for number, member_id in enumerate(self._members):
            load = self._load[member_id]
            arcs.append(_Arc(number, self._level, weight * (2 * load + 1)))
            if load:
                arcs.append(_Arc(self._level, number, -weight * (2 * load - 1)))
        return arcs


def _negative_cycle(node_count: int, arcs: Sequence[_Arc]) -> tuple[list[int], int]:
    """The nodes of a cycle with negative costs, in its order, or none; and how many arcs were looked at."""
    distance = [0] * node_count
    parent = [-1] * node_count
    work = 0
    while True:
        work += len(arcs)
        has_changed = False
        for source, target, cost in arcs:
            if distance[source] + cost < distance[target]:
                distance[target] = distance[source] + cost
                parent[target] = source
                has_changed = True
        if not has_changed:
            return [], work
        if cycle := _cycle_of_parents(parent):
            return cycle, work


def _cycle_of_parents(parent: Sequence[int]) -> list[int]:
    """A cycle among parents has negative costs; without one they are a forest."""
    seen_from = [-1] * len(parent)
    for start in range(len(parent)):
        node = start
        while node != -1 and seen_from[node] == -1:
            seen_from[node] = start
            node = parent[node]
        if node != -1 and seen_from[node] == start:
            cycle = [node]
            while parent[cycle[-1]] != node:
                cycle.append(parent[cycle[-1]])
            return cycle[::-1]
    return []
