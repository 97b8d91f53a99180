"""A broker that stops in the middle of transactions goes on with them when it starts again, from its log."""

import asyncio

import pytest

from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.store import Txn
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.txn.marker_writer import MarkerOrder, MarkerWriter, Written
from odradek.protocol.errors import ErrorCode
from tests.broker.transactions import (
    Producer,
    committed,
    completed,
    markers,
    running_transactions,
    stable_end,
    state_of,
)

pytestmark = pytest.mark.virtual_time
BOTH = pytest.mark.parametrize("is_new", [False, True], ids=["TV1", "TV2"])


async def copy_of(store: MemoryStore) -> MemoryStore:
    """With what it has: a broker that stops closes its own."""
    successor = MemoryStore()
    entries = (await store.read("/")).entries
    await successor.commit(Txn(put={key: entry.value for key, entry in entries.items()}))
    return successor


async def never_write(writer: MarkerWriter, order: MarkerOrder) -> Written:
    """The broker stops before."""
    await asyncio.get_running_loop().create_future()
    raise AssertionError((writer, order))


@BOTH
@pytest.mark.parametrize("commit", [True, False])
async def test_what_is_prepared_is_completed_by_the_next_start(
    monkeypatch: pytest.MonkeyPatch, is_new: bool, commit: bool
) -> None:
    disk, store = MemoryDisk(), MemoryStore()
    async with running_transactions(disk=disk, store=store) as context:
        producer = Producer(context, is_new=is_new)
        await producer.init()
        await producer.add(("orders", 0))
        assert await producer.send(b"a") is ErrorCode.NONE
        with monkeypatch.context() as patch:
            patch.setattr(MarkerWriter, "write", never_write)
            assert await producer.end(commit=commit) is ErrorCode.NONE
            await asyncio.sleep(1)
        assert (await state_of(context)).startswith("Prepare")
        assert await stable_end(context) == 0
        store = await copy_of(store)
    async with running_transactions(disk=disk, store=store) as context:
        assert await completed(context) == ("CompleteCommit" if commit else "CompleteAbort")
        assert await committed(context) == ([b"a"] if commit else [])
        assert await markers(context) == [(producer.producer_id, producer.epoch, not commit)]


@BOTH
async def test_an_open_transaction_goes_on_after_a_restart(is_new: bool) -> None:
    disk, store = MemoryDisk(), MemoryStore()
    async with running_transactions(disk=disk, store=store) as context:
        producer = Producer(context, is_new=is_new)
        await producer.init()
        await producer.add(("orders", 0))
        assert await producer.send(b"a") is ErrorCode.NONE
        store = await copy_of(store)
    async with running_transactions(disk=disk, store=store) as context:
        producer.context = context
        assert await stable_end(context) == 0
        assert await producer.send(b"b") is ErrorCode.NONE
        assert await producer.end(commit=True) is ErrorCode.NONE
        await completed(context)
        assert await committed(context) == [b"a", b"b"]


async def test_a_time_out_counts_through_a_restart_and_leaves_ten_seconds() -> None:
    """The producer could not reach anybody meanwhile."""
    disk, store = MemoryDisk(), MemoryStore()
    async with running_transactions(disk=disk, store=store) as context:
        producer = Producer(context)
        await producer.init(timeout_ms=20_000)
        assert await producer.send(b"a") is ErrorCode.NONE
        store = await copy_of(store)
    await asyncio.sleep(25)
    async with running_transactions(disk=disk, store=store) as context:
        await asyncio.sleep(9.5)
        assert await state_of(context) == "Ongoing"
        await asyncio.sleep(1)
        assert await completed(context) == "CompleteAbort"
        assert (await committed(context), await stable_end(context)) == ([], 2)


async def test_the_successor_of_a_producer_fences_it_after_a_restart_too() -> None:
    disk, store = MemoryDisk(), MemoryStore()
    async with running_transactions(disk=disk, store=store) as context:
        first = Producer(context)
        await first.init()
        assert await first.send(b"a") is ErrorCode.NONE
        store = await copy_of(store)
    async with running_transactions(disk=disk, store=store) as context:
        first.context = context
        second = Producer(context)
        assert await second.init() is ErrorCode.NONE
        assert second.producer_id == first.producer_id
        assert second.epoch > first.epoch
        assert await first.end(commit=True) is ErrorCode.PRODUCER_FENCED
        assert (await committed(context), await stable_end(context)) == ([], 2)
