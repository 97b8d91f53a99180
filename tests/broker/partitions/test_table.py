"""The table of partitions follows the image, and no directory that fails takes the others with it."""

import asyncio
import errno
import os
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from odradek.broker.cluster.keys import NO_LEADER, TopicState, partition_key, topic_key
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.store import Txn
from odradek.broker.cluster.topics import add_partitions, delete_topic, new_partition, write_topic_configs
from odradek.broker.disk.disk import Disk
from odradek.broker.disk.memory_disk import Content, MemoryDisk
from odradek.broker.handling.context import Context
from odradek.broker.log.checkpoint import (
    LOG_START_OFFSETS,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    read_offsets,
    write_partition_metadata,
)
from odradek.broker.partitions import table as module
from odradek.broker.replica.acknowledgements import ACKS_ALL
from odradek.broker.replica.replicas import Replicas
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.primitives import Buffer
from odradek.runtime.tasks import running_tasks
from tests.broker.api.producing import end_of, produced
from tests.broker.support import DATA_DIR, append, batch, make_topic, running_broker

CHECKPOINT = f"{DATA_DIR}/{LOG_START_OFFSETS}"


class PartlyFullDisk(MemoryDisk):
    """Has no room for what lies below `full`, and renames nothing below `stuck`."""

    full = ""
    stuck = ""

    def write(self, content: Content, data: Buffer) -> None:
        if self.full and self.is_dir(self.full):
            below = [f"{self.full}/{name}" for name in self.list_dir(self.full)]
            if any(self._find(path) is content for path in below):
                super().write(content, memoryview(data)[: len(data) // 2])
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().write(content, data)

    def write_whole(self, path: str, data: Buffer) -> None:
        if self.full and path.startswith(self.full):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        super().write_whole(path, data)

    def rename(self, source: str, target: str) -> None:
        if self.stuck and source.startswith(self.stuck):
            raise OSError(errno.EIO, os.strerror(errno.EIO), source)
        super().rename(source, target)


@pytest.fixture
def disk() -> PartlyFullDisk:
    return PartlyFullDisk()


@pytest.fixture
async def store() -> AsyncIterator[MemoryStore]:
    """Outlives one broker: what is metadata on disk in truth."""
    store = MemoryStore()
    closing, store.close = store.close, _nothing  # type: ignore[method-assign]
    yield store
    await closing()


async def _nothing() -> None:
    return


async def delete(context: Context, name: str = "orders") -> None:
    topic = context.metadata.image.topics[name]
    await asyncio.wait_for(context.metadata.applied(await delete_topic(context.metadata.store, topic)), 5)


def directories(disk: Disk) -> list[str]:
    return [name for name in disk.list_dir(DATA_DIR) if disk.is_dir(f"{DATA_DIR}/{name}")]


def code_of(context: Context, index: int = 0, topic: str = "orders") -> ErrorCode:
    try:
        context.partitions.leader(topic, index)
    except KafkaError as error:
        assert error.message
        return error.code
    return ErrorCode.NONE


async def removed() -> None:
    """Returns once the helper thread has removed what was deleted."""
    removals = [task for task in running_tasks() if task.get_name().startswith("remove ")]
    await asyncio.wait_for(asyncio.gather(*removals), 5)


# -- following the image ----------------------------------------------------------------------------------------------


async def test_a_created_topic_is_there_and_others_are_not() -> None:
    async with running_broker() as context:
        topic_id = await make_topic(context, "orders", 2)
        assert [partition.index for partition in context.partitions] == [0, 1]
        assert context.partitions.topic_name(topic_id) == "orders"
        assert [code_of(context, index) for index in (0, 1, 2, -1)] == [
            ErrorCode.NONE,
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]
        assert code_of(context, topic="nowhere") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_ID"):
            context.partitions.topic_name(bytes(range(16)))


async def test_added_partitions_join_those_that_are_there() -> None:
    async with running_broker() as context:
        topic_id = await make_topic(context, "orders")
        append(context.partitions.leader("orders", 0), batch(b"a"))
        topic = context.metadata.image.topics["orders"]
        added = [new_partition(topic_id, index, (0,), lambda _: True) for index in (1, 2)]
        await context.metadata.applied(await add_partitions(context.metadata.store, topic, added))
        assert [(partition.index, partition.log.log_end_offset) for partition in context.partitions] == [
            (0, 1),
            (1, 0),
            (2, 0),
        ]


async def test_a_changed_configuration_reaches_partitions_and_their_logs() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders", configs={"segment.bytes": "1048576"})
        partition = context.partitions.leader("orders", 0)
        assert partition.log.config.segment_bytes == 1 << 20
        partition.become_leader(1, Replicas(0, (0, 1), (0,)))
        topic = context.metadata.image.topics["orders"]
        changed = {"segment.bytes": "2097152", "min.insync.replicas": "2"}
        await context.metadata.applied(await write_topic_configs(context.metadata.store, topic, changed))
        assert partition.log.config.segment_bytes == 2 << 20
        with pytest.raises(KafkaError, match="NOT_ENOUGH_REPLICAS"):
            partition.append(batch(b"a"), -1, 0)


async def test_only_partitions_with_a_replica_here_are_opened_and_only_leaders_led() -> None:
    async with running_broker() as context:
        await make_topic(context, "elsewhere", replicas=(1, 2), leader=1)
        await make_topic(context, "followed", replicas=(1, 0), leader=1)
        await make_topic(context, "orphaned", leader=NO_LEADER)
        assert code_of(context, topic="elsewhere") == ErrorCode.NOT_LEADER_OR_FOLLOWER, "as Kafka has it: it exists"
        assert code_of(context, topic="nowhere") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert code_of(context, topic="followed") == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert code_of(context, topic="orphaned") == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert directories(context.disk) == ["followed-0", "orphaned-0"]


async def test_a_deleted_topic_wakes_who_waits_and_leaves_no_directory(disk: PartlyFullDisk) -> None:
    async with running_broker(disk=disk) as context:
        topic_id = await make_topic(context, "orders", 2)
        partition = context.partitions.leader("orders", 0)
        partition.become_leader(1, Replicas(0, (0, 1), (0, 1)))
        append(partition, batch(b"a"))
        waiting = asyncio.ensure_future(partition.acknowledgements.reach(0, ACKS_ALL, 10_000))
        await asyncio.sleep(0)
        await delete(context)
        with pytest.raises(KafkaError, match="NOT_LEADER_OR_FOLLOWER"):
            await asyncio.wait_for(waiting, 5)
        assert code_of(context) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_ID"):
            context.partitions.topic_name(topic_id)
        await removed()
        assert directories(disk) == []


async def test_a_topic_created_again_under_its_name_is_another_one() -> None:
    async with running_broker() as context:
        former = await make_topic(context, "orders")
        append(context.partitions.leader("orders", 0), batch(b"a", b"b"))
        await context.partitions.delete_records(context.partitions.leader("orders", 0), 2)
        await delete(context)
        assert await make_topic(context, "orders") != former
        log = context.partitions.leader("orders", 0).log
        assert (log.log_start_offset, log.log_end_offset) == (0, 0)
        assert read_offsets(context.disk, CHECKPOINT) == {}


async def test_the_longest_topic_name_can_be_deleted(disk: PartlyFullDisk) -> None:
    """A directory's name has at most 255 bytes: the topic's name gives way to the ending."""
    name = "x" * 249
    seen: list[str] = []
    disk.remove_tree = seen.append  # type: ignore[method-assign,assignment]
    async with running_broker(disk=disk) as context:
        await make_topic(context, name)
        await delete(context, name)
        await removed()
    assert all(len(path.removeprefix(f"{DATA_DIR}/")) == 255 for path in seen)


# -- a full disk ------------------------------------------------------------------------------------------------------


async def test_a_disk_full_for_one_partition_is_full_for_no_other(disk: PartlyFullDisk) -> None:
    """Appends are refused with KAFKA_STORAGE_ERROR, and go on without a gap or a loss when there is room again."""
    async with running_broker(disk=disk) as context:
        await make_topic(context, "orders", 2)
        sent = ((0, batch(b"a")), (1, batch(b"b")))
        assert [answer.error_code for answer in await produced(context, *sent)] == [0, 0]
        disk.full = f"{DATA_DIR}/orders-0"
        for _ in range(3):
            told = await produced(context, *sent)
            assert [answer.error_code for answer in told] == [ErrorCode.KAFKA_STORAGE_ERROR, 0]
            assert told[0].base_offset == -1
        disk.full = ""
        told = await produced(context, *sent)
        assert [(answer.error_code, answer.base_offset) for answer in told] == [(0, 1), (0, 4)]
        assert (end_of(context, 0), end_of(context, 1)) == (2, 5)
    assert disk.read_whole(f"{DATA_DIR}/orders-0/00000000000000000000.log").count(b"a") == 2


async def test_a_partition_without_room_to_begin_answers_so_and_begins_later(
    disk: PartlyFullDisk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "RETRY_MS", 0)
    async with running_broker(disk=disk) as context:
        disk.full = f"{DATA_DIR}/orders-1"
        topic_id = await make_topic(context, "orders", 3)
        assert context.partitions.topic_name(topic_id) == "orders"
        codes = [ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE]
        for _ in range(3):
            assert [code_of(context, index) for index in range(3)] == codes
        assert [record.getMessage() for record in caplog.records] == [
            "partition orders-1 cannot be opened; it is tried again when asked for: "
            "[Errno 28] No space left on device: 'data/orders-1/partition.metadata'"
        ]
        disk.full = ""
        (answer,) = await produced(context, (1, batch(b"a")))
        assert (answer.error_code, answer.base_offset) == (0, 0)
        assert len(context.partitions) == 3


async def test_a_partition_that_failed_is_left_alone_for_a_while(disk: PartlyFullDisk) -> None:
    async with running_broker(disk=disk) as context:
        disk.full = f"{DATA_DIR}/orders-0"
        await make_topic(context, "orders")
        disk.full = ""
        assert code_of(context) == ErrorCode.KAFKA_STORAGE_ERROR, "opening may mean to read a large log"


async def test_an_unopened_partition_is_deleted_like_the_others(disk: PartlyFullDisk) -> None:
    async with running_broker(disk=disk) as context:
        disk.full = f"{DATA_DIR}/orders-0"
        await make_topic(context, "orders", 2)
        await delete(context)
        assert code_of(context) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await removed()
        assert directories(disk) == []
        disk.full = ""
        await make_topic(context, "orders")
        assert code_of(context) == ErrorCode.NONE


# -- directories that are not as they should be -----------------------------------------------------------------------


async def test_a_damaged_directory_answers_so_and_the_others_are_served(
    disk: PartlyFullDisk, store: MemoryStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "RETRY_MS", 0)
    async with running_broker(disk=disk, store=store) as context:
        topic_id = await make_topic(context, "orders", 2)
        append(context.partitions.leader("orders", 0), batch(b"a"))
    path = f"{DATA_DIR}/orders-0"
    disk.write_whole(f"{path}/{PARTITION_METADATA}", b"nonsense")
    async with running_broker(disk=disk, store=store) as context:
        assert [code_of(context, index) for index in (0, 1)] == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE]
        assert f"{path}/{PARTITION_METADATA} does not hold" in caplog.text
        write_partition_metadata(disk, path, topic_id)
        assert code_of(context) == ErrorCode.NONE
        assert end_of(context) == 1


async def test_the_directory_of_another_topic_with_this_name_is_kept_aside(
    disk: PartlyFullDisk, store: MemoryStore
) -> None:
    async with running_broker(disk=disk, store=store) as context:
        await make_topic(context, "orders")
        append(context.partitions.leader("orders", 0), batch(b"a"))
    write_partition_metadata(disk, f"{DATA_DIR}/orders-0", bytes(range(16)))
    async with running_broker(disk=disk, store=store) as context:
        assert end_of(context) == 0
    ours, stray = directories(disk)
    assert ours == "orders-0"
    assert stray.endswith("-stray")
    assert disk.read_whole(f"{DATA_DIR}/{stray}/00000000000000000000.log") != b""


async def test_a_deletion_whose_rename_fails_gives_no_records_to_the_next_same_named_topic(
    disk: PartlyFullDisk, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_broker(disk=disk) as context:
        await make_topic(context, "orders", 2)
        append(context.partitions.leader("orders", 0), batch(b"a"))
        disk.stuck = f"{DATA_DIR}/orders-0"
        await delete(context)
        assert "directory orders-0 of a dropped partition could not be renamed and stays" in caplog.text
        assert directories(disk)[0] == "orders-0"
        disk.stuck = ""
        await make_topic(context, "orders")
        assert end_of(context) == 0
        await removed()
        stray, here = sorted(directories(disk), reverse=True)
        assert (here, stray.endswith("-stray")) == ("orders-0", True), "it is put aside: nobody sees now who deleted it"


async def test_a_missing_topic_that_was_not_deleted_is_put_aside_with_all_its_records(
    disk: PartlyFullDisk, caplog: pytest.LogCaptureFixture
) -> None:
    """Its key was written anew for another topic, as nobody of ours does; each keeps what it has."""
    async with running_broker(disk=disk) as context:
        await make_topic(context, "orders", 2)
        append(context.partitions.leader("orders", 1), batch(b"kept"))
        topic_id = bytes(reversed(range(16)))
        states = {
            partition_key("orders", index): replace(state, topic_id=topic_id).encode()
            for index, state in enumerate(context.metadata.image.topics["orders"].partitions)
        }
        put = {topic_key("orders"): TopicState(topic_id, 2).encode(), **states}
        await asyncio.wait_for(context.metadata.applied(await context.metadata.store.commit(Txn(put=put))), 5)
        assert [context.partitions.find("orders", index).log.log_end_offset for index in range(2)] == [0, 0]
        names = sorted(directories(disk))
        assert names[::2] == ["orders-0", "orders-1"]
        strays = [name for name in names if name.endswith("-stray")]
        assert len(strays) == 2
        assert b"kept" in disk.read_whole(f"{DATA_DIR}/{strays[1]}/{'0' * 20}.log")
    assert caplog.text.count("belongs to no topic known here") == 2


# -- log starts -------------------------------------------------------------------------------------------------------


async def test_a_log_start_is_written_before_it_is_true_and_survives(disk: PartlyFullDisk, store: MemoryStore) -> None:
    async with running_broker(disk=disk, store=store) as context:
        await make_topic(context, "orders", 2)
        for index in range(2):
            append(context.partitions.leader("orders", index), batch(b"a", b"b", b"c"))
        partition = context.partitions.leader("orders", 1)
        await context.partitions.delete_records(partition, 2)
        assert read_offsets(disk, CHECKPOINT) == {("orders", 1): 2}
        disk.full = CHECKPOINT
        with pytest.raises(KafkaError, match="KAFKA_STORAGE_ERROR"):
            await context.partitions.delete_records(partition, 3)
        with pytest.raises(KafkaError, match="KAFKA_STORAGE_ERROR"):
            await context.partitions.delete_records(context.partitions.leader("orders", 0), 1)
        disk.full = ""
        assert [each.log.log_start_offset for each in context.partitions] == [0, 2]
        await context.partitions.delete_records(partition, 3)
        assert read_offsets(disk, CHECKPOINT) == {("orders", 1): 3}
    async with running_broker(disk=disk, store=store) as context:
        assert [each.log.log_start_offset for each in context.partitions] == [0, 3]


async def test_a_log_start_that_could_not_be_forgotten_is_not_inherited(
    disk: PartlyFullDisk, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint cannot be written when the topic is deleted; a topic of its name waits until it can."""
    monkeypatch.setattr(module, "RETRY_MS", 0)
    async with running_broker(disk=disk, store=store) as context:
        await make_topic(context, "orders")
        append(context.partitions.leader("orders", 0), batch(b"a", b"b"))
        await context.partitions.delete_records(context.partitions.leader("orders", 0), 2)
        disk.full = CHECKPOINT
        await delete(context)
        await make_topic(context, "orders")
        assert code_of(context) == ErrorCode.KAFKA_STORAGE_ERROR
        disk.full = ""
        append(context.partitions.leader("orders", 0), batch(b"c"))
        assert read_offsets(disk, CHECKPOINT) == {}
    async with running_broker(disk=disk, store=store) as context:
        log = context.partitions.leader("orders", 0).log
        assert (log.log_start_offset, log.log_end_offset) == (0, 1)


# -- replicas ----------------------------------------------------------------------------------------------------------


async def test_the_recovery_point_of_a_truncated_log_is_written_before_the_next_append() -> None:
    disk = MemoryDisk()
    async with running_broker(disk=disk) as context:
        await make_topic(context, "orders", replicas=(0, 1))
        partition = context.partitions.leader("orders", 0)
        for value in b"abcde":
            append(partition, batch(bytes([value])))
        await partition.durability.sync_all()
        await context.partitions.written.write_recovery_points()
        partition.become_follower(1, 1)
        partition.log.truncate_to(2)
        partition.truncated()
        await asyncio.sleep(0)
        written = read_offsets(disk, f"{DATA_DIR}/{RECOVERY_POINTS}")
        assert written.get(("orders", 0), 0) <= 2, "it was 5"


async def test_a_replica_that_is_assigned_elsewhere_is_closed_and_its_directory_removed() -> None:
    disk = MemoryDisk()
    async with running_broker(disk=disk) as context:
        topic_id = await make_topic(context, "orders")
        append(context.partitions.leader("orders", 0), batch(b"a"))
        key, image = partition_key("orders", 0), context.metadata.image
        moved = replace(image.topics["orders"].partitions[0], replicas=(1,), isr=(1,), leader=1, leader_epoch=5)
        revision = await context.metadata.store.commit(Txn(put={key: moved.encode()}))
        await context.metadata.applied(revision)
        assert topic_id in image.names
        with pytest.raises(KafkaError) as raised:
            context.partitions.find("orders", 0)
        assert raised.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert not disk.exists(f"{DATA_DIR}/orders-0")
