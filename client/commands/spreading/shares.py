"""How many replicas of each topic each bin shall have, a bin being a broker, or a rack of brokers. Pure.

Every topic's replicas are divided over the bins by `shares`, as fractions; `quotas` rounds them, up or down, so that

* the replicas of a topic are as many as before;
* the total of each bin is its fractional total, rounded up or down, too;
* as few replicas as possible have to move.

That such a rounding exists is the integrality of flows.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil, floor
from typing import NamedTuple, TypeVar

from odradek.client.commands.spreading.choosing import Item, chosen

__all__ = ["Demand", "quotas", "shares"]

T = TypeVar("T")


class Demand(NamedTuple):
    """What a topic asks of the bins: its fractional share of each, and how many of its replicas each has now."""

    shares: Sequence[Fraction]
    present: Sequence[int]


def shares(total: int, weights: Sequence[int], bases: Sequence[int], each_max: int) -> list[Fraction]:
    """Divides `total` over bins that have `bases` already, so that base and share are in proportion to the weights as
    far as no share is below 0 or above `each_max`. The bins have room: `total` is at most `each_max` for each."""
    assert 0 <= total <= each_max * len(weights), "there is room for all"

    def filled(level: Fraction) -> list[Fraction]:
        return [
            min(max(level * weight - base, Fraction(0)), Fraction(each_max))
            for weight, base in zip(weights, bases, strict=True)
        ]

    levels = sorted(
        {Fraction(base + edge, weight) for weight, base in zip(weights, bases, strict=True) for edge in (0, each_max)}
    )
    low = levels[0] if levels else Fraction(0)
    for high in levels:
        if (above := sum(filled(high))) >= total:
            below = sum(filled(low))
            level = low if above == below else low + (total - below) * (high - low) / (above - below)
            return filled(level)
        low = high
    assert not weights, "the highest level fills all bins"
    return []


def quotas(demands: Mapping[T, Demand], bin_count: int) -> dict[T, list[int]]:
    """By topic, how many replicas each bin shall have."""
    totals = [Fraction(0)] * bin_count
    odd: dict[T, Item] = {}
    for topic, (divided, present) in demands.items():
        rests = [share - floor(share) for share in divided]
        for index, rest in enumerate(rests):
            totals[index] += rest
        count = sum(rests)
        assert count == floor(count), "the shares of a topic are its replicas"
        # One more than the share rounded down costs no move where more are there.
        held = {index for index, share in enumerate(divided) if present[index] > floor(share)}
        odd[topic] = Item(floor(count), [index for index, rest in enumerate(rests) if rest], held)
    raised = chosen(odd, [floor(total) for total in totals], [ceil(total) for total in totals])
    return {
        topic: [floor(share) + (index in raised[topic]) for index, share in enumerate(demand.shares)]
        for topic, demand in demands.items()
    }
