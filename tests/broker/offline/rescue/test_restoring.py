"""Restoring into a store, on the one in memory: interrupted between its commits, gone on with, cleared, refused."""

from collections.abc import Mapping

import pytest

from odradek.broker.cluster.backup import (
    EPOCHS_SKIPPED,
    Backup,
    decode_backup,
    encode_backup,
    restored_values,
    take_backup,
)
from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import (
    CLUSTER_KEY,
    ORIGIN_KEY,
    MalformedMetadata,
    PartitionState,
    TopicState,
    encode_cluster,
    partition_key,
    topic_key,
)
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.store import Txn
from odradek.broker.offline.rescue import restoring
from odradek.broker.offline.rescue.restoring import RestoreInterrupted, RestoreRefused, clear, restore

TOPIC_ID = bytes(range(16))
PARTITIONS = 200


class Cut(Exception):
    """The restore ends here."""


class CutStore(MemoryStore):
    """Its commit number `cut_at` is not made (or, with `is_made`, made and not answered)."""

    def __init__(self) -> None:
        super().__init__()
        self.cut_at = -1
        self.is_made = False
        self.count = 0

    async def commit(self, txn: Txn) -> int:
        self.count += 1
        if self.count == self.cut_at:
            if self.is_made:
                await super().commit(txn)
            raise Cut
        return await super().commit(txn)


@pytest.fixture(autouse=True)
def few_revisions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restoring, "REVISIONS_SKIPPED", 20)


async def saved(partitions: int = PARTITIONS) -> Backup:
    """The backup of a store with a topic that takes several commits."""
    store = MemoryStore()
    await store.commit(Txn(put={CLUSTER_KEY: encode_cluster("a-cluster")}))
    await store.commit(Txn(put={topic_key("orders"): TopicState(TOPIC_ID, partitions).encode()}))
    for index in range(partitions):
        state = PartitionState(TOPIC_ID, (1,), (1,), 1, leader_epoch=3)
        await store.commit(Txn(put={partition_key("orders", index): state.encode()}))
    return decode_backup(encode_backup(take_backup(await store.read("/"), "now")))


async def held(store: MemoryStore) -> Mapping[str, bytes]:
    """What it holds, but that it was restored."""
    return {key: entry.value for key, entry in (await store.read("/")).entries.items() if key != ORIGIN_KEY}


async def test_an_empty_store_holds_then_what_was_saved_at_a_revision_nobody_has_seen() -> None:
    backup, store = await saved(), MemoryStore()
    done = await restore(store, backup)
    assert await held(store) == restored_values(backup)
    assert done.key_count == PARTITIONS + 2
    assert done.revision == (await store.read("/")).revision > backup.revision + 20
    image = ClusterImage.from_snapshot(await store.read("/"))
    assert image.topics["orders"].partitions[0].leader_epoch == 3 + EPOCHS_SKIPPED
    assert image.lineage.origin is not None
    assert image.lineage.origin.supersedes == done.revision - 1, "all that came before it"
    later = MemoryStore()
    assert (await restore(later, backup, revision_at_least=5_000)).revision > 5_020
    another = ClusterImage.from_snapshot(await later.read("/"))
    assert another.lineage.origin_id != image.lineage.origin_id


async def test_until_the_last_commit_no_broker_takes_the_store_for_whole() -> None:
    backup = await saved(5)
    store = CutStore()
    store.cut_at = 25
    with pytest.raises(Cut):
        await restore(store, backup)
    assert len(await held(store)) == 7
    with pytest.raises(MalformedMetadata, match="was begun and has not ended"):
        ClusterImage.from_snapshot(await store.read("/"))


@pytest.mark.parametrize("is_made", [False, True])
async def test_a_restore_that_was_interrupted_anywhere_can_be_finished(is_made: bool) -> None:
    backup = await saved()
    whole = CutStore()
    await restore(whole, backup)
    steps = [1, 2, 3, 4, 5, whole.count - 1, whole.count]
    for step in steps:
        store = CutStore()
        store.cut_at, store.is_made = step, is_made
        with pytest.raises(Cut):
            await restore(store, backup)
        if step == whole.count and is_made:
            with pytest.raises(RestoreRefused, match="not empty"):  # it was done
                await restore(store, backup)
        else:
            await restore(store, backup)
        assert await held(store) == restored_values(backup)


async def test_a_restore_that_was_interrupted_can_be_cleared() -> None:
    backup = await saved()
    store = CutStore()
    store.cut_at = 4
    with pytest.raises(Cut):
        await restore(store, backup)
    await store.commit(Txn(put={"/somebody/elses": b"x"}))
    assert await clear(store) == 2 * 90 + 1
    assert await held(store) == {"/somebody/elses": b"x"}
    with pytest.raises(RestoreRefused, match="no restore was interrupted here"):
        await clear(store)


async def test_a_store_that_is_not_empty_is_refused_and_told_what_is_in_it() -> None:
    backup, store = await saved(3), MemoryStore()
    await store.commit(Txn(put={CLUSTER_KEY: encode_cluster("a-cluster"), topic_key("t"): b"{}"}))
    before = await held(store)
    with pytest.raises(RestoreRefused, match=r"1 cluster key\(s\), 1 topic key\(s\)"):
        await restore(store, backup)
    with pytest.raises(RestoreRefused, match="no restore was interrupted here"):
        await clear(store)
    assert await held(store) == before
    foreign = MemoryStore()
    await foreign.commit(Txn(put={"/somebody/elses": b"x"}))
    with pytest.raises(RestoreRefused, match=r"1 foreign key\(s\)"):
        await restore(foreign, backup)


async def test_another_backup_does_not_go_on_with_it() -> None:
    backup, other = await saved(3), await saved(4)
    store = CutStore()
    store.cut_at = 2
    with pytest.raises(Cut):
        await restore(store, backup)
    with pytest.raises(RestoreRefused, match=f"the checksum {backup.checksum}"):
        await restore(store, other)


async def test_of_two_restores_at_once_one_ends_without_another_write() -> None:
    """The other one comes to its end between two commits of the first."""
    backup = await saved()
    ended_at: list[int] = []

    class Overtaken(MemoryStore):
        async def commit(self, txn: Txn) -> int:
            if CLUSTER_KEY not in txn.put and not ended_at:
                ended_at.append(0)
                await restore(self, backup)
                ended_at[0] = (await self.read("/")).revision
            return await super().commit(txn)

    store = Overtaken()
    with pytest.raises(RestoreInterrupted, match="somebody else has changed the store"):
        await restore(store, backup)
    assert (await store.read("/")).revision == ended_at[0] > 0
    assert await held(store) == restored_values(backup)
