"""How long to wait after failures: doubled each time, with chance, up to a maximum (ExponentialBackoff.java, KIP-580).

    wait = min(first × 2^failures × (0.8 … 1.2), max)

Chance keeps clients that lost the same broker from coming back all at once; it never leads over the maximum. Where the
maximum is not above the first wait, every wait is the maximum. No wait is under a millisecond, whatever was configured:
a loop of failures without any would take a whole processor.
"""

from collections.abc import Callable
from math import exp2, log2
from typing import Final

JITTER: Final = 0.2
WAIT_MIN_MS: Final = 1.0


class Backoff:
    """`random` gives numbers from 0 up to 1."""

    __slots__ = ("_doublings_max", "_first_ms", "_max_ms", "_random")

    def __init__(self, first_ms: float, max_ms: float, random: Callable[[], float]) -> None:
        self._max_ms = max(float(max_ms), WAIT_MIN_MS)
        self._first_ms = min(max(float(first_ms), WAIT_MIN_MS), self._max_ms)
        self._random = random
        self._doublings_max = log2(self._max_ms / self._first_ms)

    def after_ms(self, failures: int) -> float:
        """The wait after one more failure, when there have been `failures` before it."""
        if self._doublings_max == 0.0:
            return self._max_ms
        # The exponent is bounded, not the result: 2.0 ** 1024 overflows.
        whole_ms = self._first_ms * exp2(min(failures, self._doublings_max))
        return max(WAIT_MIN_MS, min(whole_ms * (1.0 - JITTER + 2.0 * JITTER * self._random()), self._max_ms))
