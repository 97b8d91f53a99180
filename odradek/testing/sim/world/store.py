"""The metadata store of a simulated cluster: etcd's meaning, one instance in the world, and a client in each process.

    store = SimStore(scheduler, network, trace, rng)
    broker = Broker(settings, environment, disk, store=store.client(process, "b1"))

The store is a host of the network (`store`), so what is cut from it is cut; and per host there are `StoreFaults`.
What they do to a commit is what etcd, its proxy and the network between do:

- The request is lost, or late: nothing is applied, or it is applied `hold_ms` after it was sent.
- The answer is lost: it is applied, and the caller gets OSError after `timeout_ms`, as if it had been lost.
- It is held on its way (`hold`) for as long as a story wants, whatever becomes of its sender meanwhile.
- The watch is behind: changes are told late, but all and in order; or `Compacted`, once `compact` has been called.
- It is set back (`save`, `set_back`, `put_right`): an older state stands in its place, with writes of another program
  that take its revision past all that there were. What was on its way is lost, and watches break and begin anew.

Leases have a time to live by the store's own clock, which is the world's. A keep-alive counts from when it arrives.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from odradek.broker.cluster.state import Prepared
from odradek.broker.cluster.store import Change, Event, Lease, LeaseLost, Snapshot, StoreClosed, Txn
from odradek.runtime.signal import Signal
from odradek.testing.sim.world.network import Network
from odradek.testing.sim.world.process import Process
from odradek.testing.sim.world.scheduler import Scheduler, Timer
from odradek.testing.sim.world.store_state import Saved, SimState
from odradek.testing.sim.world.trace import Trace

T = TypeVar("T")

HOST: Final = "store"
FOREIGN_KEY: Final = "of-others"
"""It stands under no prefix of ours."""
ADDRESS: Final = "10.0.9.9"
TTL_MS_MIN: Final = 2_000
"""etcd grants no shorter lease, by its defaults."""
WATCH_RETRY_S: Final = 0.2


@dataclass(slots=True)
class StoreFaults:
    """What goes wrong between one host and the store, besides what the network's lines do."""

    timeout_ms: float = 1_000.0
    """After so long a client gives up a request."""
    refuse_share: float = 0.0
    """The part of requests that are not carried out."""
    answer_lost_share: float = 0.0
    """The part of requests that are carried out without an answer."""
    hold_ms: float = 0.0
    """How long a request is under way at most, besides the line's delay."""
    watch_hold_ms: float = 0.0

    def heal(self) -> None:
        self.refuse_share = self.answer_lost_share = self.hold_ms = self.watch_hold_ms = 0.0


@dataclass(slots=True)
class Request:
    """Something that was asked for, on its way to the store."""

    client: "SimStoreClient"
    life: int
    """Of the store for which it is meant: connections end with it."""
    operation: Callable[[], Any]
    future: asyncio.Future[Any]
    is_answered: bool


class Hold:
    """Keeps the commits of one host for which `wants` is true, until `release`."""

    def __init__(self, store: "SimStore", host: str, wants: Callable[[Txn], bool]) -> None:
        self.host = host
        self.wants = wants
        self._store = store
        self._held: list[Request] = []

    def __len__(self) -> int:
        """How many commits it has now."""
        return len(self._held)

    def keep(self, request: Request) -> None:
        self._held.append(request)

    def release(self, *, is_answered: bool = True) -> None:
        """Lets go of what it has, in order, and keeps nothing more. Without an answer, if one likes."""
        self._store.end_hold(self)
        held, self._held = self._held, []
        for request in held:
            request.is_answered &= is_answered
            self._store.carry_out(request)


@dataclass(slots=True)
class _Granted:
    ttl_ms: int
    timer: Timer


