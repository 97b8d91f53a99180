"""Takes items of the caller's iterables, and gives the event loop its turn by time while it does.

An iterable may be a generator that computes, reads a file or waits for a database: code of the caller's, which runs in
the event loop. While it runs nothing is sent, no answer is read and no timer rings, so that records accepted before
could come to `delivery_timeout_ms`. So the clock is looked at every few items, RUN_MAX at most and fewer where items
are slow, and the loop gets a turn when TURN_MS have passed. A single item that takes longer cannot be divided.

Lists, tuples and the like run no code of the caller's: they are taken at once, without a look at the clock.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, repeat
from typing import Any, Final, TypeVar

from odradek.runtime.tasks import breathe

__all__ = ["TURN_MS", "Taking", "taken"]

T = TypeVar("T")

TURN_MS: Final = 10.0
"""The loop has its turn when the caller's code has run for so long."""
RUN_MAX: Final = 8
"""So many items are taken between two looks at the clock, at most. (2,048 items of a generator cost 30 ns each without
a look, 59 ns with one for 8 items, 84 ns with one for 4, 125 ns with one for each.)"""
RUN_MS: Final = TURN_MS / 4
"""A run shall take so long, at most: the next one is shorter where it took longer."""
MANY: Final = 1 << 16
PLAIN: Final = frozenset(
    map(
        type, (iter([]), iter(()), iter(b""), iter(range(0)), iter({}), iter(set[Any]()), iter(deque[Any]()), repeat(0))
    )
)
"""Types of iterators that run no code of the caller's."""


class Taking:
    """Takes from several iterables side by side, as many items of each."""

    def __init__(self, columns: Mapping[str, Iterable[Any]]) -> None:
        self._iterators: dict[str, Iterator[Any]] = {name: iter(column) for name, column in columns.items()}
        self.is_plain = all(type(each) in PLAIN for each in self._iterators.values())
        self._now_s = asyncio.get_running_loop().time
        self._run = 1

    async def take(self, count: int) -> tuple[dict[str, list[Any]], Exception | None]:
        """Up to `count` items of each, fewer when TURN_MS have passed; and what an iterable raised instead of going on.

        Not equally many where one has ended or raised; none of any where all have ended. Whoever takes gives the loop a
        turn before the next call.
        """
        columns: dict[str, list[Any]] = {name: [] for name in self._iterators}
        if self.is_plain:
            return columns, _raised([self._extend(name, items, count) for name, items in columns.items()])
        began_ms = turn_ms = now_ms = self._now_s() * 1000.0
        left = count
        while left:
            run = min(self._run, left)
            run_began_ms = now_ms
            ended: list[bool | Exception] = []
            for name, items in columns.items():
                if ended and self._now_s() * 1000.0 - turn_ms >= TURN_MS:
                    await breathe()
                    turn_ms = self._now_s() * 1000.0
                ended.append(self._extend(name, items, run))
            if ended.count(False) < len(ended):
                return columns, _raised(ended)
            left -= run
            now_ms = self._now_s() * 1000.0
            self._adapt(now_ms - run_began_ms)
            if now_ms - began_ms + (now_ms - run_began_ms) > TURN_MS:
                break  # another run like this one would take too long
        return columns, None

    def _extend(self, name: str, items: list[Any], count: int) -> bool | Exception:
        """Takes `count` more items. Whether the iterable had fewer; or what it raised."""
        before = len(items)
        try:
            items.extend(islice(self._iterators[name], count))  # it keeps what came before an error
        except Exception as why:  # noqa: BLE001  (the caller's iterables raise what they like; who takes is told)
            return why
        return len(items) - before < count

    def _adapt(self, run_ms: float) -> None:
        """After a run of full length or less has taken so long."""
        if run_ms <= RUN_MS / 2:
            self._run = min(RUN_MAX, 2 * self._run)
        elif run_ms > RUN_MS:
            self._run = max(1, int(self._run * RUN_MS / run_ms))


async def taken(iterable: Iterable[T]) -> list[T]:
    """All items. Raises what the iterable raises."""
    taking = Taking({"": iterable})
    items: list[T] = []
    while True:
        columns, failure = await taking.take(MANY)
        items += columns[""]
        if failure is not None:
            raise failure
        if not columns[""]:
            return items
        if not taking.is_plain:
            await breathe()


def _raised(ended: list[bool | Exception]) -> Exception | None:
    return next((each for each in ended if isinstance(each, Exception)), None)
