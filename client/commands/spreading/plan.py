"""A balanced division of partitions over brokers, and what has to move for it. Pure.

Aims, each as far as those before it allow:

1. each partition has as many replicas as before, on different brokers;
2. they are on as many racks as possible, and on each as often, as placement has it (StripedReplicaPlacer);
3. of each topic, and of all topics together, each broker has as many replicas as any other, give or take one;
4. as few replicas as possible move;
5. of each topic, and of all together, each broker is as often the preferred leader as any other, give or take one.

Racks come first: a rack of one broker beside a rack of three gives that one more. Where no two brokers share a rack, or
all do, and no broker gives up all it has, no balance takes fewer moves. Otherwise it is near that: racks are chosen
before brokers, and what leaves a broker is placed when it is known how many replicas each of the others shall have. A
plan for what a plan came to moves nothing.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from odradek.client.commands.spreading.leaders import preferred_leaders
from odradek.client.commands.spreading.placing import Wish, placed
from odradek.client.commands.spreading.shares import shares
from odradek.client.topic_partition import TopicPartition

__all__ = ["plan"]


class _Kind(NamedTuple):
    """Partitions whose replicas are divided alike."""

    topic: str
    factor: int


class _Room(NamedTuple):
    """How the replicas of a partition are divided over racks: as many on each, and one more on some that have room."""

    each: tuple[int, ...]
    odd: int
    able: tuple[int, ...]


def plan(
    present: Mapping[TopicPartition, Sequence[int]],
    racks: Mapping[int, str | None],
    factors: Mapping[TopicPartition, int] | None = None,
) -> dict[TopicPartition, tuple[int, ...]]:
    """The replicas that each partition shall have, the preferred leader first; those that stay in their order.

    `racks`: the brokers that shall hold them, each with its rack. `factors`: how many replicas a partition shall have,
    where it is not as many as now; at most as many as there are brokers.
    """
    wanted = {each: len(replicas) for each, replicas in present.items()} | dict(factors or {})
    brokers = sorted(racks)
    assert all(0 < factor <= len(brokers) for factor in wanted.values()), "there is a broker for each replica"
    by_rack: dict[str, list[int]] = {}
    for broker in brokers:
        by_rack.setdefault(racks[broker] or "", []).append(broker)
    members = [by_rack[rack] for rack in sorted(by_rack)]
    kept = {each: [broker for broker in replicas if broker in racks] for each, replicas in present.items()}
    counts = _racks_chosen(kept, wanted, members)
    found: dict[TopicPartition, set[int]] = {each: set() for each in present}
    for index, its in enumerate(members):
        for each, chosen in _brokers_chosen(kept, {key: found[index] for key, found in counts.items()}, its).items():
            found[each] |= chosen
    ordered = {
        each: [*(broker for broker in kept[each] if broker in chosen), *sorted(chosen - set(kept[each]))]
        for each, chosen in found.items()
    }
    topics: dict[str, dict[TopicPartition, list[int]]] = {}
    for each, replicas in ordered.items():
        topics.setdefault(each.topic, {})[each] = replicas
    leaders = preferred_leaders(topics)
    return {
        each: (leaders[each], *(broker for broker in replicas if broker != leaders[each]))
        for each, replicas in ordered.items()
    }


def _racks_chosen(
    kept: Mapping[TopicPartition, Sequence[int]],
    wanted: Mapping[TopicPartition, int],
    members: Sequence[Sequence[int]],
) -> dict[TopicPartition, list[int]]:
    """By partition, how many of its replicas each rack shall have."""
    sizes = [len(its) for its in members]
    rooms = {factor: _room(factor, sizes) for factor in set(wanted.values())}
    rack_of = {broker: index for index, its in enumerate(members) for broker in its}
    wishes: dict[TopicPartition, Wish[_Kind]] = {}
    for each, replicas in kept.items():
        room = rooms[wanted[each]]
        here = [0] * len(members)
        for broker in replicas:
            here[rack_of[broker]] += 1
        odd = [index for index in room.able if here[index] > room.each[index]]
        wishes[each] = Wish(_Kind(each.topic, wanted[each]), room.odd, odd)

    def share(kind: _Kind, total: int, partitions: int) -> list[Fraction]:
        room = rooms[kind.factor]
        divided = shares(
            total,
            [sizes[index] for index in room.able],
            [room.each[index] * partitions for index in room.able],
            partitions,
        )
        found = [Fraction(0)] * len(members)
        for index, its in zip(room.able, divided, strict=True):
            found[index] = its
        return found

    raised = placed(wishes, len(members), share)
    return {
        each: [count + (index in raised[each]) for index, count in enumerate(rooms[wanted[each]].each)] for each in kept
    }


def _room(factor: int, sizes: Sequence[int]) -> _Room:
    level = 0
    while sum(min(size, level + 1) for size in sizes) <= factor and level < max(sizes):
        level += 1
    each = tuple(min(size, level) for size in sizes)
    return _Room(each, factor - sum(each), tuple(index for index, size in enumerate(sizes) if size > level))


def _brokers_chosen(
    kept: Mapping[TopicPartition, Sequence[int]], counts: Mapping[TopicPartition, int], members: Sequence[int]
) -> dict[TopicPartition, set[int]]:
    """By partition, those of a rack's brokers that shall have it."""
    index_of = {broker: index for index, broker in enumerate(members)}
    wishes = {
        each: Wish(each.topic, counts[each], [index_of[broker] for broker in replicas if broker in index_of])
        for each, replicas in kept.items()
    }

    def share(_topic: str, total: int, _partitions: int) -> list[Fraction]:
        return [Fraction(total, len(members))] * len(members)

    return {each: {members[index] for index in found} for each, found in placed(wishes, len(members), share).items()}
