"""A data directory that fails while the broker runs: what its clients are told, what the metadata says then, and that
the rest goes on. Whole brokers on a memory disk of several devices, and brokers without sockets beside silent ones.
"""

import asyncio
import errno
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from odradek.broker.cluster.keys import NO_LEADER, BrokerState, PartitionState, partition_key
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.store import Txn
from odradek.broker.directories.data_directory import DataDirectory
from odradek.broker.handling.context import Context
from odradek.broker.log.leftovers import UNSYNCED
from odradek.broker.log.segments import Written
from odradek.broker.membership.offline_replicas import OfflineReplicas
from odradek.broker.replica.acknowledgements import ACKS_ALL
from odradek.broker.replica.partition import Partition
from odradek.broker.server import Broker
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.runtime.environment import Environment
from tests.broker.cluster.faulty_store import Fate, FaultyStore
from tests.broker.failing_disk import FailingDisk
from tests.broker.servers import broker_on, started
from tests.broker.support import HERE, LISTENER, NODE_ID, append, ask, batch, make_topic, running_broker
from tests.broker.wire import batch as wire_batch
from tests.broker.wire import connected, produced, settings

AB = ("a", "b")
SECOND, THIRD = (BrokerState(broker_id, {LISTENER: ("127.0.0.1", 9)}) for broker_id in (7, 8))
NONCE = "0123456789abcdef"
WAIT_S = 10.0


async def until(context: Context, condition: Callable[[], bool]) -> None:
    """Returns when it holds; it is looked at whenever the metadata has changed."""
    async with asyncio.timeout(WAIT_S):
        while not condition():
            await context.metadata.revision.reach(context.metadata.image.revision + 1)


def directory(context: Context, path: str) -> DataDirectory:
    return next(each for each in context.partitions.directories if each.path == path)


def state_of(context: Context, name: str, index: int = 0) -> PartitionState:
    return context.metadata.image.topics[name].partitions[index]


# -- a whole broker ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS])
async def test_a_directory_that_fails_takes_its_partitions_offline_and_no_others(
    caplog: pytest.LogCaptureFixture, number: int
) -> None:
    disk = FailingDisk()
    async with started(broker_on(disk, AB)) as broker, connected(broker) as client:
        context = broker.context
        await make_topic(context, "one", 4)
        disk.fail("b", number, reads=number == errno.EIO)
        for _ in range(2):
            answer = await produced(client, "one", wire_batch(b"x"), index=1)
            assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        await until(context, lambda: all(state_of(context, "one", index).leader == NO_LEADER for index in (1, 3)))
        for index, offline in enumerate(((), (0,), (), (0,))):
            state = state_of(context, "one", index)
            assert state.offline == offline
            assert {*state.isr, *state.elr} == {0}, "it is the only one, and may come back"
        for index, code in enumerate((ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR) * 2):
            assert (await produced(client, "one", wire_batch(b"x"), index=index)).error_code == code
        metadata = await client.ask(MetadataRequest(topics=None), 12)
        partitions = metadata.topics[0].partitions
        assert [each.leader_id for each in sorted(partitions, key=lambda each: each.partition_index)] == [0, -1, 0, -1]
        assert [each.offline_replicas for each in sorted(partitions, key=lambda each: each.partition_index)] == [
            [],
            [0],
            [],
            [0],
        ]
        results = (await client.ask(DescribeLogDirsRequest(topics=None), 4)).results
        assert [(each.log_dir, each.error_code) for each in results] == [
            ("a", ErrorCode.NONE),
            ("b", ErrorCode.KAFKA_STORAGE_ERROR),
        ]
        assert [[len(topic.partitions) for topic in each.topics] for each in results] == [[2], []]
        assert broker.failure is None
    said = [each for each in caplog.messages if "data directory b has failed, and what it holds is offline" in each]
    assert len(said) == 1


