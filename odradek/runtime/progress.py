"""A number that only grows, and that coroutines can wait for.

The high watermark is one: a Produce with acks=all waits for `reach(last_offset + 1)`. So is the revision of the
metadata image. Waiting costs a heap entry and a future, no task and no timer of its own: 20,000 parked requests are
woken at a few microseconds each.
"""

import asyncio
import heapq
from itertools import count


class Progress:
    """A growing number with waiters, in the loop's thread only."""

    __slots__ = ("_abandoned", "_error", "_order", "_waiters", "value")

    def __init__(self, value: int = 0) -> None:
        self.value = value
        self._waiters: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = count()
        self._abandoned = 0
        self._error: Exception | None = None

    def advance(self, value: int) -> bool:
        """Moves to `value` if that is further, and wakes everybody who waited for it. Returns whether it moved."""
        if value <= self.value:
            return False
        self.value = value
        waiters = self._waiters
        while waiters and waiters[0][0] <= value:
            future = heapq.heappop(waiters)[2]
            if future.done():
                self._abandoned -= 1
            else:
                future.set_result(None)
        return True

    def fail(self, error: Exception) -> None:
        """Wakes every waiter with `error`; later waiters get it at once, until `restart()`."""
        self._error = error
        waiters, self._waiters = self._waiters, []
        self._abandoned = 0
        for _, _, future in waiters:
            if not future.done():
                future.set_exception(error)

    def restart(self, value: int) -> None:
        """Begins again at `value`, which may be lower: the only way back, for a new leader epoch."""
        self._error = None
        self.value = value

    def lower(self, value: int) -> None:
        """Goes back, for a log that was cut below what counted: an unclean election. Waiters stay."""
        self.value = min(self.value, value)

    @property
    def waiting(self) -> int:
        """How many waiters are parked here."""
        return len(self._waiters) - self._abandoned

    async def reach(self, value: int, timeout_ms: float | None = None) -> None:
        """Returns once the number is at least `value`. Raises TimeoutError, or the error given to `fail()`."""
        if self._error is not None:
            raise self._error
        if self.value >= value:
            return
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        heapq.heappush(self._waiters, (value, next(self._order), future))
        timer = None if timeout_ms is None else loop.call_later(timeout_ms / 1000, _expire, future)
        try:
            await future
        except (TimeoutError, asyncio.CancelledError):
            self._abandon()
            raise
        finally:
            if timer is not None:
                timer.cancel()

    def _abandon(self) -> None:
        """A waiter gave up. Its entry stays in the heap until it is reached, or until half of the heap is like it."""
        self._abandoned += 1
        if self._abandoned * 2 > len(self._waiters):
            self._waiters = [entry for entry in self._waiters if not entry[2].done()]
            heapq.heapify(self._waiters)
            self._abandoned = 0


def _expire(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_exception(TimeoutError())
