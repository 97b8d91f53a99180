"""Which bins hold each partition, a bin being a broker, or a rack of brokers: as few moves as possible. Pure.

How many of each topic each bin gets is decided first (`shares.quotas`), then which partitions these are. The former
costs as many moves as bins lack of each topic. Where two bins get as many, give or take one, the latter costs no more:
a bin that has more than it shall have holds a partition which one that has fewer lacks. Where partitions are
short of a replica from the beginning it may cost more: the one that is short may be held by that bin already.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from typing import Generic, NamedTuple, TypeVar

from odradek.client.commands.spreading.choosing import Item, chosen
from odradek.client.commands.spreading.shares import Demand, quotas

__all__ = ["Wish", "placed"]

K = TypeVar("K")
T = TypeVar("T")


class Wish(NamedTuple, Generic[T]):
    """A partition: to whose topic it counts, by how many bins it is to be held, and which ones hold it now, by their
    indexes."""

    topic: T
    size: int
    present: Collection[int]


def placed(
    wishes: Mapping[K, Wish[T]], bin_count: int, share: Callable[[T, int, int], Sequence[Fraction]]
) -> dict[K, set[int]]:
    """The bins of each partition.

    `share`: how the replicas of a topic are divided over the bins, given the topic and the numbers of its replicas and
    partitions.
    """
    topics: dict[T, dict[K, Wish[T]]] = {}
    for key, wish in wishes.items():
        topics.setdefault(wish.topic, {})[key] = wish
    demands: dict[T, Demand] = {}
    for topic, its in topics.items():
        counts = [0] * bin_count
        for wish in its.values():
            for index in wish.present:
                counts[index] += 1
        demands[topic] = Demand(share(topic, sum(wish.size for wish in its.values()), len(its)), counts)
    wanted = quotas(demands, bin_count)
    found: dict[K, set[int]] = {}
    for topic, its in topics.items():
        items = {key: Item(wish.size, range(bin_count), wish.present) for key, wish in its.items()}
        found |= chosen(items, wanted[topic], wanted[topic])
    return found
