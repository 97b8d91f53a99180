"""Requests that wait for a transaction to be complete, by transactional id. Pure.

Nothing of them is in a record: when another broker coordinates, their connections ask that one.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from odradek.broker.coordinator.machine import Now, Waiting


class HeldRequest(NamedTuple):
    operation: Callable[[Now], Any]
    """What it asks for."""
    waiting: Waiting[Any]
    until_ms: int
    """By `Now.monotonic_ms`; then it is refused."""


class Held:
    """In the order in which they came, which is that of `until_ms`, too."""

    __slots__ = ("_by_id",)

    def __init__(self) -> None:
        self._by_id: dict[str, deque[HeldRequest]] = {}

    def add(self, transactional_id: str, request: HeldRequest) -> None:
        self._by_id.setdefault(transactional_id, deque()).append(request)

    def deadline_ms(self, transactional_id: str) -> int | None:
        """Until when the first of them waits; None where there is none."""
        held = self._by_id.get(transactional_id)
        return held[0].until_ms if held else None

    def take(self, transactional_id: str) -> Sequence[HeldRequest]:
        """All of them; none waits any more."""
        return self._by_id.pop(transactional_id, ())

    def take_late(self, transactional_id: str, now_ms: int) -> Sequence[HeldRequest]:
        """Those that have waited for long enough."""
        held = self._by_id.get(transactional_id, deque())
        late: list[HeldRequest] = []
        while held and held[0].until_ms <= now_ms:
            late.append(held.popleft())
        if not held:
            self._by_id.pop(transactional_id, None)
        return late
