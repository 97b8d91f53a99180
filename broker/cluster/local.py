"""What the metadata stores in this process share: reading, watching and leases, over a `State`.

A watcher holds a revision and nothing else: changes are read from the state's history, so a slow one costs no memory
and is told `Compacted` when it falls too far behind.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable

from odradek.broker.cluster.state import Prepared, State
from odradek.broker.cluster.store import Change, Lease, LeaseLost, Snapshot, StoreClosed, Txn
from odradek.runtime.progress import Progress


class LocalLease:
    """A lease that lives until it is revoked, or as long as this process."""

    __slots__ = ("_store", "lapses", "lease_id", "ttl_ms")

    def __init__(self, store: "LocalStore", lease_id: int, ttl_ms: int) -> None:
        self._store = store
        self.lease_id = lease_id
        self.ttl_ms = ttl_ms
        self.lapses = False

    async def renew(self) -> None:
        await self._store.renew(self.lease_id)

    async def revoke(self) -> None:
        await self._store.revoke(self.lease_id)


class LocalStore(ABC):
    """A `MetadataStore` for the brokers of one process."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._revision = Progress(state.revision)
        self._is_closed = False

    @abstractmethod
    async def _change(self, prepare: Callable[[], Prepared | None]) -> int:
        """Prepares and applies one change with no other in between, and returns its revision."""

    async def read(self, prefix: str) -> Snapshot:
        self._check_open()
        return self._state.read(prefix)

    async def commit(self, txn: Txn) -> int:
        self._check_open()
        return await self._change(lambda: self._state.prepare(txn))

    async def watch(self, prefix: str, after: int) -> AsyncGenerator[Change, None]:
        while not self._has_ended():
            revision = self._state.revision  # more may happen while we yield
            for change in self._state.changes(prefix, after):
                yield change
                if self._has_ended():
                    return
                after = change.revision  # past `revision`, where another thread has changed something in between
            after = max(after, revision)
            try:
                await self._revision.reach(after + 1)
            except StoreClosed:
                return

    async def lease(self, ttl_ms: int) -> Lease:
        self._check_open()
        return LocalLease(self, self._state.grant(), ttl_ms)

    async def renew(self, lease_id: int) -> None:
        """For `LocalLease`."""
        self._check_open()
        if not self._state.is_granted(lease_id):
            raise LeaseLost(f"lease {lease_id} has ended")

    async def revoke(self, lease_id: int) -> None:
        """For `LocalLease`."""
        self._check_open()
        self._state.end_lease(lease_id)
        await self._change(lambda: self._state.prepare_end(lease_id))

    async def close(self) -> None:
        self._is_closed = True
        self._revision.fail(StoreClosed("the metadata store is closed"))

    def _apply(self, prepared: Prepared) -> None:
        self._state.apply(prepared)
        self._revision.advance(self._state.revision)

    def _has_ended(self) -> bool:
        return self._is_closed

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreClosed("the metadata store is closed")
