"""Deadlines of many things, most of which are put off again and again: sessions, by heartbeats. Pure.

A deadline that is put off stays where it is in the heap, and is looked at again when its old time has come: a heartbeat
costs a lookup, whatever the number of members. One that is cancelled stays there, too, until its time comes or the
cancelled outnumber the others: members that come and go a thousand times a second, each with a session of half an
hour, leave nothing behind.
"""

import heapq
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)

CANCELLED_MAX: Final = 64
"""So many cancelled deadlines may stand in the heap, however few others there are."""


class Timers(Generic[K]):
    """At most one deadline for each key, in milliseconds of one clock."""

    __slots__ = ("_count", "_deadlines", "_heap", "_queued")

    def __init__(self) -> None:
        self._deadlines: dict[K, int] = {}
        self._queued: dict[K, int] = {}
        """The earliest time at which each key stands in the heap."""
        self._heap: list[tuple[int, int, K]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._deadlines)

    def __contains__(self, key: K) -> bool:
        return key in self._deadlines

    def deadline_ms(self, key: K) -> int | None:
        """None where there is none."""
        return self._deadlines.get(key)

    def set(self, key: K, deadline_ms: int) -> None:
        """Instead of the deadline that the key had, if any."""
        self._deadlines[key] = deadline_ms
        queued_ms = self._queued.get(key)
        if queued_ms is None or deadline_ms < queued_ms:
            self._push(key, deadline_ms)

    def cancel(self, key: K) -> None:
        """Does nothing where there is none."""
        if self._deadlines.pop(key, None) is not None and len(self._heap) > 2 * len(self._deadlines) + CANCELLED_MAX:
            self._rebuild()

    def pop_due(self, now_ms: int) -> K | None:
        """The key whose deadline comes first, if that is not after `now_ms`; it has none any more."""
        self._settle()
        if not self._heap or self._heap[0][0] > now_ms:
            return None
        _, _, key = heapq.heappop(self._heap)
        del self._queued[key], self._deadlines[key]
        return key

    @property
    def next_deadline_ms(self) -> int | None:
        """None where there is no deadline."""
        self._settle()
        return self._heap[0][0] if self._heap else None

    def _settle(self) -> None:
        """Until the heap begins with a deadline that counts."""
        while self._heap:
            queued_ms, _, key = self._heap[0]
            deadline_ms = self._deadlines.get(key)
            if queued_ms == self._queued.get(key) and queued_ms == deadline_ms:
                return
            heapq.heappop(self._heap)
            if queued_ms == self._queued.get(key):
                del self._queued[key]
                if deadline_ms is not None:
                    self._push(key, deadline_ms)

    def _rebuild(self) -> None:
        """Without what does not count. A heap is rebuilt after as many cancellations as it keeps deadlines, or more."""
        self._queued = {key: queued_ms for key, queued_ms in self._queued.items() if key in self._deadlines}
        self._heap = [entry for entry in self._heap if self._queued.get(entry[2]) == entry[0]]
        heapq.heapify(self._heap)

    def _push(self, key: K, deadline_ms: int) -> None:
        self._queued[key] = deadline_ms
        self._count += 1
        heapq.heappush(self._heap, (deadline_ms, self._count, key))
