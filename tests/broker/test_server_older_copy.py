"""An older copy of a data directory, put back by an operator: whole brokers in this process, each with its own disk.

What two replicas have acknowledged survives, whichever broker starts first, and a broker that cannot have it says so.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import PartitionState, decode_partition, partition_key
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.stamped_store import StampedStore
from odradek.broker.cluster.store import Txn
from odradek.broker.directories.checkpoints import CLEAN_SHUTDOWN
from odradek.broker.directories.metadata_revision import load_processes
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.membership.registration import Registration
from odradek.broker.partitions.table import Partitions
from odradek.broker.server import Broker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.runtime.environment import Environment
from tests.broker.log.logs import copied, read_all
from tests.broker.servers import started
from tests.broker.wire import batch, connected, create_topic, produced, settings

OPTIONS = {"min.insync.replicas": "2"}
PUT_BACK = "is an older copy, or was not in use when broker"
FIRST, LATER = ([b"<%d>" % number for number in range(start, start + 100)] for start in (0, 100))


class Cluster:
    """Brokers on one store, each with a disk of its own."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.disks = {node_id: MemoryDisk() for node_id in (1, 2, 3)}
        self.brokers: dict[int, Broker] = {}

    async def start(self, *node_ids: int) -> None:
        for node_id in node_ids:
            broker = Broker(settings("data", OPTIONS, node_id), Environment(), self.disks[node_id], store=self.store)
            await broker.start()
            self.brokers[node_id] = broker

    async def stop(self, *node_ids: int) -> None:
        for node_id in node_ids:
            await self.brokers.pop(node_id).stop()

    async def close(self) -> None:
        """The whole cluster stops, so nobody waits for anybody."""
        for broker in self.brokers.values():
            await broker.stop(all_stop=True)

    async def reached(self, is_reached: Callable[[PartitionState], bool]) -> PartitionState:
        """The state of orders-0, once it is so for the first of the brokers."""
        metadata = next(iter(self.brokers.values())).context.metadata
        while not is_reached(state := metadata.image.topics["orders"].partitions[0]):
            await metadata.revision.reach(metadata.revision.value + 1, 20_000)
        return state

    async def all_in_sync(self) -> PartitionState:
        return await self.reached(lambda state: {*state.isr} == {1, 2, 3} and state.leader in self.brokers)

    async def create(self) -> None:
        topic = CreatableTopic(name="orders", num_partitions=1, replication_factor=3, assignments=[], configs=[])
        async with connected(self.brokers[1]) as client:
            response = await client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=5_000), 5)
        assert response.topics[0].error_code == ErrorCode.NONE

    async def produce(self, values: Sequence[bytes]) -> None:
        leader = (await self.all_in_sync()).leader
        async with connected(self.brokers[leader]) as client:
            assert (await produced(client, "orders", batch(*values))).error_code == ErrorCode.NONE

    def held(self, node_id: int) -> list[bytes]:
        """Which of all records this broker has."""
        data = read_all(self.brokers[node_id].context.partitions.find("orders", 0).log)
        return [value for value in (*FIRST, *LATER) if value in data]


