"""The garbage collector of a process that is a broker's alone: the event loop waits for it, so it must be short.

Python walks over all objects now and then, a microsecond each: with 5,000 groups that have a member each, a broker
stood still for 0.2 to 0.4 s again and again. Here what has survived such a walk is left alone (frozen): the next one
sees only what was made since. What is in no cycle is freed at once, frozen or not, and so is nearly all of a broker.

Cycles among what is frozen would stay for ever. So everything is walked over once an hour, and where that finds next to
nothing, after twice as long, up to a day.
"""

import asyncio
import gc
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final

THRESHOLDS: Final = (700, 5, 1)
"""After a walk, some 8,000 objects that were made and are left call for the next one; by Python's own, 70,000."""
OLDEST: Final = 2
EVERYTHING_S: Final = 3600.0
EVERYTHING_S_MAX: Final = 24 * 3600.0
WORTH: Final = 100
"""Walking over everything is worth while where one of so many objects is garbage."""


@contextmanager
def collector_paused() -> Generator[None]:
    """What is made here stays: partitions, which the garbage collector need not walk over while they are opened, nor
    ever after, when the loop would wait for it."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextmanager
def short_collections(loop: asyncio.AbstractEventLoop) -> Generator[None]:
    """For as long as the block runs. The loop is the process's own."""
    before = gc.get_threshold()
    gc.set_threshold(*THRESHOLDS)
    gc.callbacks.append(_leave_alone)
    everything = _Everything(loop)
    try:
        yield
    finally:
        everything.cancel()
        gc.callbacks.remove(_leave_alone)
        gc.set_threshold(*before)
        gc.unfreeze()


def _leave_alone(phase: str, told: Mapping[str, Any]) -> None:
    """After a walk over all that is not frozen."""
    if phase == "stop" and told["generation"] == OLDEST:
        gc.freeze()


class _Everything:
    """Walks over everything from time to time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._delay_s = EVERYTHING_S
        self._timer = loop.call_later(self._delay_s, self._collect)

    def cancel(self) -> None:
        self._timer.cancel()

    def _collect(self) -> None:
        found, walked = collect_everything()
        is_worth = found * WORTH >= walked
        self._delay_s = EVERYTHING_S if is_worth else min(2 * self._delay_s, EVERYTHING_S_MAX)
        self._timer = self._loop.call_later(self._delay_s, self._collect)


def collect_everything() -> tuple[int, int]:
    """How many objects were garbage, of how many."""
    gc.unfreeze()
    walked = sum(len(gc.get_objects(generation)) for generation in range(OLDEST + 1))
    found = gc.collect()
    gc.freeze()
    gc.collect()  # Python waits for a quarter of what the last walk has left: that is next to nothing again
    return found, walked
