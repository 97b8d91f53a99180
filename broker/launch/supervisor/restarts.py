"""When a process that died is started again, and when it is left down. Pure."""

from collections import deque
from typing import Final

DEATHS_MAX: Final = 5
WITHIN_MS: Final = 60_000.0
DELAY_MS: Final = 100.0
"""Before the first start; doubled with each death within the minute."""


class Restarts:
    """The deaths of one process."""

    __slots__ = ("_deaths_ms",)

    def __init__(self) -> None:
        self._deaths_ms: deque[float] = deque()

    def died(self, now_ms: float) -> float | None:
        """How long to wait before it is started again, in milliseconds; None: it is to be left down, for it has died
        DEATHS_MAX times within a minute."""
        while self._deaths_ms and now_ms - self._deaths_ms[0] > WITHIN_MS:
            self._deaths_ms.popleft()
        self._deaths_ms.append(now_ms)
        count = len(self._deaths_ms)
        return None if count >= DEATHS_MAX else DELAY_MS * 2 ** (count - 1)