async def test_after_a_restart_with_its_directory_all_is_as_it_was() -> None:
    disk = FailingDisk()
    async with started(broker_on(disk, AB)) as broker, connected(broker) as client:
        context = broker.context
        await make_topic(context, "one", 2)
        assert (await produced(client, "one", wire_batch(b"kept"), index=1)).error_code == ErrorCode.NONE
        disk.fail("b")
        assert (await produced(client, "one", wire_batch(b"not"), index=1)).error_code
        await until(context, lambda: state_of(context, "one", 1).leader == NO_LEADER)
    disk.mend("b")
    async with started(broker_on(disk, AB)) as broker, connected(broker) as client:
        state = state_of(broker.context, "one", 1)
        assert (state.leader, state.isr, state.offline) == (0, (0,), ())
        assert broker.context.partitions.leader("one", 1).log.log_end_offset == 1
        assert (await produced(client, "one", wire_batch(b"more"), index=1)).error_code == ErrorCode.NONE


async def test_an_unmounted_device_is_noticed_although_another_one_takes_the_writes() -> None:
    disk = FailingDisk()
    async with started(broker_on(disk, AB)) as broker:
        await make_topic(broker.context, "one", 2)
        disk.unmount("b")
        with pytest.raises(KafkaError):
            append_and_roll(broker.context, "one", 1)
        await until(broker.context, lambda: state_of(broker.context, "one", 1).offline == (0,))
        assert directory(broker.context, "b").failure is not None


def append_and_roll(context: Context, name: str, index: int) -> None:
    log = context.partitions.leader(name, index).log
    append(context.partitions.leader(name, index), batch(b"x"))
    log.roll(0)


@pytest.mark.parametrize(
    ("data_dirs", "path", "said"),
    [
        (("a",), "a", "the last data directory has failed: a: [Errno 5] Input/output error: 'a/.probe'"),
        (AB, "a", "the data directory with the metadata has failed: a: [Errno 5] Input/output error: 'a/.probe'"),
    ],
)
async def test_without_its_last_directory_and_without_its_metadata_a_broker_ends(
    data_dirs: tuple[str, ...], path: str, said: str
) -> None:
    disk = FailingDisk()
    broker = broker_on(disk, data_dirs)
    await broker.start()
    has_failed = asyncio.Event()
    broker.on_failure = has_failed.set
    try:
        await make_topic(broker.context, "one")
        disk.fail(path)
        with pytest.raises(KafkaError):
            append(broker.context.partitions.leader("one", 0), batch(b"x"))
        await asyncio.wait_for(has_failed.wait(), WAIT_S)
    finally:
        await broker.stop()
    assert broker.failure == said


async def test_metadata_that_cannot_be_written_ends_the_broker_too() -> None:
    disk = FailingDisk()
    broker = broker_on(disk, AB)
    await broker.start()
    has_failed = asyncio.Event()
    broker.on_failure = has_failed.set
    try:
        disk.fail("a")
        with pytest.raises(OSError, match="Input/output error"):
            await broker.context.metadata.store.commit(Txn(put={"/configs/topics/x": b"{}"}))
        await asyncio.wait_for(has_failed.wait(), WAIT_S)
    finally:
        await broker.stop()
    assert broker.failure is not None
    assert broker.failure.startswith("the data directory with the metadata has failed: a: ")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EMFILE])
async def test_a_full_device_is_no_error_of_the_directory(number: int) -> None:
    disk = FailingDisk()
    async with started(broker_on(disk, AB)) as broker, connected(broker) as client:
        await make_topic(broker.context, "one", 2)
        disk.fail("b", number, reads=False)
        assert (await produced(client, "one", wire_batch(b"x"), index=1)).error_code
        disk.mend("b")
        assert (await produced(client, "one", wire_batch(b"x"), index=1)).error_code == ErrorCode.NONE
        assert directory(broker.context, "b").is_online


# -- beside others ----------------------------------------------------------------------------------------------------


