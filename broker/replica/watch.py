"""Waiting for news in many partitions at once: what a long-polling Fetch does between two readings.

The order matters: subscribe, then read, then wait. News that arrive while reading are then not lost. Another reading is
worth its time when enough bytes may have come, when a partition may hold more than the limits let through (a read that
is cut is answered at once), or when something else has changed. So a Fetch with a large `min_bytes` does not read
everything again for each small append.

Nobody counts the bytes between two offsets; what is known is how many bytes were appended, and when. What a reader
cannot see when it is appended (consumers stop at the high watermark, or before an open transaction) counts once the end
of what they may read moves, and it then counts for at least what it is: no reading that would be enough is missed.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from types import TracebackType

from odradek.broker.replica.isolation import Isolation
from odradek.broker.replica.partition import Partition

MANY_BYTES = 1 << 62
"""More than there are."""
NO_ROOMS: Mapping[Partition, int] = {}


_Reading = tuple[int, int, int, int, int]
"""Of a partition that is read: the end that the reader sees, the log's end, how many bytes were appended, and how often
anything else and the list of segments had changed."""


class _Seen:
    """One partition at its last reading, and how much has become readable since."""

    __slots__ = ("_pending", "_readable_bytes", "_segment_changes", "changes", "end_offset", "grown_bytes")

    def __init__(self, reading: _Reading) -> None:
        self._readable_bytes = -MANY_BYTES
        """Of all bytes that were appended, so many at least may be read."""
        self._pending: tuple[int, int] | None = None
        """A log end that the reader has not reached, and how many bytes were appended up to there."""
        self.read(reading)

    def read(self, reading: _Reading) -> None:
        """The partition is about to be read."""
        self.grown_bytes = 0
        """How many bytes more may be read since, at most."""
        self.end_offset, log_end_offset, appended_bytes, self.changes, self._segment_changes = reading
        if self.end_offset >= log_end_offset:
            self._readable_bytes = appended_bytes
            self._pending = None
            return
        if self._pending is not None and self.end_offset >= self._pending[0]:
            self._readable_bytes = self._pending[1]
            self._pending = None
        if self._pending is None:
            self._pending = log_end_offset, appended_bytes

    def grow(self, partition: Partition, end_offset: int) -> int:
        """Takes note that the partition may be read up to `end_offset`. Returns by how much `grown_bytes` grows."""
        if end_offset == self.end_offset:
            return 0
        before = self.grown_bytes
        self.grown_bytes = partition.reader.appended_bytes - self._readable_bytes
        return self.grown_bytes - before

    def has_rolled(self, partition: Partition, end_offset: int) -> bool:
        """Whether a segment may have begun since, or begins between the end at the last reading and `end_offset`: a
        read of the one before it is complete."""
        segments = partition.log.segments
        base_offsets = segments.base_offsets
        return segments.changes != self._segment_changes or (
            bisect_right(base_offsets, self.end_offset) != bisect_right(base_offsets, end_offset)
        )


class Watch:
    """Subscribed to its partitions from entry to exit of the `with` block."""

    __slots__ = (
        "_changed_since",
        "_first",
        "_future",
        "_grown_bytes",
        "_isolation",
        "_loop",
        "_missing_bytes",
        "_seen",
        "_urgent",
        "rooms",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        partitions: Iterable[Partition],
        isolation: Isolation = Isolation.HIGH_WATERMARK,
    ) -> None:
        self._loop = loop
        self._isolation = isolation
        self._first = {partition: self._reading(partition) for partition in partitions}
        self._seen: dict[Partition, _Seen] = {}
        """Those of which there was news."""
        self._changed_since: dict[Partition, _Seen] = {}
        self._grown_bytes = 0
        self._missing_bytes = 0
        self.rooms = NO_ROOMS
        """For how many bytes more a partition has room in the answer, where these are few. Set before the wait."""
        self._urgent = False
        self._future: asyncio.Future[None] | None = None

    def _reading(self, partition: Partition) -> _Reading:
        log = partition.log
        return (
            partition.reader.end_offset(self._isolation),
            log.log_end_offset,
            partition.reader.appended_bytes,
            partition.reader.changes,
            log.segments.changes,
        )

    def __enter__(self) -> "Watch":
        for partition in self._first:
            partition.reader.watchers[self._changed] = None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for partition in self._first:
            partition.reader.watchers.pop(self._changed, None)

    def mark(self) -> None:
        """Everything up to now is about to be read."""
        self._urgent = False
        self._grown_bytes = 0
        for partition, seen in self._changed_since.items():
            seen.read(self._reading(partition))
        self._changed_since.clear()

    def interrupt(self) -> None:
        """Ends the wait at once: the server stops."""
        self._urgent = True
        self._wake()

    async def wait(self, missing_bytes: int, timeout_ms: float) -> bool:
        """Returns True once `missing_bytes` more may be readable, or in one partition more than there is room for, or
        something else changed; False when `timeout_ms` have passed."""
        self._missing_bytes = missing_bytes
        for partition, seen in self._changed_since.items():
            self._urgent |= seen.grown_bytes > self.rooms.get(partition, MANY_BYTES)
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
        seen = self._seen.get(partition)
        if seen is None:
            seen = self._seen[partition] = _Seen(self._first[partition])
        self._changed_since[partition] = seen
        end_offset = partition.reader.end_offset(self._isolation)
        self._grown_bytes += seen.grow(partition, end_offset)
        if self._future is None or not self._is_worth_reading:  # what is missing is known while somebody waits
            self._urgent = self._urgent or (
                # News without bytes: leadership lost, topic deleted, log start moved, log cut.
                partition.reader.changes != seen.changes
                or seen.grown_bytes > self.rooms.get(partition, MANY_BYTES)
                or seen.has_rolled(partition, end_offset)
            )
        if self._is_worth_reading:
            self._wake()

    def _wake(self) -> None:
        if self._future is not None and not self._future.done():
            self._future.set_result(None)
