"""Who is held by which bins, each bin holding as many as it shall, at the least cost. Pure.

An item (a partition, or the odd replicas of a topic) is held by some of the bins that it can be held by (brokers, or
racks of brokers), by each once. That costs nothing where the bin holds it now, and a move where it does not.

First each item takes what costs it least, however many that gives to a bin. Then what is too much in one bin goes to
another one, over the cheapest chain of items that exchange a bin for another. No cheapest chain leaves a cheaper choice
behind it (successive shortest paths), so the last one is the cheapest of all that fit.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Final, Generic, NamedTuple, TypeVar

__all__ = ["Item", "chosen"]

T = TypeVar("T")
FREE: Final = 0
MOVE: Final = 1
COSTS: Final = (-MOVE, FREE, MOVE)
"""Of an exchange, the cheapest first."""


class Item(NamedTuple):
    """By how many bins it is to be held, by which it can be, and which of these hold it now."""

    size: int
    able: Sequence[int]
    present: Collection[int]


def chosen(items: Mapping[T, Item], low: Sequence[int], high: Sequence[int]) -> dict[T, set[int]]:
    """By item, the bins that hold it, so that each bin holds no fewer than `low` and no more than `high`. There must be
    such a choice."""
    choice = _Choice(items, low, high)
    choice.fit()
    choice.take_what_is_cheaper()
    return choice.held


class _Choice(Generic[T]):
    def __init__(self, items: Mapping[T, Item], low: Sequence[int], high: Sequence[int]) -> None:
        self._low, self._high = low, high
        self._bins = range(len(low))
        self._items = items
        self._loads = [0] * len(low)
        # by bin, another bin and a cost: the items that can be held by the other one in place of it, at this cost more
        self._exchanges: list[list[dict[int, dict[T, None]]]] = [
            [{cost: {} for cost in COSTS} for _ in self._bins] for _ in self._bins
        ]
        self.held: dict[T, set[int]] = {}
        for key, item in items.items():
            wanted = sorted(
                item.able, key=lambda index: (self._cost(key, index), self._loads[index] - self._high[index])
            )
            assert len(wanted) >= item.size, "it can be held by as many"
            self.held[key] = set(wanted[: item.size])
            for index in self.held[key]:
                self._loads[index] += 1
            self._enter(key)

    def fit(self) -> None:
        while True:
            over = [index for index in self._bins if self._loads[index] > self._high[index]]
            under = [index for index in self._bins if self._loads[index] < self._low[index]]
            if not over and not under:
                return
            chain = self._cheapest(over or self._above_low(), under or self._below_high())
            assert chain is not None, "there is a choice that fits"
            cost, bins = chain
            start, end = bins[0], bins[-1]
            # The cost of a cheapest chain never falls: while it is the same, no other one is cheaper.
            while self._cost_of(bins) == cost:
                self._exchange(bins)
                is_over = self._loads[start] > self._high[start] and self._loads[end] < self._high[end]
                is_under = self._loads[end] < self._low[end] and self._loads[start] > self._low[start]
                if not (is_over or is_under):
                    break

    def take_what_is_cheaper(self) -> None:
        """Bins that may hold one more or one fewer do so where that costs less."""
        while True:
            chain = self._cheapest(self._above_low(), self._below_high())
            if chain is None or chain[0] >= FREE:
                return
            self._exchange(chain[1])

    def _above_low(self) -> list[int]:
        return [index for index in self._bins if self._loads[index] > self._low[index]]

    def _below_high(self) -> list[int]:
        return [index for index in self._bins if self._loads[index] < self._high[index]]

    def _cheapest(self, starts: Collection[int], ends: Collection[int]) -> tuple[int, list[int]] | None:
        """The cost and the bins of the cheapest chain (Bellman and Ford), of these the shortest; None if there is
        none. No cycle costs less than nothing, see above, so a chain has each bin once."""
        reached: dict[int, tuple[int, int]] = dict.fromkeys(starts, (FREE, 0))
        before: dict[int, int] = {}
        changed = list(reached)
        while changed:
            looked, changed = changed, list[int]()
            for start in looked:
                cost, length = reached[start]
                for end in self._bins:
                    if end == start or (step := self._step(start, end)) is None:
                        continue
                    found = (cost + step, length + 1)
                    if end not in reached or found < reached[end]:
                        reached[end], before[end] = found, start
                        changed.append(end)
        able = [index for index in ends if index in before]
        if not able:
            return None
        end = min(able, key=lambda index: (reached[index], index))
        chain = [end]
        while chain[0] in before:
            chain.insert(0, before[chain[0]])
            assert len(chain) <= len(self._bins), "no cycle costs less than nothing"
        return reached[end][0], chain

    def _step(self, start: int, end: int) -> int | None:
        """What it costs to be held by `end` in place of `start`; None where nothing can be."""
        for cost, items in self._exchanges[start][end].items():
            if items:
                return cost
        return None

    def _cost_of(self, chain: Sequence[int]) -> int | None:
        steps = [self._step(start, end) for start, end in pairwise(chain)]
        return None if None in steps else sum(step for step in steps if step is not None)

    def _exchange(self, chain: Sequence[int]) -> None:
        for start, end in pairwise(chain):
            cost = self._step(start, end)
            assert cost is not None, "no step of a chain takes away another one"
            key = next(iter(self._exchanges[start][end][cost]))
            self._leave(key)
            self.held[key].remove(start)
            self.held[key].add(end)
            self._enter(key)
        self._loads[chain[0]] -= 1
        self._loads[chain[-1]] += 1

    def _enter(self, key: T) -> None:
        for start, end, cost in self._exchanges_of(key):
            self._exchanges[start][end][cost][key] = None

    def _leave(self, key: T) -> None:
        for start, end, cost in self._exchanges_of(key):
            del self._exchanges[start][end][cost][key]

    def _exchanges_of(self, key: T) -> list[tuple[int, int, int]]:
        held = self.held[key]
        return [
            (start, end, self._cost(key, end) - self._cost(key, start))
            for start in held
            for end in self._items[key].able
            if end not in held
        ]

    def _cost(self, key: T, index: int) -> int:
        return FREE if index in self._items[key].present else MOVE