class Scene:
    """A broker without sockets, and the one that tells the metadata of its directories."""

    def __init__(self, context: Context, store: FaultyStore, disk: FailingDisk) -> None:
        self.context = context
        self.store = store
        self.disk = disk
        self.has_failed = asyncio.Event()
        self.offline_replicas = OfflineReplicas(
            context.metadata, context.config, context.member.registration, context.environment, context.partitions
        )
        context.partitions.on_offline = self._failed
        context.partitions.on_given_up = self.offline_replicas.look_at_all
        self.offline_replicas.look_at_all()
        context.tasks.start(self.offline_replicas.run(), "tell of offline replicas")

    def _failed(self, directory: DataDirectory) -> None:
        self.offline_replicas.look_at_all()
        self.has_failed.set()

    def fail(self, path: str = "b") -> None:
        """The device is gone, and somebody has noticed."""
        self.disk.fail(path)
        directory(self.context, path).suspect(OSError(errno.EIO, "gone"))

    def state(self, name: str, index: int = 0) -> PartitionState:
        return state_of(self.context, name, index)

    async def until_offline(self, name: str, index: int = 0) -> PartitionState:
        await until(self.context, lambda: NODE_ID in self.state(name, index).offline)
        return self.state(name, index)


@asynccontextmanager
async def scene() -> AsyncGenerator[Scene]:
    store, disk = FaultyStore(), FailingDisk()
    settings = {"min.insync.replicas": "2"}
    async with running_broker(settings, disk=disk, data_dirs=AB, store=store, brokers=(HERE, SECOND, THIRD)) as context:
        yield Scene(context, store, disk)


async def test_it_leaves_the_in_sync_set_of_what_it_led_and_leads_it_no_more() -> None:
    async with scene() as here:
        await make_topic(here.context, "one", 2, replicas=(0, 7, 8))
        here.fail()
        state = await here.until_offline("one", 1)
        assert (state.leader, state.isr, state.elr) == (NO_LEADER, (7, 8), ())
        assert state.leader_epoch == 1, "whoever leads next has an epoch of its own"
        assert here.state("one", 0).isr == (0, 7, 8)


async def test_it_leaves_the_in_sync_set_of_what_it_follows_whose_leader_stays() -> None:
    async with scene() as here:
        await make_topic(here.context, "one", 2, replicas=(7, 0, 8), leader=7)
        here.fail()
        state = await here.until_offline("one", 1)
        assert (state.leader, state.leader_epoch, state.isr) == (7, 0, (7, 8))


async def test_a_replica_with_a_failed_directory_is_not_eligible() -> None:
    async with scene() as here:
        await make_topic(here.context, "one", 2, replicas=(0, 7, 8), isr=(0, 7))
        here.fail()
        state = await here.until_offline("one", 1)
        assert (state.isr, state.elr) == ((7,), ())


async def test_whoever_waits_for_a_partition_of_it_is_told() -> None:
    async with scene() as here:
        await make_topic(here.context, "one", 2, replicas=(0, 7, 8))
        partition = here.context.partitions.leader("one", 1)
        ticket = partition.append(batch(b"x"), ACKS_ALL, 0)
        waiting = here.context.tasks.start(ticket.acknowledged(60_000), "produce")
        woken = asyncio.Event()

        def wake(partition: Partition) -> None:
            woken.set()

        partition.reader.watchers[wake] = None
        here.fail()
        with pytest.raises(KafkaError) as caught:
            await asyncio.wait_for(waiting, WAIT_S)
        assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert woken.is_set()
        for ask_for in (here.context.partitions.leader, here.context.partitions.replica, here.context.partitions.find):
            with pytest.raises(KafkaError) as caught:
                ask_for("one", 1)
            assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR


async def test_it_is_written_though_answers_are_lost_and_others_write_too(caplog: pytest.LogCaptureFixture) -> None:
    """One attempt never arrives, one does and is not answered, one meets a write of somebody else."""
    async with scene() as here:
        await make_topic(here.context, "one", 4, replicas=(0, 7, 8))
        before = here.state("one", 1)
        here.store.fates += [Fate.REFUSED, Fate.LOST]
        shrunk = replace(before, isr=(0, 7), partition_epoch=before.partition_epoch + 1)
        await here.store.store.commit(Txn(put={partition_key("one", 1): shrunk.encode()}))
        with caplog.at_level(logging.WARNING):
            here.fail()
            for index in (1, 3):
                await here.until_offline("one", index)
        assert (here.state("one", 1).isr, here.state("one", 1).elr) == ((7,), ())
        assert here.state("one", 3).isr == (7, 8)
        assert caplog.text.count("that replicas are offline cannot be written yet, and is tried again") == 1


