"""The faults in force in one cluster: all its brokers look here, and the test changes it, each in a thread of its own.

The tuple of those that requests are compared with is replaced as a whole. How often a fault was applied, and which
requests wait for it, changes under a lock, and only when a request matches.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from enum import Enum, auto
from typing import Final

from odradek.testing.faults.fault import Fault, Kind
from odradek.testing.faults.fault_changes import FaultFunction, FaultStatus

__all__ = ["Entry", "FaultTable", "Held", "Outcome"]

STAYING: Final = frozenset({Kind.HALF_OPEN, Kind.STALL_FOLLOWER})
"""What these have done once goes on until it is undone."""


class Outcome(Enum):
    """How a request that waited goes on."""

    GO_ON = auto()
    CLOSE = auto()
    """Its connection ends."""


class Held:
    """A request that waits for its fault. It belongs to the loop of its broker."""

    __slots__ = ("_future", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._future: asyncio.Future[Outcome] = loop.create_future()

    async def wait(self, timeout_ms: float | None = None) -> Outcome:
        """How it goes on; GO_ON after `timeout_ms`, if that is given."""
        timer = None
        if timeout_ms is not None:
            timer = self._loop.call_later(timeout_ms / 1000.0, self._end, Outcome.GO_ON)
        try:
            return await self._future
        finally:
            if timer is not None:
                timer.cancel()

    def interrupt(self) -> None:
        """Its broker stops. In the loop's thread."""
        self._end(Outcome.CLOSE)

    def let_go(self, outcome: Outcome) -> None:
        """In any thread. Nothing happens when its broker is gone."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._end, outcome)

    def _end(self, outcome: Outcome) -> None:
        if not self._future.done():
            self._future.set_result(outcome)


class Entry:
    """One fault that is, or was, in force. Its attributes are the table's to change."""

    __slots__ = ("count", "fault", "fault_id", "function", "held", "is_undone")

    def __init__(self, fault_id: int, fault: Fault, function: FaultFunction | None) -> None:
        self.fault_id: Final = fault_id
        self.fault: Final = fault
        self.function: Final = function
        self.count = 0
        self.is_undone = False
        self.held: dict[Held, None] = {}

    @property
    def is_in_force(self) -> bool:
        """Whether it does anything yet, to requests that come or to those that it holds."""
        return not self.is_undone and (not self.is_used_up or bool(self.held) or self.fault.kind in STAYING)

    @property
    def is_used_up(self) -> bool:
        """Whether it is applied to no more requests."""
        times = self.fault.times
        return self.is_undone or (times is not None and self.count >= times)

    def __str__(self) -> str:
        return self.fault.text(self.count)


class FaultTable:
    """See the module: `FaultChanges`. Faults are known by numbers, for who changes them may be in another process."""

    def __init__(self) -> None:
        self.entries: tuple[Entry, ...] = ()
        """With which requests are compared, oldest first."""
        self.watchers: Final[list[Callable[[], object]]] = []
        """Called after `entries` has changed, in the thread that changes it."""
        self._known: dict[int, Entry] = {}
        self._next_id = 1
        self._lock = threading.RLock()

    # -- what the test does -----------------------------------------------------------------------------------------

    def add(self, fault: Fault, function: FaultFunction | None = None) -> int:
        """Puts it in force, and returns its number."""
        with self._lock:
            entry = Entry(self._next_id, fault, function)
            self._next_id += 1
            self._known[entry.fault_id] = entry
            self._replace((*self.entries, entry))
        return entry.fault_id

    def undo(self, fault_id: int) -> None:
        """It is applied no more, and who waits for it goes on, or is disconnected if it was half open. No error for one
        that was undone."""
        with self._lock:
            if (entry := self._known.get(fault_id)) is None:
                return
            entry.is_undone = True
            self._replace(tuple(each for each in self.entries if each is not entry))
            self._let_go(entry, len(entry.held))

    def release(self, fault_id: int, count: int | None = None) -> None:
        """Lets go the requests that it has held for longest, so many; None: all, and holds no more of them."""
        with self._lock:
            if count is None:
                self.undo(fault_id)
            elif (entry := self._known.get(fault_id)) is not None:
                self._let_go(entry, count)

    def clear(self) -> None:
        """Undoes all, and forgets that they were there."""
        with self._lock:
            for fault_id in list(self._known):
                self.undo(fault_id)
            self._known.clear()

    def status(self, fault_id: int) -> FaultStatus:
        """All zero for one that was cleared away."""
        with self._lock:
            entry = self._known.get(fault_id)
            return FaultStatus(0, 0, False) if entry is None else _status(entry)

    def in_force(self) -> list[tuple[int, Fault]]:
        """Those that do anything yet, oldest first."""
        with self._lock:
            return [(fault_id, entry.fault) for fault_id, entry in self._known.items() if entry.is_in_force]

    # -- what brokers do --------------------------------------------------------------------------------------------

    def take(self, entry: Entry) -> bool:
        """Whether it is applied to a request that matches, which counts then."""
        with self._lock:
            if entry.is_used_up:
                return False
            entry.count += 1
            if entry.is_used_up and entry.fault.kind not in STAYING:
                self._replace(tuple(each for each in self.entries if each is not entry))
            return True

    def hold(self, entry: Entry, held: Held) -> bool:
        """It waits from now on; False if the fault was undone since."""
        with self._lock:
            if entry.is_undone:
                return False
            entry.held[held] = None
            return True

    def forget(self, entry: Entry, held: Held) -> None:
        """It waits no longer."""
        with self._lock:
            entry.held.pop(held, None)

    def _let_go(self, entry: Entry, count: int) -> None:
        outcome = Outcome.CLOSE if entry.fault.kind is Kind.HALF_OPEN else Outcome.GO_ON
        for held in list(entry.held)[:count]:
            del entry.held[held]
            held.let_go(outcome)

    def _replace(self, entries: tuple[Entry, ...]) -> None:
        self.entries = entries
        for watcher in self.watchers:
            watcher()


def _status(entry: Entry) -> FaultStatus:
    return FaultStatus(entry.count, len(entry.held), entry.is_in_force)
