"""A store that can be set back, with brokers on it, in the smallest form: what each knows, and what is really there.

    world = World()
    world.start(1); world.write(1); world.look(1); world.record(1)     # a process, a commit, its image, its disk
    world.save(); world.set_back(0); world.write_foreign(5)            # a snapshot, and back to it

`World` notes all that is written, by whomever, in order. So it can say of each who is let in, or goes on, whether the
commits that he knows of are in the store's past (`holds`), and whether the store is just what he knew, and what came
then (`continues`). It does not take any other judge's word.
"""

from collections.abc import AsyncGenerator, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from odradek.broker.cluster.lineage import KnownHistory, Lineage, contradiction, start_contradiction
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.stamped_store import StampedStore
from odradek.broker.cluster.state import State
from odradek.broker.cluster.store import Change, Conflict, Entry, Lease, Snapshot, StoreWentBack, Txn, Unknown

T = TypeVar("T")

FOREIGN = "foreign"


def done(work: Coroutine[Any, Any, T]) -> T:
    """What comes of it; a store in memory never waits."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("it waits")


class OldStore(MemoryStore):
    """One that becomes what it was."""

    def saved(self) -> tuple[dict[str, Entry], int]:
        return dict(self._state.entries), self._state.revision

    def become(self, entries: dict[str, Entry], revision: int) -> None:
        self._state = State(dict(entries), revision)


@dataclass(slots=True)
class Knowledge:
    """What somebody knows, and all that had been written when he learned it."""

    followed: KnownHistory = field(default_factory=KnownHistory)
    past: tuple[str, ...] = ()


class Way:
    """A process's way to the store, on which its commits may be held."""

    def __init__(self, world: "World") -> None:
        self.is_held = False
        self.seen = Knowledge()
        """What the process found when it read last, by itself, after a conflict."""
        self._world = world

    async def read(self, prefix: str) -> Snapshot:
        self.seen = Knowledge(past=self._world.past)
        return await self._world.store.read(prefix)

    async def commit(self, txn: Txn) -> int:
        if self.is_held:
            self._world.under_way.append(txn)
            raise Unknown("no answer")
        return self._world.commit(txn)

    def watch(self, prefix: str, after: int) -> AsyncGenerator[Change, None]:
        return self._world.store.watch(prefix, after)

    async def lease(self, ttl_ms: int) -> Lease:
        return await self._world.store.lease(ttl_ms)

    async def close(self) -> None: ...


@dataclass(slots=True)
class Process:
    """A broker that runs: what it writes through, and its image."""

    way: Way
    store: StampedStore
    image: Knowledge
    own: tuple[str, ...]
    """Its commits that were answered."""


class World:
    """See the module."""

    def __init__(self) -> None:
        self.store = OldStore()
        self.past: tuple[str, ...] = ()
        """All that was written in this history, in order: a name each, of which the foreign ones count for nobody."""
        self.disks: dict[int, Knowledge] = {}
        self.running: dict[int, Process] = {}
        self.under_way: list[Txn] = []
        self._saved: list[tuple[dict[str, Entry], int, tuple[str, ...]]] = []
        self._count = 0

    # -- the store ------------------------------------------------------------------------------------------------

    def commit(self, txn: Txn) -> int:
        """Raises Conflict."""
        revision = done(self.store.commit(txn))
        if txn.put or txn.lasting or txn.delete:
            self._note("commit")
        return revision

    def write_foreign(self, count: int) -> None:
        for _ in range(count):
            done(self.store.commit(Txn(put={"/foreign": b""})))
            self._note(FOREIGN)

    def save(self) -> None:
        self._saved.append((*self.store.saved(), self.past))

    def set_back(self, number: int) -> None:
        if self._saved:
            entries, revision, self.past = self._saved[number % len(self._saved)]
            self.store.become(entries, revision)
            self.under_way.clear()  # the connections on which it was have ended with the store

    def deliver(self) -> None:
        """What was held arrives, first the one that waits longest; nobody hears of it."""
        if self.under_way:
            txn = self.under_way.pop(0)
            try:
                self.commit(txn)
            except Conflict:
                return

    def _note(self, what: str) -> None:
        self._count += 1
        self.past += (f"{what} {self._count}",)

    # -- what is true -----------------------------------------------------------------------------------------------

    def holds(self, known: Knowledge) -> bool:
        """Whether all commits of brokers that were known are in the store's past."""
        return {each for each in known.past if not each.startswith(FOREIGN)} <= set(self.past)

    def continues(self, known: Knowledge) -> bool:
        return self.past[: len(known.past)] == known.past

    def _judge(self, known: Knowledge, reason: str | None) -> bool:
        """Whether somebody was let in, rightly."""
        if reason is None:
            assert self.holds(known), (known, self.past)
        else:
            assert not self.continues(known), (reason, known, self.past)
        return reason is None

    # -- brokers ----------------------------------------------------------------------------------------------------

    def start(self, node_id: int) -> bool:
        """Whether the broker runs now that did not."""
        if node_id in self.running:
            return False
        disk = self.disks.setdefault(node_id, Knowledge())
        lineage, revision = self._present()
        if not self._judge(disk, start_contradiction(disk.followed, lineage, revision)):
            return False
        self._count += 1
        way = Way(self)
        store = StampedStore(way, node_id, f"incarnation-{self._count}")
        image = Knowledge(lineage.followed(revision), self.past)
        store.begin(lineage)
        self.running[node_id] = Process(way, store, image, ())
        return True

    def write(self, node_id: int, *, is_held: bool = False) -> None:
        """A commit; who finds that the store was set back ends."""
        if (process := self.running.get(node_id)) is None:
            return
        process.way.is_held = is_held
        has_own, seen = set(process.own) <= set(self.past), process.way.seen
        try:
            done(process.store.commit(Txn(put={f"/{node_id}": b""})))
        except StoreWentBack:
            assert not has_own or not self.holds(process.image) or not self.holds(seen)
            self.kill(node_id)
        except (Conflict, Unknown):
            return
        else:
            assert has_own
            process.own += self.past[-1:]

    def look(self, node_id: int) -> None:
        """Its watch begins anew, or it reads everything."""
        if (process := self.running.get(node_id)) is None:
            return
        lineage, revision = self._present()
        if self._judge(process.image, contradiction(process.image.followed, lineage, revision)):
            process.image = Knowledge(lineage.followed(revision), self.past)
        else:
            self.kill(node_id)

    def record(self, node_id: int) -> None:
        """Its image goes to its disk."""
        if (process := self.running.get(node_id)) is not None:
            self.disks[node_id] = process.image

    def kill(self, node_id: int) -> None:
        self.running.pop(node_id, None)

    def _present(self) -> tuple[Lineage, int]:
        snapshot = done(self.store.read("/"))
        return Lineage.from_snapshot(snapshot), snapshot.revision
