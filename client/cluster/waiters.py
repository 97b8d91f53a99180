"""Tasks that wait until something has changed, or until a moment comes. Each has a future of its own.

So one that is cancelled takes nobody along, and one that is woken looks for itself whether what it waits for is there.
"""

import asyncio
from math import inf

from odradek.runtime.environment import Environment

__all__ = ["Waiters"]

WAIT_MIN_MS = 1.0
"""A timer may ring a little early (uvloop counts whole milliseconds, and seconds are no whole milliseconds). Who then
finds that there is a moment left must not wait for that alone, over and over again."""


class Waiters:
    """All who wait for one kind of news."""

    __slots__ = ("_environment", "_futures")

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._futures: dict[asyncio.Future[None], None] = {}

    def __len__(self) -> int:
        return len(self._futures)

    def wake(self) -> None:
        """There is news."""
        for future in self._futures:
            _wake(future)

    async def wait(self, until_ms: float = inf) -> None:
        """Returns at the next news, or when `until_ms` of the monotonic clock has come."""
        loop = self._environment.loop
        future: asyncio.Future[None] = loop.create_future()
        self._futures[future] = None
        timer = None
        if until_ms < inf:
            at_ms = max(until_ms, self._environment.monotonic_ms() + WAIT_MIN_MS)
            timer = loop.call_at(at_ms / 1000.0, _wake, future)
        try:
            await future
        finally:
            del self._futures[future]
            if timer is not None:
                timer.cancel()


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
