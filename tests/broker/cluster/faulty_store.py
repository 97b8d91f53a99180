"""One broker's way to the metadata store, on which things happen: answers are lost, delayed, or never given.

    store = MemoryStore()
    mine, yours = FaultyStore(store), FaultyStore(store)     # two brokers
    mine.fates.append(Fate.LOST)                             # its next commit is applied, and it hears an error
    mine.is_cut = True                                       # nothing gets through, leases are not renewed
    mine.blind()                                             # its watch stands still, until `see()`

Leases end by themselves, on the loop's time, as those of a store on another machine.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import suppress
from enum import Enum

from odradek.broker.cluster.local import LocalLease, LocalStore
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.store import Change, Conflict, Lease, LeaseLost, Snapshot, Txn


class Fate(Enum):
    """What becomes of one commit."""

    ANSWERED = "it is applied, and answered"
    LOST = "it is applied, and the answer is lost"
    REFUSED = "it never arrives, which looks the same"
    LATE = "it arrives when the sender has given up: with the next `deliver()`"
    HELD = "it arrives, and is answered, with the next `deliver()`"


class FaultyStore:
    """A `MetadataStore` over another one that others may use, too."""

    def __init__(self, store: LocalStore | None = None) -> None:
        self.store: LocalStore = MemoryStore() if store is None else store
        self.fates: deque[Fate] = deque()
        """Of the next commits; ANSWERED for all that come behind them."""
        self.is_cut = False
        self.commits: list[Txn] = []
        """All that were asked for."""
        self.leases: list[LapsingLease] = []
        self.renewals: deque[tuple[float, bool]] = deque()
        """Of the next ones: how many ms the answer takes, and whether there is one, or it never arrived."""
        self.answer_ms = 0.0
        """How long the answer to a commit is on its way, while those who watch have heard of it."""
        self._under_way: list[tuple[Txn, asyncio.Future[None]]] = []
        self._sees = asyncio.Event()
        self._sees.set()

    # -- what happens to it --------------------------------------------------------------------------------------

    def blind(self) -> None:
        self._sees.clear()

    def see(self) -> None:
        self._sees.set()

    @property
    def under_way_count(self) -> int:
        return len(self._under_way)

    async def deliver(self) -> list[Conflict | LeaseLost | None]:
        """Lets what is under way arrive; what came of each late one."""
        arriving, self._under_way = self._under_way, []
        results: list[Conflict | LeaseLost | None] = []
        for txn, answer in arriving:
            if not answer.done():
                answer.set_result(None)
                continue
            try:
                await self.store.commit(txn)
            except (Conflict, LeaseLost) as error:
                results.append(error)
            else:
                results.append(None)
        return results

    # -- the store -----------------------------------------------------------------------------------------------

    async def read(self, prefix: str) -> Snapshot:
        self.require_way()
        return await self.store.read(prefix)

    async def commit(self, txn: Txn) -> int:
        self.commits.append(txn)
        self.require_way()
        match self.fates.popleft() if self.fates else Fate.ANSWERED:
            case Fate.LOST:
                with suppress(Conflict, LeaseLost):
                    await self.store.commit(txn)
                raise OSError("the answer is lost")
            case Fate.REFUSED:
                raise OSError("the store does not answer")
            case Fate.LATE:
                given_up: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                given_up.set_result(None)
                self._under_way.append((txn, given_up))
                raise OSError("the store does not answer")
            case Fate.HELD:
                answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._under_way.append((txn, answer))
                await answer
            case Fate.ANSWERED:
                pass
        revision = await self.store.commit(txn)
        if self.answer_ms:
            await asyncio.sleep(self.answer_ms / 1000)
        return revision

    async def watch(self, prefix: str, after: int) -> AsyncGenerator[Change, None]:
        async for change in self.store.watch(prefix, after):
            await self._sees.wait()
            yield change

    async def lease(self, ttl_ms: int) -> Lease:
        self.require_way()
        lease = LapsingLease(self, await self.store.lease(ttl_ms))
        self.leases.append(lease)
        return lease

    async def close(self) -> None:
        for lease in self.leases:
            lease.forget()
        await self.store.close()

    def require_way(self) -> None:
        if self.is_cut:
            raise OSError("the store does not answer")


class LapsingLease:
    """A lease that ends when it was not renewed in time."""

    lapses = True

    def __init__(self, way: FaultyStore, lease: Lease) -> None:
        assert isinstance(lease, LocalLease)
        self._way = way
        self._lease = lease
        self._loop = asyncio.get_running_loop()
        self._ending: asyncio.Task[None] | None = None
        self._timer = self._loop.call_later(self.ttl_ms / 1000, self._end)

    @property
    def lease_id(self) -> int:
        return self._lease.lease_id

    @property
    def ttl_ms(self) -> int:
        return self._lease.ttl_ms

    async def renew(self) -> None:
        self._way.require_way()
        delay_ms, is_answered = self._way.renewals.popleft() if self._way.renewals else (0.0, True)
        if is_answered:
            await self._lease.renew()
            self._timer.cancel()
            self._timer = self._loop.call_later(self.ttl_ms / 1000, self._end)
        if delay_ms:
            await asyncio.sleep(delay_ms / 1000)
        if not is_answered:
            raise OSError("the store does not answer")

    async def revoke(self) -> None:
        self._way.require_way()
        self._timer.cancel()
        await self._lease.revoke()

    def forget(self) -> None:
        """The test is over."""
        self._timer.cancel()

    def _end(self) -> None:
        self._ending = self._loop.create_task(self._lease.revoke(), name=f"lease {self.lease_id} ends")
