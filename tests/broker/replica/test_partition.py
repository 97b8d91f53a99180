"""`Partition`: what acks promise, by injected in-sync sets and follower positions; roles."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.config import LogConfig
from odradek.broker.log.log import Log
from odradek.broker.replica.acknowledgements import ACKS_ALL
from odradek.broker.replica.partition import Partition
from odradek.broker.replica.partition_listener import Alone, PartitionListener
from odradek.broker.replica.replicas import Replicas
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks
from tests.broker.alone import hosted
from tests.broker.support import append, batch

TOPIC_ID = bytes(range(16))
LAG_MS_MAX = 30_000.0
LONG_MS = 10_000.0
ALONE = (0,)
PAIR = (0, 1)
TRIO = (0, 1, 2)
ALONE_IN_THE_WORLD = Alone()


def partition_with(
    assigned: tuple[int, ...] = ALONE,
    isr: tuple[int, ...] | None = None,
    min_insync: int = 1,
    disk: MemoryDisk | None = None,
    listener: PartitionListener[Partition] = ALONE_IN_THE_WORLD,
) -> Partition:
    """A partition that broker 0 leads in epoch 0. Its followers have not fetched yet."""
    log = Log.open(disk or MemoryDisk(), "data/orders-0", LogConfig(), 0)
    config = BrokerConfig({"min.insync.replicas": str(min_insync)}).topic({})
    environment = Environment()
    tasks = Tasks(environment.loop)
    host = hosted(environment, tasks, replica_lag_ms_max=LAG_MS_MAX)
    partition = Partition("orders", TOPIC_ID, 0, log, config, host, listener)
    partition.become_leader(0, Replicas(0, assigned, assigned if isr is None else isr))
    return partition


def follower_at(partition: Partition, broker_id: int, offset: int) -> None:
    """The follower asks for `offset`, so it has everything before it."""
    now_ms = partition.host.environment.monotonic_ms()
    partition.replicas.followers[broker_id].fetched(offset, now_ms, partition.log.log_end_offset)
    partition.acknowledgements.update()


async def parked(partition: Partition, last_offset: int, timeout_ms: float = LONG_MS) -> asyncio.Task[None]:
    """A Produce with acks=all that waits for `last_offset`."""
    task = asyncio.ensure_future(partition.acknowledgements.reach(last_offset, ACKS_ALL, timeout_ms))
    await asyncio.sleep(0)
    assert not task.done()
    return task


async def code_of(waiting: Awaitable[Any]) -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        await asyncio.wait_for(waiting, 5)
    assert raised.value.message
    return raised.value.code


# -- before the append ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("assigned", "isr", "min_insync", "is_enough"),
    [
        (ALONE, ALONE, 1, True),
        (ALONE, ALONE, 2, True),  # the effective minimum is at most the replication factor
        (PAIR, PAIR, 3, True),
        (PAIR, ALONE, 2, False),
        (TRIO, PAIR, 2, True),
        (TRIO, PAIR, 3, False),
        (TRIO, ALONE, 1, True),
    ],
)
async def test_acks_all_is_refused_before_the_append_below_the_effective_minimum(
    assigned: tuple[int, ...], isr: tuple[int, ...], min_insync: int, is_enough: bool
) -> None:
    partition = partition_with(assigned, isr, min_insync)
    for acks in (0, 1):
        partition.append(batch(b"a"), acks, 0)
    if is_enough:
        partition.append(batch(b"a"), ACKS_ALL, 0)
    else:
        with pytest.raises(KafkaError, match=r"^NOT_ENOUGH_REPLICAS\b.*min\.insync\.replicas"):
            partition.append(batch(b"a"), ACKS_ALL, 0)
    assert partition.log.log_end_offset == 2 + is_enough


async def test_a_pending_member_does_not_count_before_the_append() -> None:
    """The store may refuse the addition: the smaller set decides whether to append at all."""
    partition = partition_with(TRIO, ALONE, 2)
    partition.replicas.pending_isr = (1,)
    with pytest.raises(KafkaError, match="NOT_ENOUGH_REPLICAS"):
        partition.append(batch(b"a"), ACKS_ALL, 0)


# -- the high watermark -----------------------------------------------------------------------------------------------


async def test_alone_the_high_watermark_is_the_log_end_at_once() -> None:
    partition = partition_with(min_insync=2)
    append(partition, batch(b"a", b"b"))
    assert partition.high_watermark.value == 2
    await asyncio.wait_for(partition.acknowledgements.reach(1, ACKS_ALL, 0), 5)


async def test_the_high_watermark_is_the_slowest_of_the_in_sync_replicas() -> None:
    partition = partition_with(TRIO, min_insync=2)
    append(partition, batch(b"a", b"b", b"c"))
    seen: list[int] = []
    for broker_id, offset in ((1, 2), (2, 1), (2, 3), (1, 3)):
        follower_at(partition, broker_id, offset)
        seen.append(partition.high_watermark.value)
    assert seen == [0, 1, 2, 3]


async def test_a_pending_member_holds_the_high_watermark_back() -> None:
    """It may be in the set already: what consumers see must be on it, too (KIP-497)."""
    partition = partition_with(TRIO, PAIR, 2)
    partition.replicas.pending_isr = (2,)
    append(partition, batch(b"a"))
    follower_at(partition, 1, 1)
    assert partition.high_watermark.value == 0
    follower_at(partition, 2, 1)
    assert partition.high_watermark.value == 1


async def test_below_the_effective_minimum_the_high_watermark_stays() -> None:
    partition = partition_with(PAIR, ALONE, 2)
    append(partition, batch(b"a"))
    assert (partition.log.log_end_offset, partition.high_watermark.value) == (1, 0)
    assert partition.reader.fetch(0, 1 << 20, at_least_one_batch=True).records == b""
    follower_at(partition, 1, 1)
    assert partition.high_watermark.value == 0, "caught up, and not in the stored set yet"
    partition.replicas.isr = PAIR
    partition.acknowledgements.update()
    assert partition.high_watermark.value == 1
    assert partition.reader.fetch(0, 1 << 20, at_least_one_batch=True).records != b""


async def test_who_does_not_lead_moves_no_high_watermark() -> None:
    partition = partition_with(PAIR, PAIR)
    append(partition, batch(b"a"))
    partition.resign()
    partition.acknowledgements.update()
    assert partition.high_watermark.value == 0


# -- after the append -------------------------------------------------------------------------------------------------


async def test_the_answer_comes_with_the_last_replica() -> None:
    partition = partition_with(TRIO)
    append(partition, batch(b"a"))
    task = await parked(partition, 0)
    follower_at(partition, 1, 1)
    await asyncio.sleep(0)
    assert not task.done()
    follower_at(partition, 2, 1)
    await asyncio.wait_for(task, 5)


async def test_too_few_replicas_after_the_append_and_the_record_stays() -> None:
    partition = partition_with(PAIR, PAIR, 2)
    append(partition, batch(b"a"))
    task = await parked(partition, 0)
    follower_at(partition, 1, 1)
    partition.replicas.isr = ALONE  # it leaves between its fetch and the answer
    assert await code_of(task) == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert partition.log.log_end_offset == 1
    assert bytes(partition.reader.fetch(0, 1 << 20, at_least_one_batch=True).records)[8:] != b""


async def test_after_the_append_a_pending_member_counts() -> None:
    """The high watermark waited for it, so the record is on it, whether or not the store takes it in."""
    partition = partition_with(TRIO, PAIR, 2)
    append(partition, batch(b"a"))
    follower_at(partition, 1, 1)
    partition.replicas.isr, partition.replicas.pending_isr = ALONE, (1,)
    await asyncio.wait_for(partition.acknowledgements.reach(0, ACKS_ALL, LONG_MS), 5)


async def test_the_deadline_answers_request_timed_out_and_the_record_stays() -> None:
    partition = partition_with(PAIR)
    append(partition, batch(b"a"))
    task = await parked(partition, 0, timeout_ms=20)
    assert await code_of(task) == ErrorCode.REQUEST_TIMED_OUT
    assert (partition.log.log_end_offset, partition.high_watermark.waiting) == (1, 0)


# -- roles ------------------------------------------------------------------------------------------------------------


async def test_lost_leadership_wakes_all_who_wait_and_refuses_what_follows() -> None:
    partition = partition_with(PAIR)
    append(partition, batch(b"a", b"b"))
    woken: list[Partition] = []
    partition.reader.watchers[woken.append] = None
    tasks = [await parked(partition, offset) for offset in (0, 1, 1)]
    partition.resign()
    assert [await code_of(task) for task in tasks] == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 3
    assert woken == [partition]
    assert await code_of(partition.acknowledgements.reach(0, ACKS_ALL, LONG_MS)) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    for use in (partition.role.require_leader, lambda: append(partition, batch(b"c"))):
        with pytest.raises(KafkaError, match="NOT_LEADER_OR_FOLLOWER"):
            use()
    assert partition.log.log_end_offset == 2


async def test_whoever_waits_may_be_told_another_reason() -> None:
    partition = partition_with(PAIR)
    append(partition, batch(b"a"))
    task = await parked(partition, 0)
    partition.resign(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is gone"))
    assert await code_of(task) == ErrorCode.KAFKA_STORAGE_ERROR


async def test_leadership_regained_goes_on_from_the_high_watermark() -> None:
    partition = partition_with(PAIR)
    append(partition, batch(b"a", b"b"))
    follower_at(partition, 1, 1)
    partition.resign()
    partition.become_leader(2, Replicas(0, PAIR, PAIR))
    assert partition.high_watermark.value == 1, "consumers have seen it; the rest is known when the follower asks"
    task = await parked(partition, 1)
    follower_at(partition, 1, 2)
    await asyncio.wait_for(task, 5)
    header_epoch = bytes(partition.log.fetch(0, 1 << 20, 2, True).records)[12:16]
    assert header_epoch == bytes(4), "what was written in epoch 0 keeps it"


async def test_the_clients_leader_epoch_is_compared() -> None:
    partition = partition_with()
    partition.become_leader(4, Replicas(0, ALONE, ALONE))
    partition.role.require_leader(4)
    partition.role.require_leader(-1)
    with pytest.raises(KafkaError, match="FENCED_LEADER_EPOCH"):
        partition.role.require_leader(3)
    with pytest.raises(KafkaError, match="UNKNOWN_LEADER_EPOCH"):
        partition.role.require_leader(5)


async def test_what_is_appended_carries_the_epoch_of_its_leader() -> None:
    partition = partition_with()
    append(partition, batch(b"a"))
    partition.become_leader(7, Replicas(0, ALONE, ALONE))
    append(partition, batch(b"b"))
    stored = [bytes(partition.reader.fetch(offset, 0, at_least_one_batch=True).records) for offset in (0, 1)]
    assert [int.from_bytes(data[12:16], "big") for data in stored] == [0, 7]
    assert [tuple(entry) for entry in partition.log.epochs.entries] == [(0, 0), (7, 1)]


# -- reading ----------------------------------------------------------------------------------------------------------


async def test_reading_stops_at_the_high_watermark_and_is_refused_outside_the_log() -> None:
    partition = partition_with(PAIR)
    append(partition, batch(b"a"))
    append(partition, batch(b"b"))
    follower_at(partition, 1, 1)
    assert bytes(partition.reader.fetch(0, 1 << 20, at_least_one_batch=True).records)[:8] == bytes(8)
    assert len(partition.reader.fetch(0, 1 << 20, at_least_one_batch=True).records) == len(batch(b"a"))
    for offset in (1, 2):
        assert partition.reader.fetch(offset, 1 << 20, at_least_one_batch=True).records == b"", (
            "in the log, and not replicated yet"
        )
    partition.log.advance_log_start(1)
    for offset in (-1, 0, 3):
        with pytest.raises(KafkaError, match="OFFSET_OUT_OF_RANGE"):
            partition.reader.fetch(offset, 1 << 20, at_least_one_batch=True)


# -- a disk that runs full --------------------------------------------------------------------------------------------


async def test_a_full_disk_refuses_appends_and_nothing_is_lost_when_there_is_room_again() -> None:
    disk = MemoryDisk()
    partition = partition_with(disk=disk)
    append(partition, batch(b"a"))
    disk.size_bytes_max = disk.total_bytes("data") - disk.free_bytes("data") + 100
    for value in (b"b" * 200, b"c" * 200):
        with pytest.raises(KafkaError, match="KAFKA_STORAGE_ERROR"):
            append(partition, batch(value))
    assert (partition.log.log_end_offset, partition.high_watermark.value, partition.is_leader) == (1, 1, True)
    assert partition.reader.appended_bytes == len(batch(b"a"))
    disk.size_bytes_max = None
    assert append(partition, batch(b"d" * 200)) == 1
    values = b"".join(bytes(partition.reader.fetch(offset, 0, at_least_one_batch=True).records) for offset in (0, 1))
    assert values.count(b"d" * 200) == 1
    assert b"bbb" not in values
    assert b"ccc" not in values
