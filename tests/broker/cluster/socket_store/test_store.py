"""The store of another process: what a client does when its connection, its server, or the whole store is another."""

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

from odradek.broker.cluster.keys import CLUSTER_KEY, encode_cluster
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.socket_store.address import listening_socket
from odradek.broker.cluster.socket_store.connection import WINDOW
from odradek.broker.cluster.socket_store.store import SocketStore
from odradek.broker.cluster.store import Change, Event, StoreClosed, StoreWentBack, Txn, Unknown, Unreachable
from odradek.runtime.environment import Environment
from tests.broker.cluster.socket_store.served import served_at, until


async def test_a_broken_connection_is_made_again_for_the_next_request(tmp_path: Path) -> None:
    async with served_at(tmp_path) as served:
        store = served.client()
        await store.commit(Txn(put={"/a": b""}))
        served.cut_off()
        assert list((await store.read("/")).entries) == ["/a"]
        assert len(served.server.sessions) == 1


async def test_a_watch_goes_on_and_says_that_its_way_was_lost(tmp_path: Path) -> None:
    async with served_at(tmp_path) as served:
        store = served.client()
        async with aclosing(store.watch("/", 0)) as changes, asyncio.timeout(5):
            await served.server.store.commit(Txn(put={"/a": b"1"}))
            assert await anext(changes) == Change(1, (Event("/a", b"1"),))
            next_one = asyncio.ensure_future(anext(changes))
            await store.read("/")  # its turn has come by then
            served.cut_off()
            await served.server.store.commit(Txn(put={"/a": b"2"}))
            assert await next_one == Change(1, ())
            assert await anext(changes) == Change(2, (Event("/a", b"2"),))


async def test_a_watch_that_nobody_takes_from_holds_no_more_than_its_window(tmp_path: Path) -> None:
    async with served_at(tmp_path) as served:
        store = served.client()
        async with aclosing(store.watch("/", 0)) as changes, asyncio.timeout(10):
            await served.server.store.commit(Txn(put={"/n": b"0"}))
            seen = [await anext(changes)]
            for number in range(1, 4 * WINDOW):
                await served.server.store.commit(Txn(put={"/n": b"%d" % number}))
            await store.read("/")
            (session,) = served.server.sessions
            assert session.watches_full == 1
            seen += [await anext(changes) for _ in range(1, 4 * WINDOW)]
        assert [change.events[0].value for change in seen] == [b"%d" % number for number in range(4 * WINDOW)]


async def test_a_server_that_comes_back_with_the_same_store_is_used_on(tmp_path: Path) -> None:
    async with served_at(tmp_path) as served:
        store, kept = served.client(), MemoryStore()
        await served.server.close()
        await served.serve(kept)
        await store.commit(Txn(put={CLUSTER_KEY: encode_cluster("one")}))
        await served.server.close()
        reading = asyncio.ensure_future(store.read("/"))
        await asyncio.sleep(0.05)  # time in which it could be answered; nothing tells that it waits
        assert not reading.done()
        await served.serve(kept)
        assert list((await reading).entries) == [CLUSTER_KEY]


async def test_a_store_at_a_lower_revision_went_back_for_ever(tmp_path: Path) -> None:
    async with served_at(tmp_path) as served:
        store = served.client()
        await store.commit(Txn(put={"/a": b""}))
        await store.commit(Txn(put={"/a": b""}))
        older = MemoryStore()
        await older.commit(Txn(put={"/a": b""}))
        await served.server.close()
        await served.serve(older)
        with pytest.raises(StoreWentBack, match="it is at revision 1, and was at 2 before"):
            await store.read("/")
        await older.commit(Txn(put={"/b": b""}))
        await older.commit(Txn(put={"/b": b""}))
        for asking in (store.read("/"), store.commit(Txn(put={"/c": b""})), store.lease(1_000)):
            with pytest.raises(StoreWentBack):
                await asking
        with pytest.raises(StoreWentBack):
            await anext(store.watch("/", 2))
        assert "/c" not in (await older.read("/")).entries


async def test_a_watch_behind_what_the_store_never_reached_is_refused(tmp_path: Path) -> None:
    async with served_at(tmp_path) as served:
        with pytest.raises(StoreWentBack, match="it is at revision 0, and was at 7 before"):
            await anext(served.client().watch("/", 7))


async def test_the_store_of_another_cluster_is_refused(tmp_path: Path) -> None:
    async with served_at(tmp_path) as served:
        store = served.client()
        await served.server.store.commit(Txn(put={CLUSTER_KEY: encode_cluster("one")}))
        await store.read("/")
        other = MemoryStore()
        for _ in range(5):
            await other.commit(Txn(put={CLUSTER_KEY: encode_cluster("two")}))
        await served.server.close()
        await served.serve(other)
        with pytest.raises(StoreWentBack, match="it belonged to cluster one, and belongs to two"):
            await store.read("/")


async def test_where_nobody_listens_nothing_was_sent(tmp_path: Path) -> None:
    store = SocketStore(Environment(), str(tmp_path / "store.sock"), 100.0)
    for asking in (store.read("/"), store.commit(Txn(put={"/a": b""})), store.lease(1_000)):
        with pytest.raises(Unreachable, match="nobody listens there"):
            await asking
    await store.close()
    with pytest.raises(StoreClosed):
        await store.read("/")


async def test_a_server_that_stands_still_has_not_been_reached(tmp_path: Path) -> None:
    """Its socket listens, and nobody answers the greeting: the request was not sent."""
    path = str(tmp_path / "store.sock")
    store = SocketStore(Environment(), path, 100.0)
    with listening_socket(path), pytest.raises(Unreachable, match="it does not answer"):
        await store.commit(Txn(put={"/a": b""}))
    await store.close()


class Hanging(MemoryStore):
    """A commit is done, and not answered."""

    is_done = False

    async def commit(self, txn: Txn) -> int:
        revision = await super().commit(txn)
        self.is_done = True
        await asyncio.Event().wait()
        return revision


@pytest.mark.parametrize("breaks", [False, True])
async def test_a_commit_without_an_answer_may_have_happened(tmp_path: Path, breaks: bool) -> None:
    hanging = Hanging()
    async with served_at(tmp_path, hanging) as served:
        store = served.client(5_000 if breaks else 100)
        await store.read("/")
        committing = asyncio.ensure_future(store.commit(Txn(put={"/a": b""})))
        if breaks:
            await until(lambda: hanging.is_done)
            served.cut_off()
        with pytest.raises(Unknown, match="gave no answer"):
            await committing
        assert list((await store.read("/")).entries) == ["/a"]
        assert (await store.read("/")).revision == 1, "it was sent once"
