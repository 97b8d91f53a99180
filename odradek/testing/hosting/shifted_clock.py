"""The time of day in a test's cluster: a test can move it, and what freezes the program's clocks does not."""

import os
import tempfile
import time

CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Libraries that replace clocks in tests (freezegun, time-machine) leave `clock_gettime` of this one alone."""


class ShiftedClock:
    """One for all brokers of a cluster. It goes on from the time of day at which it was made."""

    __slots__ = ("_base_ns", "_shift_ns")

    def __init__(self) -> None:
        self._base_ns = _time_of_day_ns() - time.clock_gettime_ns(CLOCK)
        self._shift_ns = 0

    def now_ns(self) -> int:
        """Nanoseconds since 1970."""
        return self._base_ns + time.clock_gettime_ns(CLOCK) + self._shift_ns

    def now_ms(self) -> int:
        """Milliseconds since 1970."""
        return self.now_ns() // 1_000_000

    def shift(self, by_s: float) -> None:
        """Moves it forward, or back where that is negative."""
        self._shift_ns += round(by_s * 1e9)


def _time_of_day_ns() -> int:
    """As files get it, a few milliseconds late at most: all of Python's own clocks may be frozen at this moment."""
    try:
        with tempfile.TemporaryFile(buffering=0) as file:
            file.write(b"now")
            return os.fstat(file.fileno()).st_mtime_ns
    except OSError:  # no file can be written; then the program's clock has to do
        return time.time_ns()
