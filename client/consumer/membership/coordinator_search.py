"""Which broker coordinates the group, and when to ask for it.

It is asked for when it is needed and not known. After a failure, or when the one that was found proves to be another or
cannot be reached, the next question waits for the backoff; that begins again once a coordinator has done its work.
"""

from math import inf

from odradek.client.consumer.membership.requests import FindCoordinator
from odradek.client.network.backoff import Backoff

__all__ = ["CoordinatorSearch"]


class CoordinatorSearch:
    """One question at a time."""

    def __init__(self, group_id: str, backoff: Backoff) -> None:
        self.node_id: int | None = None
        self._group_id = group_id
        self._backoff = backoff
        self._failures = 0
        self._due_ms = -inf
        self._asked: FindCoordinator | None = None

    @property
    def due_ms(self) -> float:
        """When to ask next, if a coordinator is needed; infinite while it is known, or asked for."""
        if self.node_id is not None or self._asked is not None:
            return inf
        return self._due_ms

    def ask(self) -> FindCoordinator:
        assert self.node_id is None and self._asked is None
        self._asked = FindCoordinator(self._group_id)
        return self._asked

    def is_asked(self, request: FindCoordinator) -> bool:
        return request is self._asked

    def found(self, node_id: int) -> None:
        self._asked = None
        self.node_id = node_id

    def failed(self, now_ms: float) -> None:
        self._asked = None
        self._wait(now_ms)

    def lost(self, now_ms: float) -> None:
        """It is another broker, or cannot be reached or used at the moment."""
        if self.node_id is not None:
            self.node_id = None
            self._wait(now_ms)

    def proved(self) -> None:
        """The coordinator has answered as one."""
        self._failures = 0

    def _wait(self, now_ms: float) -> None:
        self._due_ms = now_ms + self._backoff.after_ms(self._failures)
        self._failures += 1
