"""A sync that fails: who waits is told, what was synced stays readable, and no other sync proves anything."""

import asyncio

import pytest

from odradek.broker.replica.acknowledgements import ACKS_ALL
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.replica.gated import (
    EACH,
    LONG_MS,
    STORAGE,
    WAIT_S,
    GatedDisk,
    acknowledged,
    append,
    code_of,
    done,
    failure,
    led,
    produce,
    visible,
)


async def test_batches_that_could_not_be_synced_are_refused_to_all_who_wait() -> None:
    disk = GatedDisk()
    async with led(disk=disk) as partition:
        await done(produce(partition, -1))
        disk.is_gated = True
        first = produce(partition, -1)
        sync = await disk.next_sync()
        others = [produce(partition, acks) for acks in (1, -1)]
        sync.let_go(failure())
        for task in (first, *others):
            assert await code_of(task) is ErrorCode.KAFKA_STORAGE_ERROR
        with pytest.raises(KafkaError, match="KAFKA_STORAGE_ERROR"):
            append(partition)
        assert (partition.high_watermark.value, visible(partition)) == (1, 1), "what was synced can be read"
        assert partition.log.durable_offset == 1


async def test_whoever_asks_after_the_failure_is_told_at_once() -> None:
    """A Produce of several partitions waits for one after another, and comes to this one too late."""
    disk = GatedDisk()
    async with led(disk=disk) as partition:
        disk.errors = [failure()]
        last_offset = append(partition)
        assert await code_of(acknowledged(partition, last_offset, 1, LONG_MS)) is STORAGE
        for acks in (1, ACKS_ALL):
            assert await code_of(acknowledged(partition, last_offset, acks, 100.0)) is STORAGE


async def test_a_name_that_could_not_be_synced_is_tried_again_with_the_next_append() -> None:
    disk = GatedDisk()
    async with led(disk=disk) as partition:
        disk.dir_errors = [failure()]
        assert await code_of(produce(partition, -1)) is STORAGE
        assert (partition.high_watermark.value, partition.log.durable_offset) == (0, 0)
        await done(produce(partition, -1))
        assert (partition.high_watermark.value, partition.log.durable_offset) == (2, 2)


async def test_a_batch_that_is_sent_again_after_a_failure_is_synced_then() -> None:
    """An idempotent producer's second attempt is a duplicate, and the last chance to hear that it is safe."""
    disk = GatedDisk()
    async with led(disk=disk) as partition:
        disk.dir_errors = [failure()]
        last_offset = append(partition, sequence=0)
        assert await code_of(acknowledged(partition, last_offset, ACKS_ALL, LONG_MS)) is STORAGE
        assert append(partition, sequence=0) == last_offset
        await asyncio.wait_for(acknowledged(partition, last_offset, ACKS_ALL, 500.0), WAIT_S)
        assert partition.log.durable_offset == 1


@pytest.mark.parametrize("which", [0, 1])
async def test_of_two_syncs_of_a_file_the_one_that_fails_counts(which: int) -> None:
    """A roll syncs the closed segment while the acknowledgement's own sync is under way. The kernel reports an error to
    one of them, and the other learns nothing of it."""
    disk = GatedDisk()
    async with led(EACH, disk, segment_bytes=100) as partition:
        disk.is_gated = True
        first = produce(partition, -1)
        syncs = [await disk.next_sync()]
        second = produce(partition, -1)
        assert partition.log.base_offsets == [0, 1]
        syncs.append(await disk.next_sync())
        assert [sync.name for sync in syncs] == [f"{0:020d}.log"] * 2
        syncs.pop(which).let_go(failure())
        await asyncio.wait_for(disk.distrusted.wait(), WAIT_S)
        syncs[0].let_go()
        disk.open_gate()
        assert [await code_of(first), await code_of(second)] == [STORAGE, STORAGE]
        assert (partition.high_watermark.value, partition.log.durable_offset, partition.log.recovery_point) == (0, 0, 0)
