"""The metadata in memory for brokers of one process whose loops run in threads of their own: one state behind a lock,
and a store for each loop, whose watchers are woken in that loop's thread.

    memory = SharedMemory()
    store = memory.open(loop)           # for what runs in that loop
    memory.end_leases(store)            # as a store elsewhere ends those of a broker that it has not heard of

Leases live until somebody ends them, never by the clock: a thread that is kept from running for seconds loses nothing.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Final

from odradek.broker.cluster.local import LocalStore
from odradek.broker.cluster.state import Prepared, State
from odradek.broker.cluster.store import Change, Entry, Lease, Snapshot, StoreClosed

__all__ = ["SharedMemory", "SharedMemoryStore"]


class _LockedState(State):
    """What several threads read, and change one after the other."""

    __slots__ = ("lock",)

    def __init__(self, entries: dict[str, Entry], revision: int) -> None:
        super().__init__(entries, revision)
        self.lock: Final = threading.RLock()

    def read(self, prefix: str) -> Snapshot:
        with self.lock:
            return super().read(prefix)

    def changes(self, prefix: str, after: int) -> list[Change]:
        with self.lock:
            return super().changes(prefix, after)

    def grant(self) -> int:
        with self.lock:
            return super().grant()


class SharedMemory:
    """One state, and the stores that show it."""

    def __init__(
        self,
        entries: dict[str, Entry] | None = None,
        revision: int = 0,
        on_change: Callable[[Prepared], object] | None = None,
    ) -> None:
        """`entries` and `revision`: with what it begins. `on_change`: told of each change before it counts, in any
        thread, one after the other; where it raises, nothing has changed."""
        self._state = _LockedState({} if entries is None else entries, revision)
        self._on_change = on_change
        self._stores: dict[SharedMemoryStore, None] = {}

    def open(self, loop: asyncio.AbstractEventLoop) -> "SharedMemoryStore":
        """A store to be used in this loop's thread, until it is closed or cut off."""
        store = SharedMemoryStore(self, self._state, loop)
        with self._state.lock:
            self._stores[store] = None
        return store

    @property
    def revision(self) -> int:
        return self._state.revision

    def together(self) -> AbstractContextManager[bool]:
        """A block whose changes other loops see all at once, behind it. Nothing may be waited for within."""
        return self._state.lock

    def change(self, prepare: Callable[[], Prepared | None], by: "SharedMemoryStore | None" = None) -> int:
        """Prepares and applies a change, in any thread, and returns its revision; everybody is told but `by`. Raises
        what `prepare` raises."""
        state = self._state
        with state.lock:
            if (prepared := prepare()) is not None:
                if self._on_change is not None:
                    self._on_change(prepared)
                state.apply(prepared)
                for store in list(self._stores):
                    if store is not by:
                        store.tell(state.revision)
            return state.revision

    def end_leases(self, store: "SharedMemoryStore") -> None:
        """Ends all that this store has granted, in any thread, and deletes what stands under them."""
        for lease_id in list(store.granted):
            store.granted.discard(lease_id)
            self.change(partial(self._ended, lease_id))

    def forget(self, store: "SharedMemoryStore") -> None:
        """It is told of nothing more."""
        with self._state.lock:
            self._stores.pop(store, None)

    def _ended(self, lease_id: int) -> Prepared | None:
        self._state.end_lease(lease_id)
        return self._state.prepare_end(lease_id)


class SharedMemoryStore(LocalStore):
    """What one loop sees of it: a `MetadataStore`."""

    def __init__(self, memory: SharedMemory, state: _LockedState, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(state)
        self._memory = memory
        self._loop = loop
        self.granted: Final[set[int]] = set()
        """The leases that it has granted and nobody has ended."""

    async def lease(self, ttl_ms: int) -> Lease:
        lease = await super().lease(ttl_ms)
        self.granted.add(lease.lease_id)
        return lease

    async def revoke(self, lease_id: int) -> None:
        await super().revoke(lease_id)
        self.granted.discard(lease_id)

    async def close(self) -> None:
        self._memory.forget(self)
        await super().close()

    def cut_off(self) -> None:
        """Its broker is gone, in the middle of whatever it did: nothing that still runs of it changes anything. In any
        thread. Its leases stay until `SharedMemory.end_leases`."""
        self._memory.forget(self)
        self._is_closed = True

    def tell(self, revision: int) -> None:
        """For `SharedMemory`: something has changed. In any thread."""
        try:
            self._loop.call_soon_threadsafe(self._revision.advance, revision)
        except RuntimeError:  # the loop is closed: nobody is there to be told
            self._memory.forget(self)

    async def _change(self, prepare: Callable[[], Prepared | None]) -> int:
        def prepare_if_open() -> Prepared | None:
            if self._is_closed:  # since the lock was asked for
                raise StoreClosed("the metadata store is closed")
            return prepare()

        revision = self._memory.change(prepare_if_open, by=self)
        self._revision.advance(revision)
        return revision
