"""What clients have used of their limits, by whoever shares one; bounded, whatever clients call themselves.

A meter is forgotten when nothing that it has counted matters any more. A client may call itself by another name with
each request, and have a limit of its own by each: when there are OWNERS_MAX meters already, all newcomers share one, so
that nobody gains by being one too many.
"""

from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

from odradek.broker.quotas.limits import Owner

OWNERS_MAX: Final = 10_000
SWEEP_MS: Final = 1000
"""So often at most is looked for meters to forget: it takes a millisecond where there are many."""
OTHERS: Final = Owner("\0others", "\0others")
"""Those who share one meter."""

M = TypeVar("M")


class Meter(Generic[M]):
    """One limit's use. `stat` counts it; `silent_until_ms`: until then whoever shares it is to be silent."""

    __slots__ = ("last_ms", "limit", "silent_until_ms", "stat", "throttled_count", "throttled_ms")

    def __init__(self, stat: M, now_ms: int) -> None:
        self.stat = stat
        self.last_ms = now_ms
        self.limit = 0.0
        """The one that counted last."""
        self.silent_until_ms = 0
        self.throttled_ms = 0
        """In all, and how often: their quotient is Kafka's `throttle-time`."""
        self.throttled_count = 0

    def silence(self, silence_ms: int, now_ms: int) -> None:
        """Whoever has used it is told to be silent for so long."""
        self.silent_until_ms = max(self.silent_until_ms, now_ms + silence_ms)
        self.throttled_ms += silence_ms
        self.throttled_count += 1


class Meters(Generic[M]):
    """All of one kind."""

    __slots__ = ("_idle_ms", "_meters", "_new", "_owners_max", "_swept_ms")

    def __init__(self, new: Callable[[int], M], idle_ms: int, owners_max: int = OWNERS_MAX) -> None:
        """`new`: a stat from the present time. After `idle_ms` without use a stat is as good as new."""
        self._new = new
        self._idle_ms = idle_ms
        self._owners_max = owners_max
        self._meters: dict[Owner, Meter[M]] = {}
        self._swept_ms = 0

    def __len__(self) -> int:
        return len(self._meters)

    def of(self, owner: Owner, limit: float, now_ms: int) -> Meter[M]:
        """Where use of this owner's is to be counted."""
        meter = self._meters.get(owner) or self._newcomer(owner, now_ms)
        meter.last_ms = now_ms
        meter.limit = limit
        return meter

    def peek(self, owner: Owner) -> Meter[M] | None:
        """The owner's, if it has used anything."""
        if (meter := self._meters.get(owner)) is None and len(self._meters) > self._owners_max:
            meter = self._meters.get(OTHERS)
        return meter

    def busiest(self, count: int) -> Iterator[tuple[Owner, Meter[M]]]:
        """At most so many, those that were used last."""
        yield from sorted(self._meters.items(), key=lambda item: -item[1].last_ms)[:count]

    def _newcomer(self, owner: Owner, now_ms: int) -> Meter[M]:
        if now_ms - self._swept_ms >= SWEEP_MS:
            self._sweep(now_ms)
        if len(self._meters) >= self._owners_max:
            owner = OTHERS
            if (shared := self._meters.get(OTHERS)) is not None:
                return shared
        meter = self._meters[owner] = Meter(self._new(now_ms), now_ms)
        return meter

    def _sweep(self, now_ms: int) -> None:
        self._swept_ms = now_ms
        self._meters = {
            owner: meter
            for owner, meter in self._meters.items()
            if now_ms - max(meter.last_ms, meter.silent_until_ms) < self._idle_ms
        }