class SimStore:
    """See the module. Whoever wants to look may: `state` is the truth."""

    def __init__(self, scheduler: Scheduler, network: Network, trace: Trace, rng: random.Random) -> None:
        self.scheduler = scheduler
        self.network = network
        self.trace = trace
        self.rng = rng
        self.state = SimState()
        self.life = 0
        """How often another state has taken the place of the one before."""
        self.is_down = False
        self._faults: dict[str, StoreFaults] = {}
        self._granted: dict[int, _Granted] = {}
        self.clients: dict[SimStoreClient, None] = {}
        self._holds: list[Hold] = []
        self.changed: Callable[[Change, str], object] = _ignore
        """Called after each change, with the host that made it; empty when a lease has ended."""
        network.add_host(HOST, ADDRESS)

    def client(self, process: Process, host: str) -> "SimStoreClient":
        """What a process of that host calls its metadata store."""
        client = SimStoreClient(self, process, host)
        self.clients[client] = None
        process.when_killed(lambda: self.clients.pop(client, None))
        return client

    def faults(self, host: str) -> StoreFaults:
        return self._faults.setdefault(host, StoreFaults())

    def heal(self) -> None:
        """What was held is carried out, and watchers hear of what they have missed."""
        self.is_down = False
        for faults in self._faults.values():
            faults.heal()
        for hold in self._holds[:]:
            hold.release()
        for client in self.clients:
            client.catch_up()

    def hold(self, host: str, wants: Callable[[Txn], bool]) -> Hold:
        """From now on commits like these stay on their way. What is held when a history ends, `heal` lets go."""
        hold = Hold(self, host, wants)
        self._holds.append(hold)
        return hold

    def end_hold(self, hold: Hold) -> None:
        """For `Hold`."""
        if hold in self._holds:
            self._holds.remove(hold)

    def lapse(self, key: str) -> None:
        """The lease under which a key was put ends now, as if nobody had renewed it."""
        if (lease_id := self.state.lease_of(key)) is not None:
            self.trace.note("store", "lease", lease_id, "lapses")
            self.revoke(lease_id)

    def stop(self) -> None:
        """The store is away for everybody."""
        self.is_down = True

    def start(self) -> None:
        """It is back. Each lease begins anew, as after an election among etcd's members."""
        self.is_down = False
        for lease_id, granted in self._granted.items():
            self._begin(lease_id, granted)

    def compact(self) -> None:
        """Whoever is behind in watching will be told Compacted."""
        self.state.compact()
        self.trace.note("store", "compacted", self.state.revision)

    # -- older states ------------------------------------------------------------------------------------------------

    def save(self) -> Saved:
        """What it holds now."""
        return Saved(self.state.copied(), {lease_id: granted.ttl_ms for lease_id, granted in self._granted.items()})

    def set_back(self, saved: Saved) -> Saved:
        """It holds an older state from now on, whose revision others have moved past the present one; what it held."""
        present = self.save()
        self._become(saved)
        while self.state.revision <= present.state.revision:
            self.state.apply(Prepared(Change(self.state.revision + 1, (Event(FOREIGN_KEY, b""),))))
        self.trace.note("store", "is set back to", saved.state.revision, "and is at", self.state.revision)
        return present

    def put_right(self, saved: Saved) -> None:
        """It holds again what it held before it was set back."""
        self._become(saved)
        self.trace.note("store", "is put right at", self.state.revision)

    def _become(self, saved: Saved) -> None:
        for granted in self._granted.values():
            granted.timer.cancel()
        state = saved.state.copied()
        state.begin_behind(self.state)
        self.state = state
        self.life += 1
        self._granted = {}
        for lease_id, ttl_ms in saved.ttls_ms.items():
            self._granted[lease_id] = granted = _Granted(ttl_ms, self.scheduler.after(0.0, _nothing))
            self._begin(lease_id, granted)
        for client in self.clients:
            client.lose_way()

    # -- what clients ask, at the moment at which it arrives ---------------------------------------------------------

    def commit(self, txn: Txn, host: str = "") -> int:
        """Raises what `MetadataStore.commit` does, OSError apart."""
        prepared = self.state.prepare(txn)
        if prepared is not None:
            self._apply(prepared, host)
        return self.state.revision

    def grant(self, ttl_ms: int) -> tuple[int, int]:
        """A new lease's id, and the time to live."""
        lease_id = self.state.grant()
        ttl_ms = max(ttl_ms, TTL_MS_MIN)
        self._granted[lease_id] = granted = _Granted(ttl_ms, self.scheduler.after(0.0, _nothing))
        self._begin(lease_id, granted)
        return lease_id, ttl_ms

    def renew(self, lease_id: int) -> None:
        """Raises LeaseLost."""
        granted = self._granted.get(lease_id)
        if granted is None:
            raise LeaseLost(f"lease {lease_id} has ended")
        self._begin(lease_id, granted)

    def revoke(self, lease_id: int) -> None:
        granted = self._granted.pop(lease_id, None)
        if granted is None:
            return
        granted.timer.cancel()
        self.state.end_lease(lease_id)
        if (prepared := self.state.prepare_end(lease_id)) is not None:
            self._apply(prepared)

    def _begin(self, lease_id: int, granted: _Granted) -> None:
        granted.timer.cancel()
        granted.timer = self.scheduler.after(granted.ttl_ms / 1000.0, self._expire, lease_id)

    def _expire(self, lease_id: int) -> None:
        if self.is_down:
            return  # it begins anew when the store is back
        self.trace.note("store", "lease", lease_id, "expired")
        self.revoke(lease_id)

    def _apply(self, prepared: Prepared, host: str = "") -> None:
        self.state.apply(prepared)
        keys = " ".join(f"{'-' if event.value is None else '+'}{event.key}" for event in prepared.change.events)
        self.trace.note("store", prepared.change.revision, keys)
        for client in self.clients:
            client.tell(self.state.revision)
        self.changed(prepared.change, host)

    # -- the way there and back ------------------------------------------------------------------------------------

    def ask(
        self,
        client: "SimStoreClient",
        operation: Callable[[], Any],
        future: asyncio.Future[Any],
        txn: Txn | None = None,
    ) -> None:
        """Carries a request to the store, and its answer, or an error, back. `txn`: of a commit."""
        faults, process = self.faults(client.host), client.process
        self.scheduler.after(faults.timeout_ms / 1000.0, _give_up, process, future)
        to = self.network.line(client.host, HOST)
        if not self._is_reached(to.is_cut) or self._happens(faults.refuse_share):
            return
        delay_ms = to.delay_ms + to.jitter_ms * self.rng.random() + faults.hold_ms * self.rng.random()
        request = Request(client, self.life, operation, future, is_answered=not self._happens(faults.answer_lost_share))
        if txn is not None:
            for hold in self._holds:
                if hold.host == client.host and hold.wants(txn):
                    self.trace.note("store", "holds a commit of", client.host)
                    hold.keep(request)
                    return
        self.scheduler.after(delay_ms / 1000.0, self.carry_out, request)

    def carry_out(self, request: Request) -> None:
        """A request has arrived. It is carried out, whatever became of its sender."""
        if self.is_down or request.life != self.life:
            return
        client = request.client
        answer: Callable[[], None]
        try:
            answer = partial(_succeed, request.future, request.operation())
        except Exception as error:  # noqa: BLE001 - it is the answer
            answer = partial(_fail, request.future, error)
        back = self.network.line(HOST, client.host)
        if request.is_answered and self._is_reached(back.is_cut):
            delay_ms = back.delay_ms + back.jitter_ms * self.rng.random()
            self.scheduler.after(delay_ms / 1000.0, client.process.post, answer)

    def told_s(self, client: "SimStoreClient") -> float:
        """When a change that was just made comes to a watcher."""
        back = self.network.line(HOST, client.host)
        hold_ms = self.faults(client.host).watch_hold_ms * self.rng.random()
        return self.scheduler.now_s + (back.delay_ms + back.jitter_ms * self.rng.random() + hold_ms) / 1000.0

    def can_tell(self, client: "SimStoreClient") -> bool:
        return self._is_reached(self.network.line(HOST, client.host).is_cut)

    def _is_reached(self, is_cut: bool) -> bool:
        return not is_cut and not self.is_down

    def _happens(self, share: float) -> bool:
        return share > 0.0 and self.rng.random() < share


