"""A shard is loaded from the log: everything, in order, with its transactions; or not at all, with a sentence why."""

import asyncio
import logging

import pytest

from odradek.broker.coordinator.loading import load
from odradek.broker.coordinator.shard import Shard, ShardState
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.replica.partition import Partition
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.coordinator.counters import Counters
from tests.broker.coordinator.test_shard import add, read, shard_of, turns
from tests.broker.replica.test_partition import PAIR, code_of, follower_at, partition_with

ABORT, COMMIT = b"\0\0\0\0", b"\0\0\0\1"


def write(partition: Partition, *records: tuple[str, str | None], producer_id: int = -1) -> None:
    """A batch, of a transaction where a producer is given; as it comes from a leader before this one."""
    base_offset = partition.log.log_end_offset
    stored = [
        Record(base_offset + index, 1_000, key.encode(), None if value is None else value.encode())
        for index, (key, value) in enumerate(records)
    ]
    is_transactional = producer_id >= 0
    _replicate(
        partition,
        build_batch(
            stored,
            base_offset=base_offset,
            leader_epoch=0,
            producer_id=producer_id,
            producer_epoch=0 if is_transactional else -1,
            base_sequence=0 if is_transactional else -1,
            is_transactional=is_transactional,
        ),
    )


def mark(partition: Partition, producer_id: int, key: bytes) -> None:
    """The marker of its transaction."""
    offset = partition.log.log_end_offset
    record = Record(offset, 1_000, key, b"\0\0\0\0\0\0")
    batch = build_batch(
        [record],
        base_offset=offset,
        leader_epoch=0,
        producer_id=producer_id,
        producer_epoch=0,
        is_transactional=True,
        is_control=True,
    )
    _replicate(partition, batch)


def _replicate(partition: Partition, batch: bytes) -> None:
    partition.log.append_replicated(batch, 0, 1_000)
    partition.acknowledgements.update()


def code_for_requests(shard: Shard[Counters]) -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        shard.require_active()
    return raised.value.code


async def test_a_shard_knows_what_the_log_says() -> None:
    disk = MemoryDisk()
    partition = partition_with(disk=disk)
    write(partition, ("a", "1"), ("b", "2"))
    write(partition, ("a", "5"))
    shard = shard_of(partition, is_loaded=False)
    await load(shard, disk)
    assert shard.state is ShardState.ACTIVE
    assert shard.machine.values == {"a": 5, "b": 2}
    assert shard.machine.loaded_at is not None
    assert await add(shard, "a", 1) == 6


async def test_records_of_a_transaction_count_with_its_marker() -> None:
    disk = MemoryDisk()
    partition = partition_with(disk=disk)
    write(partition, ("a", "1"), producer_id=7)
    write(partition, ("b", "2"), producer_id=8)
    write(partition, ("c", "3"), producer_id=9)
    mark(partition, 7, COMMIT)
    mark(partition, 8, ABORT)
    shard = shard_of(partition, is_loaded=False)
    await load(shard, disk)
    assert shard.machine.values == {"a": 1}
    assert shard.machine.pending == {9: {"c": 3}}


async def test_what_is_above_the_high_watermark_is_told_when_it_is_committed() -> None:
    disk = MemoryDisk()
    partition = partition_with(PAIR, disk=disk)
    write(partition, ("a", "1"))
    follower_at(partition, 1, 1)
    write(partition, ("b", "2"))
    shard = shard_of(partition, is_loaded=False)
    await load(shard, disk)
    assert await asyncio.wait_for(read(shard, "a"), 5) == 1
    of_b = asyncio.ensure_future(read(shard, "b"))
    await turns()
    assert not of_b.done(), "a leader that comes next may not have it"
    follower_at(partition, 1, 2)
    assert await asyncio.wait_for(of_b, 5) == 2


async def test_a_marker_above_the_high_watermark_is_waited_for_too() -> None:
    disk = MemoryDisk()
    partition = partition_with(PAIR, disk=disk)
    write(partition, ("a", "1"), ("b", "2"), producer_id=7)
    follower_at(partition, 1, 2)
    mark(partition, 7, COMMIT)
    shard = shard_of(partition, is_loaded=False)
    await load(shard, disk)
    asked = [asyncio.ensure_future(read(shard, name)) for name in "ab"]
    await turns()
    assert not any(each.done() for each in asked), "a leader that comes next may have them pending"
    follower_at(partition, 1, 3)
    assert await asyncio.wait_for(asyncio.gather(*asked), 5) == [1, 2]


async def test_types_that_are_not_known_are_kept_and_named_once(caplog: pytest.LogCaptureFixture) -> None:
    disk = MemoryDisk()
    partition = partition_with(disk=disk)
    write(partition, ("?x", "1"), ("a", "2"), ("?x", "3"))
    shard = shard_of(partition, is_loaded=False)
    with caplog.at_level(logging.WARNING):
        await load(shard, disk)
    assert shard.machine.values == {"a": 2}
    [message] = [record.message for record in caplog.records]
    assert message == f"orders-0: kept, and not understood by this release: type {int.from_bytes(b'?x')} (2 records)"


async def test_what_cannot_be_read_is_refused_with_a_sentence_and_never_skipped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = MemoryDisk()
    partition = partition_with(disk=disk)
    write(partition, ("a", "1"), ("a", "damaged"), ("a", "3"))
    shard = shard_of(partition, is_loaded=False)
    with caplog.at_level(logging.ERROR):
        await load(shard, disk)
    assert shard.state is ShardState.FAILED
    assert "orders-0 cannot be loaded" in caplog.text
    assert "Have another replica lead it, or restore its directory from a backup" in caplog.text
    assert await code_of(read(shard, "a")) is ErrorCode.COORDINATOR_NOT_AVAILABLE


async def test_a_load_ends_with_the_leadership_that_it_was_for() -> None:
    disk = MemoryDisk()
    partition = partition_with(disk=disk)
    write(partition, ("a", "1"))
    shard = shard_of(partition, is_loaded=False)
    partition.resign()
    await load(shard, disk)
    assert code_for_requests(shard) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    shard.end()
    await load(shard, disk)
    assert code_for_requests(shard) is ErrorCode.NOT_COORDINATOR
