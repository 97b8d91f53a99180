"""When a member of a classic group sends its next heartbeat: after the interval, or after a failure by backoff."""

from math import inf

from odradek.client.consumer.membership.requests import Heartbeat
from odradek.client.network.backoff import Backoff

__all__ = ["Heartbeats"]


class Heartbeats:
    """One at a time."""

    def __init__(self, interval_ms: float, backoff: Backoff) -> None:
        self._interval_ms = interval_ms
        self._backoff = backoff
        self._due_ms = inf
        self._failures = 0
        self._under_way: Heartbeat | None = None

    @property
    def due_ms(self) -> float:
        """Infinite while one is under way."""
        return inf if self._under_way is not None else self._due_ms

    @property
    def is_under_way(self) -> bool:
        return self._under_way is not None

    def restart(self, now_ms: float) -> None:
        """The coordinator has just heard of the member otherwise."""
        self._failures = 0
        self._due_ms = now_ms + self._interval_ms

    def sent(self, heartbeat: Heartbeat, now_ms: float) -> None:
        self._under_way = heartbeat
        self._due_ms = now_ms + self._interval_ms

    def answered(self, heartbeat: Heartbeat) -> bool:
        """False: nobody waits for that answer any more."""
        if heartbeat is not self._under_way:
            return False
        self._under_way = None
        return True

    def succeeded(self) -> None:
        self._failures = 0

    def failed(self, now_ms: float) -> None:
        self._due_ms = now_ms + self._backoff.after_ms(self._failures)
        self._failures += 1

    def forget(self) -> None:
        """An answer would be about a generation that the member gives up."""
        self._under_way = None
