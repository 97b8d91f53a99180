"""Brokers on a store that others share, and what they are given is not theirs, not whole, or older than it was.

Each is told in a sentence, and neither the store nor the data directory has changed. What belongs to one broker with a
store of its own stands in test_server.py and test_server_directories.py.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

import pytest

from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import (
    CLUSTER_KEY,
    BrokerState,
    MalformedMetadata,
    NodeState,
    PartitionState,
    TopicState,
    broker_config_key,
    broker_key,
    changing_key,
    encode_changing,
    encode_cluster,
    encode_configs,
    encode_restoring,
    node_key,
    partition_key,
    topic_key,
)
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.store import Change, MetadataStore, StoreWentBack, Txn
from odradek.broker.directories.meta_properties import ForeignDirectory
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.server import Broker
from odradek.broker.startup_errors import BrokerFailed, StartRefused
from odradek.protocol.errors import ErrorCode
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import breathe
from tests.broker.cluster.faulty_store import FaultyStore
from tests.broker.servers import files, started
from tests.broker.wire import RawClient, batch, connected, create_topic, produce, produced, settings

PATIENCE_S = 10.0
TOPIC_ID = bytes(range(16))
CLUSTER_ID = "b2RyYWRlay10ZXN0cy0wMQ"
ONE = TopicState(TOPIC_ID, 1)


def broker_of(store: MetadataStore, disk: MemoryDisk, node_id: int = 1) -> Broker:
    return Broker(settings("data", node_id=node_id), Environment(), disk, store=store)


async def with_records(store: MemoryStore, disk: MemoryDisk, *topics: str, node_id: int = 1) -> None:
    """Runs a broker that creates these topics, each with a record."""
    async with started(broker_of(store, disk, node_id)) as broker, connected(broker) as client:
        for name in topics:
            await create_topic(client, name)
            assert (await produced(client, name, batch(b"a"))).error_code == ErrorCode.NONE


async def content(store: MemoryStore) -> dict[str, tuple[bytes, int]]:
    snapshot = await store.read("/")
    return {key: (entry.value, entry.revision) for key, entry in snapshot.entries.items()}


@dataclass
class Untouched:
    """A store and a directory as they were."""

    store: MemoryStore
    disk: MemoryDisk
    keys: dict[str, tuple[bytes, int]]
    files: dict[str, bytes | None]

    async def check(self) -> None:
        assert await content(self.store) == self.keys
        assert files(self.disk) == self.files


async def untouched(store: MemoryStore, disk: MemoryDisk) -> Untouched:
    return Untouched(store, disk, await content(store), dict(files(disk)))


async def refused(store: MemoryStore, disk: MemoryDisk, error: type[Exception], match: str, node_id: int = 1) -> None:
    before = await untouched(store, disk)
    with pytest.raises(error, match=match):
        await broker_of(store, disk, node_id).start()
    await before.check()


# -- directories -------------------------------------------------------------------------------------------------------


async def test_the_directory_of_another_cluster_is_refused() -> None:
    here, there, disk = MemoryStore(), MemoryStore(), MemoryDisk()
    await with_records(here, disk, "orders")
    await with_records(there, MemoryDisk())
    await refused(there, disk, ForeignDirectory, r"data belongs to cluster .*, and its metadata to cluster")


async def test_the_directory_of_another_node_is_refused() -> None:
    store, disk = MemoryStore(), MemoryDisk()
    await with_records(store, disk, "orders")
    await refused(store, disk, ForeignDirectory, "data belongs to node 1 and this is node 2: start with", node_id=2)


async def test_a_second_broker_of_the_same_id_is_refused_and_the_first_keeps_all_it_has() -> None:
    """It has a directory of its own, as if that of the first one had been replaced."""
    store, disk, other_disk = MemoryStore(), MemoryDisk(), MemoryDisk()
    async with started(broker_of(store, disk)) as first, connected(first) as client:
        await create_topic(client, "orders")
        assert (await produced(client, "orders", batch(b"a"))).error_code == ErrorCode.NONE
        before = await content(store)
        with pytest.raises(StartRefused, match=r"broker 1 is registered already, from another data directory .* stop"):
            await broker_of(store, other_disk).start()
        assert await content(store) == before
        assert (await produced(client, "orders", batch(b"b"))).base_offset == 1


async def test_a_broker_with_a_new_directory_waits_until_its_former_one_is_forgotten() -> None:
    """Its disk was replaced after a crash: its lease has not ended yet. Then it gives up what it had."""
    store, former = FaultyStore(), b"1" * 16
    seat = PartitionState(TOPIC_ID, (1, 2), (1, 2), 2)
    await store.commit(Txn(put={CLUSTER_KEY: encode_cluster(CLUSTER_ID), node_key(1): NodeState((former,)).encode()}))
    await store.commit(Txn(put={partition_key("orders", 0): seat.encode(), topic_key("orders"): ONE.encode()}))
    registered = BrokerState(1, {"PLAINTEXT": ("127.0.0.1", 9)}, directory_id=former)
    lease = await store.lease(1_000)
    await store.commit(Txn(put={broker_key(1): registered.encode()}, lease=lease))
    began = asyncio.get_running_loop().time()
    async with started(broker_of(store, MemoryDisk())) as broker:
        assert asyncio.get_running_loop().time() - began >= 0.95
        state = broker.context.metadata.image.topics["orders"].partitions[0]
        assert (state.isr, state.elr) == ((), (2,)), "the other one is not there, and may lead when it comes"
    await store.close()


async def test_in_sync_places_are_given_up_by_the_min_insync_of_the_cluster_not_the_file() -> None:
    """By a lower one broker 3 would be eligible no more, for one replica in sync would be enough."""
    store = MemoryStore()
    seat = PartitionState(TOPIC_ID, (1, 2, 3), (2,), 2, elr=(1, 3))
    await store.commit(
        Txn(
            put={
                CLUSTER_KEY: encode_cluster(CLUSTER_ID),
                node_key(1): NodeState((b"1" * 16,)).encode(),
                partition_key("orders", 0): seat.encode(),
                topic_key("orders"): ONE.encode(),
                broker_config_key(None): encode_configs({"min.insync.replicas": "2"}),
            }
        )
    )
    async with started(broker_of(store, MemoryDisk())) as broker:
        state = broker.context.metadata.image.topics["orders"].partitions[0]
        assert (state.isr, state.elr) == ((), (2, 3)), "nor is broker 2 there"


# -- the store ---------------------------------------------------------------------------------------------------------


async def test_keys_of_others_are_left_alone() -> None:
    store, disk = MemoryStore(), MemoryDisk()
    foreign = {"/somebody/else": b"{}", "/brokers": b"", "/topic/orders": b"x"}
    await store.commit(Txn(put=foreign))
    await with_records(store, disk, "orders")
    await with_records(store, disk, "more")
    assert foreign.items() <= {key: value for key, (value, _) in (await content(store)).items()}.items()


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("/brokers/abc", b"{}", "a key names broker 'abc', which is no broker id"),
        ("/nodes/1", b"[]", "the metadata of node 1 is no JSON object"),
        ("/topics/orders", b"\xff", "the metadata of topic orders is no JSON"),
        ("/partitions/orders", b"{}", "/partitions/orders names no partition"),
        ("/configs/topics/orders", b'{"v":1}', "/configs/topics/orders has no usable field"),
        ("/topics/new", b'{"v":2}', "topic new has format version 2, written by a newer Odradek"),
    ],
)
async def test_what_stands_in_our_place_and_cannot_be_read_is_refused_by_name(
    key: str, value: bytes, said: str
) -> None:
    store, disk = MemoryStore(), MemoryDisk()
    await with_records(store, disk, "orders")
    await store.commit(Txn(put={key: value}))
    await refused(store, disk, MalformedMetadata, said)


async def test_a_restore_that_was_not_finished_is_refused() -> None:
    store, disk = MemoryStore(), MemoryDisk()
    await with_records(store, disk, "orders")
    await store.commit(Txn(put={CLUSTER_KEY: encode_restoring("0" * 64)}))
    await refused(store, disk, MalformedMetadata, "a restore of this metadata was begun and has not ended")


async def test_a_topic_without_one_of_its_partitions_is_refused() -> None:
    store, disk = MemoryStore(), MemoryDisk()
    await with_records(store, disk, "orders")
    await store.commit(Txn(put={topic_key("half"): TopicState(TOPIC_ID, 2).encode()}))
    await refused(store, disk, MalformedMetadata, "topic half has 2 partitions, but /partitions/half/0 is missing")


async def test_what_an_unfinished_creation_has_left_is_not_seen_and_swept() -> None:
    store, disk = MemoryStore(), MemoryDisk()
    await with_records(store, disk, "orders")
    half = PartitionState(TOPIC_ID, (1,), (1,), 1).encode()
    left = {partition_key("half", index): half for index in range(3)} | {
        changing_key("half"): encode_changing(TOPIC_ID)
    }
    await store.commit(Txn(put=left))
    async with started(broker_of(store, disk)) as broker, connected(broker) as client:
        assert set(broker.context.metadata.image.topics) == {"orders"}
        async with asyncio.timeout(PATIENCE_S):
            while left.keys() & (await content(store)).keys():
                await broker.context.metadata.revision.reach(broker.context.metadata.image.revision + 1)
        await create_topic(client, "half", 2)
        assert (await produced(client, "half", batch(b"a"), index=1)).error_code == ErrorCode.NONE


async def test_a_store_that_was_emptied_is_refused_if_there_are_partitions() -> None:
    disk = MemoryDisk()
    await with_records(MemoryStore(), disk, "orders")
    await refused(MemoryStore(), disk, ForeignDirectory, "data has the partition orders-0, and no metadata says which")


async def test_a_store_that_was_emptied_is_refused_even_without_partitions() -> None:
    disk = MemoryDisk()
    await with_records(MemoryStore(), disk)
    await refused(MemoryStore(), disk, ForeignDirectory, r"is at revision 0, and was at \d+ before .*It was lost")


async def test_an_older_store_of_the_same_cluster_is_refused() -> None:
    store, disk = MemoryStore(), MemoryDisk()
    await with_records(store, disk, "orders")
    cluster_id = ClusterImage.from_snapshot(await store.read("/")).cluster_id
    assert cluster_id is not None
    older = MemoryStore()
    await older.commit(Txn(put={CLUSTER_KEY: encode_cluster(cluster_id)}))
    await refused(older, disk, ForeignDirectory, "is at revision 1, and was at [0-9]+ before")


# -- while a broker runs -----------------------------------------------------------------------------------------------


class AgeingStore(MemoryStore):
    """One that can become older than it was, as etcd when it is restored from a backup."""

    def __init__(self) -> None:
        super().__init__()
        self.gone_back = asyncio.Event()
        self.commit_count = 0

    async def commit(self, txn: Txn) -> int:
        self.commit_count += 1
        return await super().commit(txn)

    async def watch(self, prefix: str, after: int) -> AsyncGenerator[Change, None]:
        async with aclosing(super().watch(prefix, after)) as changes:
            while True:
                change = asyncio.ensure_future(anext(changes))
                back = asyncio.ensure_future(self.gone_back.wait())
                await asyncio.wait((change, back), return_when=asyncio.FIRST_COMPLETED)
                if self.gone_back.is_set():
                    change.cancel()
                    await asyncio.gather(change, return_exceptions=True)
                    raise StoreWentBack("etcd is at revision 3, and was at 5 before: it was restored")
                back.cancel()
                yield await change


@asynccontextmanager
async def failing(store: MemoryStore) -> AsyncGenerator[tuple[Broker, asyncio.Event]]:
    """A broker that leads a topic, and an event for its failure."""
    broker, failed = broker_of(store, MemoryDisk()), asyncio.Event()
    broker.on_failure = failed.set
    async with started(broker), connected(broker) as client:
        await create_topic(client, "orders")
        yield broker, failed


async def test_a_store_that_goes_back_ends_the_broker_which_writes_nothing_any_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = AgeingStore()
    async with failing(store) as (broker, failed), connected(broker) as client:
        store.gone_back.set()
        await asyncio.wait_for(failed.wait(), PATIENCE_S)
        assert broker.failure is not None
        assert "was at 5 before: it was restored. What it does not know any more may be" in broker.failure
        assert "odradek cluster restore" in broker.failure
        commit_count = store.commit_count
        answer = await produced_alone(client)
        assert answer == ErrorCode.NOT_LEADER_OR_FOLLOWER, "acks=1 is promised by nothing any more"
    assert store.commit_count == commit_count, "not even when it stops"
    assert "/brokers/1" in await content(store), "its registration is left to its lease"
    assert "ended with an error" not in caplog.text


@pytest.mark.parametrize("is_another", [False, True])
async def test_a_store_that_is_emptied_ends_the_broker_which_deletes_nothing(is_another: bool) -> None:
    """All topics are gone from it, in one commit, as `etcdctl del --prefix` does it: nobody has deleted them."""
    store, disk, failed = MemoryStore(), MemoryDisk(), asyncio.Event()
    broker = broker_of(store, disk)
    broker.on_failure = failed.set
    async with started(broker), connected(broker) as client:
        await create_topic(client, "orders")
        assert (await produced(client, "orders", batch(b"a"))).error_code == ErrorCode.NONE
        keys = tuple((await store.read("/")).entries)
        put = {CLUSTER_KEY: encode_cluster("another")} if is_another else {}
        await store.commit(Txn(put=put, delete=tuple(key for key in keys if key not in put)))
        await asyncio.wait_for(failed.wait(), PATIENCE_S)
        assert broker.failure is not None
        assert "the metadata store was emptied, or is another cluster's: it belonged to cluster" in broker.failure
        assert disk.exists("data/orders-0/00000000000000000000.log")
    assert disk.exists("data/orders-0/00000000000000000000.log")
    assert set((await store.read("/")).entries) == set(put)


async def test_metadata_that_cannot_be_read_ends_the_broker(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "odradek.broker.directories.metadata_revision.RENEWAL_MS", 0
    )  # so that it waits for the next revision by now
    store = MemoryStore()
    async with failing(store) as (broker, failed):
        async with asyncio.timeout(PATIENCE_S):
            while not broker.context.metadata.revision.waiting:
                await breathe()
        await store.commit(Txn(put={"/topics/orders": b"null"}))
        await asyncio.wait_for(failed.wait(), PATIENCE_S)
        assert broker.failure == "the metadata cannot be followed: the metadata of topic orders is no JSON object"
    assert "ended with an error" not in caplog.text


async def test_metadata_that_cannot_be_read_ends_a_start_that_waits_for_it() -> None:
    class Spoiling(MemoryStore):
        """Somebody writes nonsense right behind the registration."""

        async def commit(self, txn: Txn) -> int:
            revision = await super().commit(txn)
            if "/brokers/1" in txn.put:
                await super().commit(Txn(put={"/topics/orders": b"null"}))
            return revision

    with pytest.raises(BrokerFailed, match="the metadata of topic orders is no JSON object"):
        await asyncio.wait_for(broker_of(Spoiling(), MemoryDisk()).start(), PATIENCE_S)


async def produced_alone(client: RawClient) -> int:
    response = await client.ask(produce("orders", batch(b"a"), acks=1), 9)
    return response.responses[0].partition_responses[0].error_code
