"""How long a broker may act on what only a lease promises. Pure.

A lease lets the store forget a broker that is cut off, and others take its place. What epochs cannot protect ends with
it: acks=0 and acks=1 on a leader that is cut off, and what its consumers read. So such a request asks first, each time,
by the clock and never by a timer alone: a process that was stopped past its lease serves what lies in its buffers
before its timers ring.

The end is the moment at which the last answered renewal was *sent*, plus the time that was granted, less a tenth for
clocks that run at different speeds; on a clock that runs on while the machine sleeps.
"""

from typing import Final

SAFE_PART: Final = 0.9


class LeaseTerm:
    """The time until which a lease is certain. One that does not lapse, in a store of this process, never ends."""

    __slots__ = ("_ends_ms",)

    def __init__(self) -> None:
        self._ends_ms = 0.0

    def renewed(self, sent_ms: float, ttl_ms: float) -> None:
        """A renewal that was sent then has been answered. Never makes it shorter."""
        self._ends_ms = max(self._ends_ms, sent_ms + SAFE_PART * ttl_ms)

    def never_ends(self) -> None:
        self._ends_ms = float("inf")

    def end(self) -> None:
        """It is over, or given back."""
        self._ends_ms = 0.0

    def is_over(self, now_ms: float) -> bool:
        return now_ms >= self._ends_ms
