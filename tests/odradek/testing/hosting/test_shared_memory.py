"""One state for several loops: watchers of each are woken in their own thread, none misses a change or sees one twice,
and who is cut off changes nothing. (All else that a store promises: tests/contract/test_store.py.)"""

import asyncio
import threading
from contextlib import aclosing

import pytest

from odradek.broker.cluster.store import StoreClosed, Txn
from odradek.testing.hosting.loop_thread import LoopThread
from odradek.testing.hosting.shared_memory import SharedMemory, SharedMemoryStore

COUNT = 300


async def commit_many(store: SharedMemoryStore, prefix: str) -> None:
    for number in range(COUNT):
        await store.commit(Txn(put={f"/{prefix}/{number}": b"v"}))
        await asyncio.sleep(0)


async def watched(store: SharedMemoryStore, count: int) -> list[int]:
    revisions: list[int] = []
    async with aclosing(store.watch("/", 0)) as changes:
        async for change in changes:
            revisions.append(change.revision)
            if len(revisions) == count:
                return revisions
    return revisions


def test_every_loop_sees_every_change_once_and_in_order() -> None:
    memory = SharedMemory()
    threads = [LoopThread(f"loop {number}") for number in range(3)]
    stores = [memory.open(thread.loop) for thread in threads]
    seen = [thread.submit(watched(store, 3 * COUNT)) for thread, store in zip(threads, stores, strict=True)]
    done = [
        thread.submit(commit_many(store, str(number)))
        for number, (thread, store) in enumerate(zip(threads, stores, strict=True))
    ]
    for each in done:
        each.result(30)
    assert [each.result(30) for each in seen] == [list(range(1, 3 * COUNT + 1))] * 3
    for thread in threads:
        thread.end()


async def test_who_is_cut_off_changes_nothing_and_its_leases_stay_until_they_are_ended() -> None:
    memory, loop = SharedMemory(), asyncio.get_running_loop()
    gone, other = memory.open(loop), memory.open(loop)
    lease = await gone.lease(1000)
    await gone.commit(Txn(put={"/broker": b"here"}, lease=lease))
    gone.cut_off()
    for change in (gone.commit(Txn(put={"/a": b"v"})), gone.revoke(lease.lease_id), gone.lease(1000)):
        with pytest.raises(StoreClosed):
            await change
    assert list((await other.read("/")).entries) == ["/broker"]
    ending = threading.Thread(target=memory.end_leases, args=(gone,))
    ending.start()
    ending.join()
    assert (await other.read("/")).entries == {}


async def test_a_change_that_is_refused_by_whoever_writes_it_down_has_not_happened() -> None:
    def refuse(change: object) -> None:
        raise OSError("no room")

    memory = SharedMemory(on_change=refuse)
    store = memory.open(asyncio.get_running_loop())
    with pytest.raises(OSError, match="no room"):
        await store.commit(Txn(put={"/a": b"v"}))
    assert (await store.read("/")).entries == {}
