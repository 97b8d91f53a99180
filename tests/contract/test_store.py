"""What every metadata store promises (broker/cluster/store.py), shown on each: etcd's meaning behind five methods."""

import asyncio
import posixpath
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from tempfile import TemporaryDirectory

import pytest

from odradek.broker.cluster.embedded import EmbeddedStore
from odradek.broker.cluster.local import LocalStore
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.socket_store.address import listening_socket
from odradek.broker.cluster.socket_store.server import StoreServer
from odradek.broker.cluster.socket_store.store import SocketStore
from odradek.broker.cluster.store import (
    APART_MAX,
    COMMIT_BYTES_MAX,
    OPERATIONS_MAX,
    Change,
    Conflict,
    Entry,
    Event,
    LeaseLost,
    MetadataStore,
    StoreClosed,
    TooLarge,
    Txn,
)
from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks
from odradek.testing.hosting.shared_memory import SharedMemory
from processes.etcd_server import EtcdServer
from processes.etcd_stores import etcd_store
from tests.sim.support import hosted_store_client

pytestmark = pytest.mark.asyncio


@asynccontextmanager
async def memory() -> AsyncGenerator[MetadataStore, None]:
    store = MemoryStore()
    yield store
    await store.close()


@asynccontextmanager
async def shared_memory() -> AsyncGenerator[MetadataStore, None]:
    store = SharedMemory().open(asyncio.get_running_loop())
    yield store
    await store.close()


@asynccontextmanager
async def embedded() -> AsyncGenerator[MetadataStore, None]:
    store = EmbeddedStore.open(MemoryDisk(), "")
    yield store
    await store.close()


@asynccontextmanager
async def embedded_on_files() -> AsyncGenerator[MetadataStore, None]:
    with TemporaryDirectory() as directory:
        store = EmbeddedStore.open(FileDisk(), directory)
        yield store
        await store.close()


@asynccontextmanager
async def embedded_with_thread() -> AsyncGenerator[MetadataStore, None]:
    environment = Environment()
    tasks = Tasks(environment.loop)
    store = EmbeddedStore.open(MemoryDisk(), "", run_blocking=environment.run_blocking, tasks=tasks)
    yield store
    await store.close()
    await tasks.close()


@asynccontextmanager
async def over_a_socket(served: LocalStore) -> AsyncGenerator[MetadataStore, None]:
    """The store of a process, as another one sees it."""
    with TemporaryDirectory() as directory:
        path, environment = posixpath.join(directory, "store.sock"), Environment()
        server = StoreServer(served, environment, path)
        await server.start(listening_socket(path))
        store = SocketStore(environment, path, 5_000.0)
        yield store
        await store.close()
        await server.close()
        await served.close()


def memory_over_a_socket() -> AbstractAsyncContextManager[MetadataStore]:
    return over_a_socket(MemoryStore())


@asynccontextmanager
async def embedded_over_a_socket() -> AsyncGenerator[MetadataStore, None]:
    environment = Environment()
    tasks = Tasks(environment.loop)
    served = EmbeddedStore.open(MemoryDisk(), "", run_blocking=environment.run_blocking, tasks=tasks)
    async with over_a_socket(served) as store:
        yield store
    await tasks.close()


STORES: dict[str, Callable[[], AbstractAsyncContextManager[MetadataStore]]] = {
    "memory": memory,
    "memory, shared": shared_memory,
    "embedded": embedded,
    "embedded, files": embedded_on_files,
    "embedded, thread": embedded_with_thread,
    "simulated": hosted_store_client,
    "memory, socket": memory_over_a_socket,
    "embedded, socket": embedded_over_a_socket,
}


@asynccontextmanager
async def etcd(server: EtcdServer) -> AsyncGenerator[MetadataStore, None]:
    """Alone on its etcd, as the local ones are in their process: what the test leaves, leases too, is taken away."""
    address = server.address()
    async with etcd_store(address) as store:
        yield store
    server.clear(address)


