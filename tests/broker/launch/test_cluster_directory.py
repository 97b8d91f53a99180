"""Which brokers belong to a directory, who may be left out, and what it says of its topics."""

import pytest

from odradek.broker.cluster.keys import NodeState, PartitionState, node_key, partition_key
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.store import Txn
from odradek.broker.directories.cluster_layout import metadata_directory
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.launch.cluster_directory import (
    broker_ids,
    defaults_of,
    keep_defaults,
    leave_out,
    lock_metadata,
    registered_ids,
)
from odradek.broker.startup_errors import StartRefused


async def store_of(ids: tuple[int, ...], *replicas: tuple[int, ...]) -> MemoryStore:
    """A cluster of these brokers, with a topic whose partitions have these replicas."""
    store = MemoryStore()
    await store.commit(Txn(put={node_key(each): NodeState((bytes(16),), None, {}, {}).encode() for each in ids}))
    states = [PartitionState(bytes(16), each, each, each[0]).encode() for each in replicas]
    await store.commit(Txn(put={partition_key("t", index): state for index, state in enumerate(states)}))
    return store


@pytest.mark.parametrize(
    ("known", "count", "ids"),
    [
        ((), 3, [1, 2, 3]),
        ((1, 2, 3), 3, [1, 2, 3]),
        ((1, 2, 3), 2, [1, 2]),
        ((1, 2), 4, [1, 2, 3, 4]),
        ((0,), 3, [0, 1, 2]),
        ((2, 7), 3, [2, 3, 7]),
    ],
)
def test_the_brokers_of_the_cluster_come_before_new_ones(known: tuple[int, ...], count: int, ids: list[int]) -> None:
    assert broker_ids(known, count) == ids


async def test_a_broker_that_holds_partitions_is_not_left_out() -> None:
    store = await store_of((1, 2, 3), (1, 2), (2, 3), (3,))
    with pytest.raises(StartRefused) as refused:
        await leave_out(store, [1, 2], "dir")
    assert str(refused.value) == (
        "the cluster in dir has 3 brokers, and without broker(s) 3 replicas of 2 partition(s) would be missing (t-1, "
        "t-2): start it with --brokers 3, move them (odradek partitions spread --brokers 1,2), and start it with "
        "--brokers 2 then"
    )
    assert await registered_ids(store) == [1, 2, 3]


async def test_of_many_partitions_some_are_named() -> None:
    store = await store_of((1, 2), *[(2,)] * 5)
    with pytest.raises(StartRefused, match=r"5 partition\(s\) would be missing \(t-0, t-1, t-2 and 2 more\)"):
        await leave_out(store, [1], "dir")


async def test_a_broker_that_holds_nothing_is_forgotten() -> None:
    store = await store_of((1, 2, 3), (1, 2))
    assert await leave_out(store, [1, 2, 3], "dir") == []
    assert await leave_out(store, [1, 2], "dir") == [3]
    assert await registered_ids(store) == [1, 2]


def test_one_cluster_runs_on_a_directory() -> None:
    disk = MemoryDisk()
    lock = lock_metadata(disk, "dir")
    with pytest.raises(StartRefused, match="the directory dir is in use: another `odradek cluster run`"):
        lock_metadata(disk, "dir")
    lock.release()
    lock_metadata(disk, "dir").release()


@pytest.mark.parametrize("name", ["meta.properties", "metadata.log"])
def test_the_directory_of_one_broker_is_no_cluster(name: str) -> None:
    disk = MemoryDisk()
    disk.make_dir("dir")
    disk.write_whole(f"dir/{name}", b"")
    with pytest.raises(StartRefused, match="odradek cluster take dir --data-dir NEW"):
        lock_metadata(disk, "dir")
    assert not disk.exists(metadata_directory("dir"))


def test_defaults_that_were_chosen_come_back() -> None:
    disk = MemoryDisk()
    disk.make_dir("dir")
    assert defaults_of(disk, "dir") is None
    keep_defaults(disk, "dir", {"default.replication.factor": "1", "min.insync.replicas": "1"})
    assert defaults_of(disk, "dir") == {"default.replication.factor": "1", "min.insync.replicas": "1"}
    disk.write_whole("dir/cluster.properties", b"\xff")
    with pytest.raises(StartRefused, match=r"the file dir/cluster\.properties cannot be read"):
        defaults_of(disk, "dir")