async def test_a_write_that_meets_another_ones_takes_nothing_else_with_it() -> None:
    """Both topics are in one commit, which conflicts because of one of them; about the other one nothing new comes."""
    async with scene() as here:
        for name in ("one", "two"):
            await make_topic(here.context, name, 2, replicas=(0, 7, 8))
        before = here.state("one", 1)
        here.store.blind()
        shrunk = replace(before, isr=(0, 7), partition_epoch=before.partition_epoch + 1)
        await here.store.store.commit(Txn(put={partition_key("one", 1): shrunk.encode()}))
        here.fail()
        await asyncio.wait_for(here.has_failed.wait(), WAIT_S)
        for _ in range(10):
            await asyncio.sleep(0)  # the first attempt has been made by then
        assert set(here.store.commits[-1].put) == {partition_key("one", 1), partition_key("two", 1)}
        here.store.see()
        for name in ("one", "two"):
            await here.until_offline(name, 1)
        assert here.state("one", 1).isr == (7,)


async def test_what_becomes_our_replica_later_has_its_place_in_another_directory() -> None:
    async with scene() as here:
        await make_topic(here.context, "one", 2, replicas=(0, 7, 8))
        here.fail()
        await here.until_offline("one", 1)
        await make_topic(here.context, "two", 2, replicas=(0, 7, 8))
        assert {here.context.partitions.place(each).path for each in here.context.partitions} == {"a"}
        assert here.state("two", 1).offline == ()


async def test_a_partition_that_moves_away_is_offline_no_more() -> None:
    async with scene() as here:
        await make_topic(here.context, "one", 2, replicas=(0, 7, 8))
        here.fail()
        state = await here.until_offline("one", 1)
        after = replace(state, replicas=(7, 8), offline=(), partition_epoch=state.partition_epoch + 1)
        revision = await here.store.commit(Txn(put={partition_key("one", 1): after.encode()}))
        await here.context.metadata.applied(revision)
        assert list(here.context.partitions.offline) == []
        with pytest.raises(KafkaError) as caught:
            here.context.partitions.find("one", 1)
        assert caught.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        back = replace(after, replicas=(7, 8, 0), leader=7, partition_epoch=after.partition_epoch + 1)
        revision = await here.store.commit(Txn(put={partition_key("one", 1): back.encode()}))
        await here.context.metadata.applied(revision)
        assert here.context.partitions.place(here.context.partitions.find("one", 1)).path == "a"


async def test_a_mark_that_is_not_so_is_taken_back() -> None:
    """Left by a former life of this broker, say."""
    async with scene() as here:
        await make_topic(here.context, "one", replicas=(0, 7, 8))
        state = here.state("one")
        marked = replace(state, offline=(0, 7), isr=(8,), leader=8, partition_epoch=1, leader_epoch=1)
        await here.context.metadata.applied(
            await here.store.commit(Txn(put={partition_key("one", 0): marked.encode()}))
        )
        await until(here.context, lambda: NODE_ID not in here.state("one").offline)
        assert here.state("one").offline == (7,), "others speak for themselves"
        assert here.state("one").isr == (8,), "it has to catch up first"


async def test_describe_log_dirs_tells_where_each_partition_is() -> None:
    async with scene() as here:
        await make_topic(here.context, "one", 3)
        answer = await ask(here.context, DescribeLogDirsRequest(topics=None), 4)
        found = {
            each.log_dir: [
                (topic.name, sorted(one.partition_index for one in topic.partitions)) for topic in each.topics
            ]
            for each in answer.results
        }
        assert found == {"a": [("one", [0, 2])], "b": [("one", [1])]}