@pytest.fixture(params=[*STORES, "etcd"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[MetadataStore]:
    opening = etcd(request.getfixturevalue("etcd_server")) if request.param == "etcd" else STORES[request.param]()
    async with opening as opened:
        yield opened


async def take(changes: AsyncGenerator[Change, None], count: int) -> list[Change]:
    """The next changes of a watch, which must come at once."""
    async with asyncio.timeout(5):
        return [await anext(changes) for _ in range(count)]


async def values(store: MetadataStore, prefix: str = "/") -> dict[str, bytes]:
    return {key: entry.value for key, entry in (await store.read(prefix)).entries.items()}


async def test_what_is_put_is_read_by_prefix_in_order_of_the_keys(store: MetadataStore) -> None:
    revision = await store.commit(Txn(put={"/b/2": b"two", "/a": b"a", "/b/1": b"one", "/b": b"", "/c": b"c"}))
    snapshot = await store.read("/b/")
    assert snapshot.revision == revision
    assert list(snapshot.entries.items()) == [("/b/1", Entry(b"one", revision)), ("/b/2", Entry(b"two", revision))]
    assert list(await values(store)) == ["/a", "/b", "/b/1", "/b/2", "/c"]
    assert list(await values(store, "/b")) == ["/b", "/b/1", "/b/2"]
    assert (await store.read("/none/")).entries == {}


async def test_each_commit_takes_one_revision_and_entries_keep_theirs(store: MetadataStore) -> None:
    first = await store.commit(Txn(put={"/a": b"1", "/b": b"1"}))
    second = await store.commit(Txn(put={"/a": b"2"}))
    assert second == first + 1
    assert (await store.read("/")).entries == {"/a": Entry(b"2", second), "/b": Entry(b"1", first)}


async def test_deleted_keys_are_gone_and_deleting_what_is_absent_takes_no_revision(store: MetadataStore) -> None:
    first = await store.commit(Txn(put={"/a": b"1", "/b": b"1"}))
    second = await store.commit(Txn(put={"/c": b"1"}, delete=("/a", "/absent")))
    assert second == first + 1
    assert list(await values(store)) == ["/b", "/c"]
    assert await store.commit(Txn(delete=("/a", "/absent"))) == second
    assert await store.commit(Txn(expect={"/a": 0})) == second
    assert (await store.read("/")).revision == second


async def test_a_condition_that_does_not_hold_changes_nothing(store: MetadataStore) -> None:
    first = await store.commit(Txn(put={"/a": b"1"}))
    for expect in ({"/a": 0}, {"/a": first + 1}, {"/absent": first}, {"/a": first, "/absent": first}):
        with pytest.raises(Conflict):
            await store.commit(Txn(expect=expect, put={"/a": b"2", "/new": b""}))
        with pytest.raises(Conflict):
            await store.commit(Txn(expect=expect))
    assert (await store.read("/")).revision == first
    assert await values(store) == {"/a": b"1"}


async def test_conditions_name_the_revision_of_the_last_write(store: MetadataStore) -> None:
    first = await store.commit(Txn(expect={"/a": 0}, put={"/a": b"1"}))
    await store.commit(Txn(put={"/other": b""}))
    second = await store.commit(Txn(expect={"/a": first}, put={"/a": b"2"}))
    with pytest.raises(Conflict):
        await store.commit(Txn(expect={"/a": first}, put={"/a": b"3"}))
    await store.commit(Txn(expect={"/a": second}, delete=("/a",)))
    third = await store.commit(Txn(expect={"/a": 0}, put={"/a": b"4"}))
    assert third > second > first


async def test_a_condition_may_ask_for_a_revision_or_a_later_one(store: MetadataStore) -> None:
    first = await store.commit(Txn(put={"/a": b"1"}))
    for revision in (first - 1, first):
        await store.commit(Txn(since={"/a": revision}))
    for since in ({"/a": first + 1}, {"/a": first, "/absent": first}):
        with pytest.raises(Conflict):
            await store.commit(Txn(put={"/a": b"2"}, since=since))
    assert (await store.read("/")).entries == {"/a": Entry(b"1", first)}
    second = await store.commit(Txn(put={"/a": b"2"}, since={"/a": first}))
    assert await store.commit(Txn(put={"/b": b""}, since={"/a": first})) == second + 1


async def test_of_many_writers_each_wins_in_turn(store: MetadataStore) -> None:
    async def increment() -> None:
        while True:
            entry = (await store.read("/n")).entries.get("/n")
            value, revision = (0, 0) if entry is None else (int(entry.value), entry.revision)
            try:
                await store.commit(Txn(expect={"/n": revision}, put={"/n": b"%d" % (value + 1)}))
                return
            except Conflict:
                continue

    await asyncio.gather(*(increment() for _ in range(20)))
    assert await values(store) == {"/n": b"20"}


async def test_a_watch_yields_every_change_after_a_revision_unmerged(store: MetadataStore) -> None:
    first = await store.commit(Txn(put={"/a": b"0"}))
    await store.commit(Txn(put={"/a": b"1", "/b": b"1"}))
    async with aclosing(store.watch("/", first)) as changes:
        assert await take(changes, 1) == [Change(first + 1, (Event("/a", b"1"), Event("/b", b"1")))]
        await store.commit(Txn(put={"/a": b"2"}))
        await store.commit(Txn(put={"/a": b"3"}, delete=("/b",)))
        assert await take(changes, 2) == [
            Change(first + 2, (Event("/a", b"2"),)),
            Change(first + 3, (Event("/a", b"3"), Event("/b", None))),
        ]


async def test_a_watch_that_waits_is_woken(store: MetadataStore) -> None:
    revision = (await store.read("/")).revision
    async with aclosing(store.watch("/", revision)) as changes:
        waiting = asyncio.ensure_future(take(changes, 2))
        for value in (b"1", b"2"):
            await asyncio.sleep(0)
            await store.commit(Txn(put={"/a": value}))
        assert [change.events for change in await waiting] == [(Event("/a", b"1"),), (Event("/a", b"2"),)]


async def test_a_watch_sees_its_prefix_only_and_no_empty_changes(store: MetadataStore) -> None:
    revision = (await store.read("/")).revision
    async with aclosing(store.watch("/t/", revision)) as changes:
        await store.commit(Txn(put={"/a": b"1"}))
        await store.commit(Txn(put={"/a": b"2", "/t/1": b"2"}))
        await store.commit(Txn(delete=("/t/absent",)))
        await store.commit(Txn(delete=("/t/1", "/a")))
        assert await take(changes, 2) == [
            Change(revision + 2, (Event("/t/1", b"2"),)),
            Change(revision + 3, (Event("/t/1", None),)),
        ]


async def test_changes_made_while_a_watcher_works_are_not_lost(store: MetadataStore) -> None:
    revision = (await store.read("/")).revision
    await store.commit(Txn(put={"/n": b"0"}))
    seen: list[bytes | None] = []
    async with aclosing(store.watch("/", revision)) as changes, asyncio.timeout(5):
        async for change in changes:
            seen += [event.value for event in change.events]
            if len(seen) <= 10:
                await store.commit(Txn(put={"/n": b"%d" % (2 * len(seen) - 1)}))
                await store.commit(Txn(put={"/n": b"%d" % (2 * len(seen))}))
            if len(seen) == 21:
                break
    assert seen == [b"%d" % number for number in range(21)]


async def test_what_is_put_under_a_lease_vanishes_with_it_in_one_change(store: MetadataStore) -> None:
    await store.commit(Txn(put={"/kept": b""}))
    lease, other = await store.lease(10_000), await store.lease(10_000)
    assert lease.ttl_ms >= 10_000
    assert lease.lease_id != other.lease_id
    await store.commit(Txn(put={"/brokers/1": b"1", "/controller": b"1"}, lease=lease))
    revision = await store.commit(Txn(put={"/brokers/2": b"2"}, lease=other))
    await lease.renew()
    async with aclosing(store.watch("/", revision)) as changes:
        await lease.revoke()
        (change,) = await take(changes, 1)
    assert change.revision == revision + 1
    assert sorted(event.key for event in change.events) == ["/brokers/1", "/controller"]
    assert all(event.value is None for event in change.events)
    assert list(await values(store)) == ["/brokers/2", "/kept"]


async def test_what_is_to_last_is_under_no_lease_whatever_the_commit_is(store: MetadataStore) -> None:
    lease = await store.lease(10_000)
    first = await store.commit(Txn(put={"/brokers/1": b"1", "/freed": b"1"}, lease=lease))
    async with aclosing(store.watch("/", first)) as changes:
        revision = await store.commit(
            Txn(put={"/controller": b"1"}, lasting={"/freed": b"2", "/kept": b"1"}, lease=lease)
        )
        (change,) = await take(changes, 1)
    assert change == Change(revision, (Event("/controller", b"1"), Event("/freed", b"2"), Event("/kept", b"1")))
    assert await store.commit(Txn(lasting={"/kept": b"2"})) == revision + 1
    await lease.revoke()
    assert await values(store) == {"/freed": b"2", "/kept": b"2"}
    with pytest.raises(LeaseLost):
        await store.commit(Txn(put={"/controller": b"2"}, lasting={"/kept": b"3"}, lease=lease))
    assert await values(store) == {"/freed": b"2", "/kept": b"2"}


async def test_a_lease_that_ended_takes_no_more(store: MetadataStore) -> None:
    lease = await store.lease(10_000)
    await store.commit(Txn(put={"/a": b""}, lease=lease))
    await lease.revoke()
    revision = (await store.read("/")).revision
    with pytest.raises(LeaseLost):
        await store.commit(Txn(put={"/b": b""}, lease=lease))
    with pytest.raises(LeaseLost):
        await lease.renew()
    await lease.revoke()
    assert (await store.read("/")).revision == revision
    assert await values(store) == {}


async def test_a_lease_that_nobody_renews_ends_by_itself_if_it_is_one_that_lapses(store: MetadataStore) -> None:
    """etcd's do: it is another process, and we may be cut off from it. One in this process ends with it."""
    revision = await store.commit(Txn(put={"/kept": b""}))
    lease = await store.lease(1_000)
    assert lease.ttl_ms >= 1_000
    if not lease.lapses:
        await lease.renew()
        return
    await store.commit(Txn(put={"/brokers/1": b"1", "/controller": b"1"}, lease=lease))
    async with aclosing(store.watch("/", revision + 1)) as changes:
        (change,) = await take(changes, 1)
    assert change == Change(revision + 2, (Event("/brokers/1", None), Event("/controller", None)))
    with pytest.raises(LeaseLost):
        await lease.renew()
    assert list(await values(store)) == ["/kept"]


async def test_the_last_put_decides_under_which_lease_a_key_stands(store: MetadataStore) -> None:
    first, second = await store.lease(10_000), await store.lease(10_000)
    await store.commit(Txn(put={"/moved": b"1", "/freed": b"1", "/gone": b"1"}, lease=first))
    await store.commit(Txn(put={"/moved": b"2"}, lease=second))
    await store.commit(Txn(put={"/freed": b"2"}, delete=("/gone",)))
    revision = (await store.read("/")).revision
    await first.revoke()
    assert await values(store) == {"/freed": b"2", "/moved": b"2"}
    assert (await store.read("/")).revision == revision  # the first lease had no keys left
    await second.revoke()
    assert await values(store) == {"/freed": b"2"}


async def test_a_commit_is_bounded_and_says_so(store: MetadataStore) -> None:
    keys = [f"/{number:03}" for number in range(OPERATIONS_MAX + 1)]
    with pytest.raises(TooLarge, match="at most 100 puts and deletes"):
        await store.commit(Txn(put=dict.fromkeys(keys, b"")))
    with pytest.raises(TooLarge, match="has 101 and 0"):
        await store.commit(Txn(put={keys[0]: b""}, delete=tuple(keys[1:])))
    with pytest.raises(TooLarge, match="has 0 and 101"):
        await store.commit(Txn(expect=dict.fromkeys(keys, 0)))
    with pytest.raises(TooLarge, match="at most 1000000 bytes; this one has 1000001"):
        await store.commit(Txn(put={"/a": bytes(COMMIT_BYTES_MAX - 1)}))
    assert await values(store) == {}
    apart = {f"/apart/{number}": b"" for number in range(APART_MAX)}
    revision = await store.commit(Txn(put=apart))
    await store.commit(
        Txn(
            expect=dict.fromkeys(keys[1:], 0),
            put=dict.fromkeys(keys[1:], b""),
            lasting=apart,
            since=dict.fromkeys(apart, revision),
        )
    )
    await store.commit(Txn(put={"/a": bytes(COMMIT_BYTES_MAX - 2)}))
    assert len(await values(store)) == OPERATIONS_MAX + 1 + APART_MAX


async def test_a_key_is_named_once_in_a_commit(store: MetadataStore) -> None:
    for txn in (
        Txn(put={"/a": b""}, delete=("/a",)),
        Txn(delete=("/a", "/a")),
        Txn(put={"/a": b""}, lasting={"/a": b""}),
        Txn(lasting={"/a": b""}, delete=("/a",)),
    ):
        with pytest.raises(ValueError, match="names each key once"):
            await store.commit(txn)
    assert (await store.read("/")).entries == {}


async def test_any_text_and_any_bytes_come_back(store: MetadataStore) -> None:
    put = {"/ö/\u2028\U0001f600": bytes(range(256)), "/empty": b"", "/\x00": b"\xff" * 70_000}
    revision = await store.commit(Txn(put=put))
    assert await values(store) == put
    async with aclosing(store.watch("/", revision - 1)) as changes:
        assert {event.key: event.value for event in (await take(changes, 1))[0].events} == put


async def test_closing_ends_the_watches_and_refuses_what_comes_later(store: MetadataStore) -> None:
    lease = await store.lease(10_000)
    revision = (await store.read("/")).revision
    waiting = asyncio.ensure_future(anext(store.watch("/", revision), None))
    await asyncio.sleep(0)
    await store.close()
    assert await waiting is None
    assert await anext(store.watch("/", revision), None) is None
    with pytest.raises(StoreClosed):
        await store.commit(Txn(put={"/a": b""}))
    with pytest.raises(StoreClosed):
        await store.read("/")
    with pytest.raises(StoreClosed):
        await store.lease(10_000)
    with pytest.raises(StoreClosed):
        await lease.renew()
    await store.close()
