"""Which transactional ids are looked at for expiry, and when: all of them, now and then, some in each step. Pure."""

from collections.abc import Iterable, Sequence
from typing import Final

LOOKED_AT_TOGETHER: Final = 50
"""So many ids are looked at in one step: the loop is everybody's."""


class Sweep:
    """Whether an id has expired is for the machine to see when it gets it: it may have come back meanwhile."""

    __slots__ = ("_left", "_next_ms")

    def __init__(self) -> None:
        self._left: list[str] = []
        self._next_ms: int | None = None

    def start(self, now_ms: int, interval_ms: int) -> None:
        """The first one comes an interval later."""
        self._next_ms = now_ms + interval_ms

    @property
    def next_deadline_ms(self) -> int | None:
        """When there is something to look at; None before `start`."""
        return 0 if self._left else self._next_ms

    def step(self, ids: Iterable[str], now_ms: int, interval_ms: int) -> Sequence[str]:
        """Those to look at now. `ids`: all, where a sweep begins."""
        if self._next_ms is not None and self._next_ms <= now_ms:
            self.start(now_ms, interval_ms)
            self._left = list(ids)
        taken = self._left[-LOOKED_AT_TOGETHER:]
        del self._left[-LOOKED_AT_TOGETHER:]
        return taken
