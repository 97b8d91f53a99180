"""Waiting for news in many partitions at once: what a long-polling Fetch does between two readings.

The order matters: subscribe, then read, then wait. News that arrive while reading are then not lost. A wake-up is
worth reading again only when enough bytes may have come, so that a Fetch with a large `min_bytes` does not read
everything anew for each small append.
"""

import asyncio
from collections.abc import Iterable
from types import TracebackType

from broker.replication.partition import Partition


class Watch:
    """Subscribed to its partitions from entry to exit of the `with` block."""

    __slots__ = ("_future", "_grown_bytes", "_loop", "_missing_bytes", "_seen_bytes", "_urgent")

    def __init__(self, loop: asyncio.AbstractEventLoop, partitions: Iterable[Partition]) -> None:
        self._loop = loop
        self._seen_bytes = {partition: partition.appended_bytes for partition in partitions}
        self._grown_bytes = 0
        self._missing_bytes = 0
        self._urgent = False
        self._future: asyncio.Future[None] | None = None

    def __enter__(self) -> "Watch":
        for partition in self._seen_bytes:
            partition.watchers[self._changed] = None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for partition in self._seen_bytes:
            partition.watchers.pop(self._changed, None)

    def mark(self) -> None:
        """Everything up to now is about to be read."""
        self._urgent = False
        self._grown_bytes = 0
        for partition in self._seen_bytes:
            self._seen_bytes[partition] = partition.appended_bytes

    def interrupt(self) -> None:
        """Ends the wait at once: the server stops."""
        self._urgent = True
        self._wake()

    async def wait(self, missing_bytes: int, timeout_ms: float) -> bool:
        """Returns True once `missing_bytes` more may be readable or something else changed; False when `timeout_ms`
        have passed."""
        self._missing_bytes = missing_bytes
        if self._is_worth_reading:
            return True
        self._future = self._loop.create_future()
        timer = self._loop.call_later(timeout_ms / 1000, self._wake)
        try:
            await self._future
        finally:
            timer.cancel()
            self._future = None
        return self._is_worth_reading

    @property
    def _is_worth_reading(self) -> bool:
        return self._urgent or self._grown_bytes >= self._missing_bytes

    def _changed(self, partition: Partition) -> None:
        grown_bytes = partition.appended_bytes - self._seen_bytes[partition]
        self._seen_bytes[partition] += grown_bytes
        self._grown_bytes += grown_bytes
        # News without bytes: leadership lost, topic deleted, log start moved, high watermark moved by a follower.
        self._urgent |= grown_bytes == 0
        if self._is_worth_reading:
            self._wake()

    def _wake(self) -> None:
        if self._future is not None and not self._future.done():
            self._future.set_result(None)
