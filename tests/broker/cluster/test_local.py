"""A watcher that falls behind what is kept is told so, and costs nothing while it waits."""

from contextlib import aclosing

import pytest

from odradek.broker.cluster import state as state_module
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.store import Compacted, Txn


async def test_a_watcher_that_falls_behind_reads_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_module, "HISTORY_CHANGES_MAX", 3)
    store = MemoryStore()
    async with aclosing(store.watch("/", 0)) as changes:
        await store.commit(Txn(put={"/n": b"0"}))
        assert (await anext(changes)).revision == 1
        for number in range(1, 10):
            await store.commit(Txn(put={"/n": b"%d" % number}))
        with pytest.raises(Compacted):
            await anext(changes)
    snapshot = await store.read("/")
    async with aclosing(store.watch("/", snapshot.revision)) as changes:
        await store.commit(Txn(put={"/n": b"10"}))
        assert (await anext(changes)).revision == snapshot.revision + 1
    await store.close()


async def test_many_watchers_see_the_same() -> None:
    store = MemoryStore()
    watches = [store.watch("/", 0) for _ in range(50)]
    for number in range(20):
        await store.commit(Txn(put={"/n": b"%d" % number}))
    for watch in watches:
        async with aclosing(watch) as changes:
            assert [(await anext(changes)).revision for _ in range(20)] == list(range(1, 21))
    await store.close()