async def test_the_last_one_that_was_stopped_does_not_lead_with_an_older_copy(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It was the last one in sync, is started first, and 100 of 200 records that all three had acknowledged are not in
    its copy."""
    async with AsyncExitStack() as stack:
        cluster = Cluster()
        stack.push_async_callback(cluster.close)
        await cluster.start(1, 2, 3)
        await cluster.create()
        await cluster.produce(FIRST)
        await cluster.stop(1)
        copy = copied(cluster.disks[1], MemoryDisk())
        await cluster.start(1)
        await cluster.produce(LATER)
        await cluster.stop(3, 2, 1)
        assert copy.exists(f"data/{CLEAN_SHUTDOWN}")
        cluster.disks[1] = copy
        with caplog.at_level(logging.WARNING):
            await cluster.start(1, 2, 3)
            await cluster.all_in_sync()
        held = {node_id: len(cluster.held(node_id)) for node_id in (1, 2, 3)}
        assert held == dict.fromkeys((1, 2, 3), len(FIRST) + len(LATER))
        assert [message for message in caplog.messages if PUT_BACK in message] == [
            "the data directory data is an older copy, or was not in use when broker 1 ran last: what was acknowledged "
            "since may be missing in it"
        ]
        caplog.clear()
        await cluster.stop(3, 2, 1)
        await cluster.start(1, 2, 3)
        assert {*(await cluster.all_in_sync()).isr} == {1, 2, 3}
        assert PUT_BACK not in caplog.text, "it is the newest from now on"


# -- one broker, whose processes end at every step ---------------------------------------------------------------------


class Process(Exception):
    """It ends here."""


def ends(*_: object, **__: object) -> None:
    raise Process


def never(*_: object) -> None:
    raise AssertionError("it does not come so far")


async def ended(broker: Broker) -> None:
    with pytest.raises(Process):
        await broker.start()


def on(disk: MemoryDisk, store: MemoryStore | None, *data_dirs: str) -> Broker:
    """With a store of its own in its directory, where none is given."""
    return Broker(settings(data_dirs or ("data",), node_id=1), Environment(), disk, store=store)


async def run(disk: MemoryDisk, store: MemoryStore | None, *data_dirs: str, topics: Sequence[str] = ()) -> None:
    async with started(on(disk, store, *data_dirs)) as broker, connected(broker) as client:
        for name in topics:
            await create_topic(client, name)


async def current(store: MemoryStore) -> str | None:
    return ClusterImage.from_snapshot(await store.read("/")).lineage.current(1)


@pytest.mark.parametrize("is_shared", [True, False])
async def test_starts_that_end_before_a_first_commit_leave_the_newest_directory_newest(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *, is_shared: bool
) -> None:
    """At the first start, too, and with a store in the directory."""
    disk, store = MemoryDisk(), MemoryStore() if is_shared else None
    for _ in range(2):
        for _ in range(3):
            with monkeypatch.context() as patch:
                patch.setattr(Partitions, "load", ends)
                await ended(on(disk, store))
        await run(disk, store)
    for _ in range(2):
        await run(disk, store)
    assert PUT_BACK not in caplog.text
    assert len(load_processes(disk, "data")) == 2


async def test_a_start_is_noted_before_its_first_commit_and_found_when_it_died_behind_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its first commit is the one that gives up what a loss of power may have taken, before it registers."""
    disk, store = MemoryDisk(), MemoryStore()
    await run(disk, store, topics=["orders"])
    disk.remove(f"data/{CLEAN_SHUTDOWN}")
    disk.remove("data/boot.id")
    key = partition_key("orders", 0)
    state = decode_partition((await store.read(key)).entries[key].value, "orders", 0, 1)
    await store.commit(Txn(put={key: replace(state, leader=1).encode()}))
    noted: list[bool] = []
    commit = StampedStore.commit

    async def committed(stamped: StampedStore, txn: Txn) -> int:
        before = await current(store)
        await commit(stamped, txn)
        if (now := await current(store)) != before:
            noted.append(now in load_processes(disk, "data"))
        raise Process

    with monkeypatch.context() as patch:
        patch.setattr(StampedStore, "commit", committed)
        patch.setattr(Registration, "register", never)
        await ended(on(disk, store))
    assert noted == [True]
    await run(disk, store)
    assert PUT_BACK not in caplog.text


async def test_an_older_copy_whose_start_ends_before_its_logs_are_back_is_found_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk, store = MemoryDisk(), MemoryStore()
    await run(disk, store, topics=["orders"])
    copy = copied(disk, MemoryDisk())
    await run(disk, store)
    with monkeypatch.context() as patch:
        patch.setattr(Partitions, "load", ends)
        await ended(on(copy, store))
    assert caplog.text.count(PUT_BACK) == 1
    with monkeypatch.context() as patch:
        patch.setattr(Registration, "register", ends)
        await ended(on(copy, store))
    assert caplog.text.count(PUT_BACK) == 2
    assert "1 partitions were in sync on broker 1 only, in a data directory that is an older copy" in caplog.text
    await run(copy, store)
    assert caplog.text.count(PUT_BACK) == 2, "its logs were back, and that was said"


async def test_a_whole_copy_with_its_own_metadata_is_the_newest_there_is(caplog: pytest.LogCaptureFixture) -> None:
    disk = MemoryDisk()
    await run(disk, None, topics=["orders"])
    copy = copied(disk, MemoryDisk())
    await run(disk, None, topics=["later"])
    await run(copy, None)
    assert PUT_BACK not in caplog.text


async def test_an_older_copy_of_one_directory_is_named_and_what_it_lacks_is_not_recreated(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A topic that was created since is offline, for want of anybody who has it, and not empty."""
    disk = MemoryDisk()
    await run(disk, None, "a", "b", topics=["first", "second"])
    copy = copied(disk, MemoryDisk())
    await run(disk, None, "a", "b", topics=["third", "fourth"])
    lost = next(name for name in ("third", "fourth") if disk.exists(f"b/{name}-0"))
    disk.remove_tree("b")
    disk.make_dir("b")
    copied(copy, disk, "b")
    async with started(on(disk, None, "a", "b")) as broker:
        topics = broker.context.metadata.image.topics
        assert [name for name, topic in topics.items() if not topic.partitions[0].isr] == [lost]
    assert "the data directory b is an older copy" in caplog.text
    assert "the data directory a is" not in caplog.text


async def test_a_directory_that_is_added_and_one_of_a_former_version_are_no_older_copies(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk, store = MemoryDisk(), MemoryStore()
    await run(disk, store, "a")
    await run(disk, store, "a", "b")
    for name in ("a", "b"):
        path = f"{name}/metadata.revision"
        lines = disk.read_whole(path).splitlines(keepends=True)
        disk.write_whole(path, b"".join(line for line in lines if not line.startswith(b"processes=")))
    await run(disk, store, "b", "a", "c")
    await run(disk, store, "c", "a", "b")
    assert PUT_BACK not in caplog.text
    assert len({load_processes(disk, name) for name in ("a", "b", "c")}) == 1


async def test_a_directory_that_was_away_is_taken_for_an_older_one(caplog: pytest.LogCaptureFixture) -> None:
    """It was not listed at one start, so its id is not known any more; or it could not be used, and is known."""
    disk, store = MemoryDisk(), MemoryStore()
    await run(disk, store, "a", "b")
    await run(disk, store, "a")
    await run(disk, store, "a", "b")
    await run(disk, store, "a", "b")
    assert PUT_BACK not in caplog.text
    away = copied(disk, MemoryDisk())
    disk.remove_tree("b")
    disk.write_whole("b", b"")
    await run(disk, store, "a", "b")
    disk.remove("b")
    disk.make_dir("b")
    copied(away, disk, "b")
    await run(disk, store, "a", "b")
    assert caplog.text.count(PUT_BACK) == 1
    await run(disk, store, "a", "b")
    assert caplog.text.count(PUT_BACK) == 1