# -- a log that fails --------------------------------------------------------------------------------------------------


async def fail_sync(context: Context, disk: FailingDisk, index: int = 1) -> None:
    """The device refuses what was appended to a partition in `b`; all else there works."""
    partition = context.partitions.find("one", index)
    append(partition, batch(b"x"))
    disk.fail(f"b/one-{index}", reads=False)
    await partition.durability.sync_all()
    assert partition.log.is_distrusted


async def fail_swap(context: Context, disk: FailingDisk) -> None:
    """The device refuses a compacted segment of that partition its place; all else there works."""
    partition = context.partitions.find("one", 1)
    append(partition, batch(b"x"))
    log = partition.log
    log.roll(0)
    content = disk.read_whole(log.segments[0].file.path)
    disk.write_new(log.segments[0].file.path + f".{NONCE}.cleaned", [content])
    written = Written(0, [0], len(content), [".log"], NONCE)
    assert log.segments.begin_swap(written)
    disk.fail(log.directory, reads=False)
    with pytest.raises(KafkaError, match="Input/output error"):
        log.complete_swap(written)


async def test_the_mark_of_a_failed_sync_is_tried_again_when_the_broker_ends() -> None:
    """Its device fails wholly meanwhile, and comes back."""
    async with scene() as here:
        await make_topic(here.context, "one", 2, replicas=(0, 7, 8))
        mark = f"b/one-1/{UNSYNCED}"
        await fail_sync(here.context, here.disk)
        here.fail()
        await here.has_failed.wait()
        for path in ("b", "b/one-1"):
            here.disk.mend(path)
        assert not here.disk.exists(mark)
        here.context.partitions.close()
        assert here.disk.read_whole(mark).startswith(b"the log could not be synced")


@pytest.mark.parametrize("fail", [fail_sync, fail_swap])
async def test_a_replica_whose_log_failed_is_given_up_and_its_directory_goes_on(
    fail: Callable[[Context, FailingDisk], Awaitable[None]],
) -> None:
    """Where a sync failed, it reads on from a page cache that may have dropped some of it; where a compacted segment
    has half of its place, it takes no appends: it must lead nothing that others have."""
    async with scene() as here:
        await make_topic(here.context, "one", 4, replicas=(0, 7, 8))
        await fail(here.context, here.disk)
        state = await here.until_offline("one", 1)
        assert (state.leader, state.isr, state.elr) == (NO_LEADER, (7, 8), ())
        assert [here.state("one", index).isr for index in (0, 2, 3)] == [(0, 7, 8)] * 3
        assert directory(here.context, "b").is_online


async def test_where_nobody_else_has_it_it_goes_on_until_somebody_does() -> None:
    async with scene() as here:
        await make_topic(here.context, "one", 2, replicas=(0, 7), isr=(0,))
        before = here.state("one", 1)
        await fail_sync(here.context, here.disk)
        await make_topic(here.context, "other")  # whatever it had to write is written by then
        assert here.state("one", 1) == before
        joined = replace(before, isr=(0, 7), partition_epoch=before.partition_epoch + 1)
        await here.store.store.commit(Txn(put={partition_key("one", 1): joined.encode()}))
        state = await here.until_offline("one", 1)
        assert (state.leader, state.isr) == (NO_LEADER, (7,))


async def test_after_a_start_it_is_a_follower_that_fetches_what_it_lacks() -> None:
    disk, store = FailingDisk(), MemoryStore()

    def broker() -> Broker:
        return Broker(settings(AB, {"min.insync.replicas": "2"}), Environment(), disk, store=store)

    async with started(broker()) as first:
        context = first.context
        await make_topic(context, "one", 2, replicas=(0, 7))
        await fail_sync(context, disk)
        await until(context, lambda: state_of(context, "one", 1).offline == (0,))
    disk.mend("b/one-1")
    async with started(broker()) as second:
        state = state_of(second.context, "one", 1)
        assert state.offline == ()
        assert 0 not in (*state.isr, *state.elr)
