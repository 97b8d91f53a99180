"""How fast `produce --rate N` sends: evenly, and at most N records in any second, also after a pause. Pure.

A record is due 1/N seconds after the one before. Where one is late because a timer was, the next ones come sooner; time
that passed without input, or while nothing could be sent, is not made up for. Beside that the last second counts: while
N records were sent in it, none is.
"""

from collections import deque
from math import ceil
from typing import Final

__all__ = ["RATE_MAX", "RATE_MIN", "Pace"]

RATE_MIN: Final = 0.001
RATE_MAX: Final = 1e9
TIMER_MS: Final = 2.0
"""Timers are not finer: who is early by less does not wait, and who is late by more has paused."""
SECOND_MS: Final = 1000.0
GROUP_MS: Final = 1.0
"""Records sent within this are remembered together, by the time of the last."""


class Pace:
    """Asked before each record, and told after it. A second has ceil(`per_second`) records at most."""

    def __init__(self, per_second: float, now_ms: float) -> None:
        self._interval_ms = SECOND_MS / per_second
        self._limit = ceil(per_second)
        self._due_ms = now_ms
        self._sent: deque[list[float]] = deque()  # first time, last time, records; of the last second
        self._count = 0.0  # of these records

    def wait_ms(self, now_ms: float) -> float:
        """How long the next record has to wait; 0: not at all."""
        while self._sent and self._sent[0][1] <= now_ms - SECOND_MS:
            self._count -= self._sent.popleft()[2]
        if self._count >= self._limit:
            return max(self._sent[0][1] + SECOND_MS, self._due_ms) - now_ms
        early_ms = self._due_ms - now_ms
        return early_ms if early_ms > TIMER_MS else 0.0

    def sent(self, now_ms: float) -> None:
        """A record has been sent."""
        self._due_ms = max(self._due_ms, now_ms - TIMER_MS) + self._interval_ms
        if self._sent and now_ms - self._sent[-1][0] < GROUP_MS:
            self._sent[-1][1:] = now_ms, self._sent[-1][2] + 1
        else:
            self._sent.append([now_ms, now_ms, 1.0])
        self._count += 1