class SimStoreClient:
    """The `MetadataStore` of one process."""

    def __init__(self, store: SimStore, process: Process, host: str) -> None:
        self.process = process
        self.host = host
        self._store = store
        self._told = store.state.revision
        self._told_at_s = 0.0
        self._life = store.life  # of the store to which its watch has its way
        self._wakes = Signal()
        self._is_closed = False

    async def read(self, prefix: str) -> Snapshot:
        return await self._ask(lambda: self._store.state.read(prefix))

    async def commit(self, txn: Txn) -> int:
        return await self._ask(lambda: self._store.commit(txn, self.host), txn)

    async def watch(self, prefix: str, after: int) -> AsyncGenerator[Change, None]:
        life = self._life
        while not self._is_closed:
            seen = self._wakes.count
            if self._life == self._store.life:
                if life != self._life:
                    life = self._life
                    yield Change(after, ())
                revision = max(self._told, after)
                for change in self._store.state.changes(prefix, after):
                    if change.revision > revision or life != self._store.life:
                        break  # it has not been told of that one yet, or never will
                    yield change
                    after = change.revision
                    if self._is_closed:
                        return
                if life == self._store.life:
                    after = max(after, min(revision, self._store.state.revision))
            try:
                await self._wakes.after(seen)
            except StoreClosed:
                return

    async def lease(self, ttl_ms: int) -> Lease:
        lease_id, granted_ms = await self._ask(lambda: self._store.grant(ttl_ms))
        return SimLease(self, lease_id, granted_ms)

    async def renew(self, lease_id: int) -> None:
        """For `SimLease`."""
        await self._ask(lambda: self._store.renew(lease_id))

    async def revoke(self, lease_id: int) -> None:
        """For `SimLease`."""
        await self._ask(lambda: self._store.revoke(lease_id))

    async def close(self) -> None:
        self._is_closed = True
        self._wakes.fail(StoreClosed("the metadata store is closed"))

    # -- below -----------------------------------------------------------------------------------------------------

    async def _ask(self, operation: Callable[[], T], txn: Txn | None = None) -> T:
        if self._is_closed:
            raise StoreClosed("the metadata store is closed")
        self.process.check()
        future: asyncio.Future[T] = self.process.loop.create_future()
        self._store.ask(self, operation, future, txn)
        return await future

    def catch_up(self) -> None:
        """What is still on its way to it comes now."""
        self._told_at_s = 0.0
        self.tell(self._store.state.revision)

    def tell(self, revision: int) -> None:
        """The store has come to a revision; the client will hear of it."""
        self._told_at_s = max(self._told_at_s, self._store.told_s(self))
        self._store.scheduler.at(self._told_at_s, self._tell, revision)

    def _tell(self, revision: int) -> None:
        if self.process.is_dead or self._is_closed:
            return
        if not self._store.can_tell(self):
            # The watch is broken, and tries to go on where it stood.
            self._store.scheduler.after(WATCH_RETRY_S, self._tell, revision)
            return
        self.process.post(self._hear, revision)

    def _hear(self, revision: int) -> None:
        if not self._is_closed:
            self._told = max(self._told, revision)
            self._wake()

    def lose_way(self) -> None:
        """Its watch is broken, and begins anew with what stands there then."""
        self._store.scheduler.after(WATCH_RETRY_S, self._find_way)

    def _find_way(self) -> None:
        if self.process.is_dead or self._is_closed:
            return
        if not self._store.can_tell(self):
            self.lose_way()
            return
        self.process.post(self._go_on, self._store.life)

    def _go_on(self, life: int) -> None:
        if not self._is_closed and life == self._store.life:
            self._life, self._told = life, self._store.state.revision
            self._wake()

    def _wake(self) -> None:
        self._wakes.give()


class SimLease:
    """A lease that ends unless it is renewed."""

    __slots__ = ("_client", "lapses", "lease_id", "ttl_ms")

    def __init__(self, client: SimStoreClient, lease_id: int, ttl_ms: int) -> None:
        self._client = client
        self.lease_id = lease_id
        self.ttl_ms = ttl_ms
        self.lapses = True

    async def renew(self) -> None:
        await self._client.renew(self.lease_id)

    async def revoke(self) -> None:
        await self._client.revoke(self.lease_id)


def _succeed(future: asyncio.Future[Any], result: Any) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)


def _give_up(process: Process, future: asyncio.Future[Any]) -> None:
    if not future.done():
        process.post(_fail, future, ConnectionError("the metadata store has not answered"))


def _nothing() -> None: ...


def _ignore(change: Change, host: str) -> None: ...
