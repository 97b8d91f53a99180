"""Producer ids are never handed out twice: not over restarts and crashes, not at the same time, not by two brokers."""

import asyncio
import errno

import pytest

from odradek.broker.cluster.embedded import FILE_NAME, EmbeddedStore
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.store import MetadataStore, Txn
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.txn.producer_ids import BLOCK_SIZE, ProducerIds


class CountingStore(MemoryStore):
    """Lets others run between reading and writing, as a store on the network does, and can fail after the write."""

    def __init__(self) -> None:
        super().__init__()
        self.commits = 0
        self.fails_after_commit = False

    async def commit(self, txn: Txn) -> int:
        await asyncio.sleep(0)
        revision = await super().commit(txn)
        self.commits += 1
        if self.fails_after_commit:
            raise OSError(errno.EIO, "the answer was lost")
        return revision


async def test_ids_begin_at_zero_and_go_on_over_blocks() -> None:
    store = CountingStore()
    ids = ProducerIds(store)
    assert [await ids.allocate() for _ in range(2 * BLOCK_SIZE + 1)] == list(range(2 * BLOCK_SIZE + 1))
    assert store.commits == 3


async def test_those_who_ask_at_the_same_time_get_different_ids_out_of_one_block() -> None:
    store = CountingStore()
    ids = ProducerIds(store)
    given = await asyncio.gather(*(ids.allocate() for _ in range(BLOCK_SIZE)))
    assert sorted(given) == list(range(BLOCK_SIZE))
    assert store.commits == 1


async def test_two_brokers_on_one_store_never_meet() -> None:
    store = CountingStore()
    brokers = [ProducerIds(store), ProducerIds(store), ProducerIds(store)]
    given = await asyncio.gather(*(brokers[number % 3].allocate() for number in range(3 * BLOCK_SIZE + 30)))
    assert len({*given}) == len(given)
    assert store.commits == 6, "two blocks for each, whatever conflicts there were"


async def test_a_restart_begins_a_new_block() -> None:
    store: MetadataStore = MemoryStore()
    assert await ProducerIds(store).allocate() == 0
    assert await ProducerIds(store).allocate() == BLOCK_SIZE


async def test_a_block_whose_commit_was_not_answered_is_skipped() -> None:
    """It may have been stored; the next attempt reads and takes the one behind it."""
    store = CountingStore()
    ids = ProducerIds(store)
    store.fails_after_commit = True
    with pytest.raises(OSError, match="the answer was lost"):
        await ids.allocate()
    store.fails_after_commit = False
    assert await ids.allocate() == BLOCK_SIZE


async def test_an_asker_who_leaves_takes_no_id_from_others() -> None:
    ids = ProducerIds(CountingStore())
    first, second = (asyncio.ensure_future(ids.allocate()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    given = [await asyncio.wait_for(second, 5), await ids.allocate()]
    assert len({*given}) == 2


async def test_a_crash_between_the_blocks_commit_and_its_use_gives_nothing_out_twice() -> None:
    """The metadata log is cut at each byte of the commit: what was given out before is never given out after."""
    disk = MemoryDisk()
    store = EmbeddedStore.open(disk, "")
    given = await ProducerIds(store).allocate()
    before = len(disk.read_whole(FILE_NAME))
    assert await ProducerIds(store).allocate() == given + BLOCK_SIZE
    await store.close()
    whole = disk.read_whole(FILE_NAME)
    for size_bytes in range(before, len(whole) + 1):
        crashed = MemoryDisk()
        crashed.write_whole(FILE_NAME, whole[:size_bytes])
        reopened = EmbeddedStore.open(crashed, "")
        after = await ProducerIds(reopened).allocate()
        # The second block was given out only if its commit was whole.
        assert after == (2 if size_bytes == len(whole) else 1) * BLOCK_SIZE
        await reopened.close()
