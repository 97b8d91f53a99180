"""`lead_again`: at each start every partition in sync with this broker gets a new leader epoch, stored first."""

import pytest

from broker.cluster.image import ClusterImage
from broker.cluster.keys import PartitionState, decode_partition, partition_key
from broker.cluster.memory import MemoryStore
from broker.cluster.store import OPERATIONS_MAX, Conflict, Txn
from broker.cluster.topics import create_topic
from broker.controller.elections import lead_again

TOPIC_ID = bytes(range(16))
ALONE = PartitionState(TOPIC_ID, (0,), (0,), 0, leader_epoch=4, partition_epoch=9)


async def image_of(store: MemoryStore) -> ClusterImage:
    return ClusterImage.from_snapshot(await store.read("/"))


async def test_each_start_takes_a_new_leader_epoch() -> None:
    store = MemoryStore()
    await create_topic(store, "orders", TOPIC_ID, [ALONE], {})
    for start in (1, 2):
        assert await lead_again(store, 0) == 1
        state = (await image_of(store)).partition("orders", 0)
        assert state is not None
        assert (state.leader, state.leader_epoch, state.partition_epoch) == (0, 4 + start, 9 + start)
        assert (state.replicas, state.isr) == ((0,), (0,))


async def test_only_partitions_in_sync_with_this_broker_are_led() -> None:
    store = MemoryStore()
    behind = PartitionState(TOPIC_ID, (0, 1), (1,), 1)
    other = PartitionState(TOPIC_ID, (1, 2), (1, 2), 2)
    shared = PartitionState(TOPIC_ID, (1, 0), (1, 0), 1)
    await create_topic(store, "orders", TOPIC_ID, [behind, other, shared], {})
    assert await lead_again(store, 0) == 1
    image = await image_of(store)
    assert [image.partition("orders", index) for index in range(2)] == [behind, other]
    assert image.partition("orders", 2) == shared.with_leader(0)


async def test_many_partitions_take_several_commits_and_none_is_left_out() -> None:
    store = MemoryStore()
    count = 2 * OPERATIONS_MAX + 3
    await create_topic(store, "orders", TOPIC_ID, [ALONE] * count, {})
    before = (await store.read("/")).revision
    assert await lead_again(store, 0) == count
    assert (await store.read("/")).revision == before + 3
    image = await image_of(store)
    assert {state.leader_epoch for state in image.topics["orders"].partitions} == {5}


async def test_without_partitions_nothing_is_written() -> None:
    store = MemoryStore()
    assert await lead_again(store, 0) == 0
    assert (await store.read("/")).revision == 0


async def test_a_partition_that_others_change_meanwhile_is_not_overwritten() -> None:
    class Meddled(MemoryStore):
        async def commit(self, txn: Txn) -> int:
            if txn.expect:
                await super().commit(Txn(put={partition_key("orders", 0): ALONE.with_leader(1).encode()}))
            return await super().commit(txn)

    store = Meddled()
    await MemoryStore.commit(store, Txn(put={partition_key("orders", 0): ALONE.encode()}))
    with pytest.raises(Conflict):
        await lead_again(store, 0)
    (entry,) = (await store.read(partition_key("orders", 0))).entries.values()
    assert decode_partition(entry.value, "orders", 0).leader == 1
