"""`flush.messages` and `flush.ms`: nothing counts before the sync that it waits for has returned.

How a sync that fails is answered is in test_durability_failures.py.
"""

import asyncio
from collections.abc import Mapping

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.log.leftovers import UNSYNCED
from odradek.broker.log.log import Log
from odradek.broker.replica.acknowledgements import ACKS_ALL
from odradek.broker.replica.partition import Partition
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.replica.gated import (
    EACH,
    LONG_MS,
    WAIT_S,
    GatedDisk,
    acknowledged,
    append,
    code_of,
    done,
    failure,
    led,
    produce,
    syncs_ended,
    visible,
)

# -- after each sync --------------------------------------------------------------------------------------------------


async def test_without_the_option_nothing_waits_for_a_sync() -> None:
    disk = GatedDisk()
    async with led({}, disk) as partition:
        await done(produce(partition, 1), produce(partition, -1))
        assert (visible(partition), disk.syncs) == (2, 0)


@pytest.mark.parametrize("acks", [1, -1])
async def test_no_acknowledgement_comes_before_the_sync_has_returned(acks: int) -> None:
    disk = GatedDisk()
    async with led(disk=disk) as partition:
        disk.is_gated = True
        task = produce(partition, acks)
        sync = await disk.next_sync()
        assert sync.name == f"{0:020d}.log"
        assert not task.done()
        assert (partition.high_watermark.value, visible(partition)) == (0, 0)
        sync.let_go()
        await done(task)
        assert (partition.log.durable_offset, partition.high_watermark.value, visible(partition)) == (1, 1, 1)


async def test_requests_that_wait_together_share_a_sync() -> None:
    """Those that come while one is under way wait for the next, which is one for all of them."""
    disk = GatedDisk()
    async with led(disk=disk) as partition:
        disk.is_gated = True
        first = produce(partition, -1)
        sync = await disk.next_sync()
        others = [produce(partition, 1 if number % 2 else -1) for number in range(40)]
        sync.let_go()
        sync = await disk.next_sync()
        await done(first)
        assert not any(task.done() for task in others)
        assert partition.high_watermark.value == partition.log.durable_offset == 1
        sync.let_go()
        await done(*others)
        assert disk.syncs == 2
        assert partition.high_watermark.value == partition.log.durable_offset == 41


async def test_requests_of_one_turn_of_the_loop_share_a_sync() -> None:
    disk = GatedDisk()
    async with led(disk=disk) as partition:
        await done(*(produce(partition, -1) for _ in range(64)))
        assert disk.syncs == 1


async def test_whoever_watches_is_woken_by_the_sync() -> None:
    disk = GatedDisk()
    woken: list[int] = []

    def wake(watched: Partition) -> None:
        woken.append(watched.high_watermark.value)

    async with led(disk=disk) as partition:
        partition.reader.watchers[wake] = None
        await done(produce(partition, -1))
        assert woken == [1]


async def test_a_deadline_passes_while_the_device_is_slow() -> None:
    disk = GatedDisk()
    async with led(disk=disk) as partition:
        disk.is_gated = True
        last_offset = append(partition)
        assert await code_of(acknowledged(partition, last_offset, 1, 1.0)) is ErrorCode.REQUEST_TIMED_OUT
        disk.open_gate()
        await asyncio.wait_for(acknowledged(partition, last_offset, ACKS_ALL, LONG_MS), WAIT_S)


async def test_a_batch_that_is_sent_again_meanwhile_waits_like_the_first() -> None:
    disk = GatedDisk()
    async with led(disk=disk) as partition:
        disk.is_gated = True
        first = append(partition, sequence=0)
        sync = await disk.next_sync()
        assert append(partition, sequence=0) == first
        again = acknowledged(partition, first, 1, LONG_MS)
        await asyncio.sleep(0)
        assert not again.done()
        sync.let_go()
        await done(again)
        assert disk.syncs == 1


async def test_a_flush_by_somebody_else_counts_too() -> None:
    """It ends before the task that would have synced has begun."""
    disk = GatedDisk()
    async with led(disk=disk) as partition:
        last_offset = append(partition)
        partition.log.flush()
        await asyncio.wait_for(acknowledged(partition, last_offset, ACKS_ALL, 200.0), WAIT_S)


# -- after so many records, after so much time ------------------------------------------------------------------------


async def test_after_so_many_records() -> None:
    disk = GatedDisk()
    async with led({"flush.messages": "3"}, disk) as partition:
        disk.is_gated = True
        await done(produce(partition, 1), produce(partition, -1))
        assert (disk.syncs, partition.high_watermark.value) == (0, 2)
        third = produce(partition, -1)
        sync = await disk.next_sync()
        assert (third.done(), partition.high_watermark.value) == (False, 2)
        fourth = produce(partition, -1)
        sync.let_go()
        await done(third, fourth)
        assert (disk.syncs, partition.log.durable_offset, partition.high_watermark.value) == (1, 3, 4)
        await done(produce(partition, -1))
        assert disk.syncs == 1, "two since the last one"


@pytest.mark.virtual_time(blocking_ms=5.0)
async def test_after_so_much_time() -> None:
    """Counted from the first append that is not on the device; those that come later do not put it off."""
    async with led({"flush.ms": "50"}) as partition:
        log = partition.log
        assert log.durable_offset == 0
        await done(produce(partition, -1))
        await asyncio.sleep(0.040)
        await done(produce(partition, 1))
        assert (partition.high_watermark.value, log.durable_offset) == (2, 0)
        await asyncio.sleep(0.016)
        assert log.durable_offset == 2
        await asyncio.sleep(1.0)
        await done(produce(partition, -1))
        await asyncio.sleep(0.049)
        assert log.durable_offset == 2
        await asyncio.sleep(0.007)
        assert log.durable_offset == 3


@pytest.mark.virtual_time(blocking_ms=5.0)
async def test_what_comes_during_a_sync_is_on_the_device_in_time_too() -> None:
    """With both options: the sync that three records called for does not take the fourth, which comes meanwhile."""
    async with led({"flush.messages": "3", "flush.ms": "50"}) as partition:
        append(partition, 3)
        await asyncio.sleep(0.002)
        append(partition)
        await asyncio.sleep(0.060)
        assert partition.log.durable_offset == 4


# -- the option at run time -------------------------------------------------------------------------------------------


def reconfigure(partition: Partition, options: Mapping[str, str]) -> None:
    partition.configure(BrokerConfig({}).topic(dict(options)))


async def test_switched_on_what_was_acknowledged_stays_so_and_what_comes_waits() -> None:
    disk = GatedDisk()
    async with led({}, disk) as partition:
        await done(produce(partition, -1))
        reconfigure(partition, EACH)
        assert (partition.high_watermark.value, visible(partition)) == (1, 1)
        disk.is_gated = True
        task = produce(partition, -1)
        await disk.next_sync()
        assert (task.done(), partition.high_watermark.value) == (False, 1)
        disk.open_gate()
        await done(task)
        assert partition.log.durable_offset == 2


async def test_switched_off_nothing_waits_any_more() -> None:
    disk = GatedDisk()
    async with led(disk=disk) as partition:
        disk.is_gated = True
        waiting = produce(partition, -1)
        await disk.next_sync()
        reconfigure(partition, {})
        await done(waiting, produce(partition, -1), produce(partition, 1))
        assert partition.high_watermark.value == 3


@pytest.mark.parametrize(
    "options", [{**EACH, "retention.ms": "1000"}, EACH, {"flush.messages": "2", "flush.ms": "5000"}]
)
async def test_another_option_s_change_acknowledges_nothing(options: Mapping[str, str]) -> None:
    disk = GatedDisk()
    async with led(disk=disk) as partition:
        disk.is_gated = True
        tasks = [produce(partition, acks) for acks in (1, -1)]
        await disk.next_sync()
        reconfigure(partition, options)
        await asyncio.sleep(0)
        assert not any(task.done() for task in tasks)
        assert (partition.high_watermark.value, visible(partition)) == (0, 0)
        disk.open_gate()
        await done(*tasks)


# -- rolling, restarting, stopping ------------------------------------------------------------------------------------


async def test_a_roll_syncs_what_is_closed_and_moves_the_recovery_point() -> None:
    disk = GatedDisk()
    async with led({}, disk, segment_bytes=100) as partition:
        append(partition)
        assert (partition.log.recovery_point, disk.syncs) == (0, 0)
        disk.is_gated = True
        append(partition)
        assert (await disk.next_sync()).name == f"{0:020d}.log"
        assert partition.high_watermark.value == 2, "nobody waits for it"
        append(partition)
        disk.open_gate()
        await syncs_ended()
        assert partition.log.recovery_point == partition.log.durable_offset == 2


async def test_of_a_partition_that_goes_nothing_more_is_synced(caplog: pytest.LogCaptureFixture) -> None:
    """It rolled, and goes before the sync of what was closed begins."""
    disk = GatedDisk()
    async with led({}, disk, segment_bytes=100) as partition:
        told: list[OSError] = []
        partition.log.on_disk_error = told.append
        append(partition)
        append(partition)
        partition.close()
        partition.log.drop()
        await done(*partition.host.tasks.running_on(asyncio.get_running_loop()))
        assert (disk.syncs, told, caplog.text) == (0, [], "")


async def test_a_sync_that_fails_when_its_partition_is_gone_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """Its directory has another name by then."""
    disk = GatedDisk()
    async with led({}, disk, segment_bytes=100) as partition:
        told: list[OSError] = []
        partition.log.on_disk_error = told.append
        append(partition)
        disk.is_gated = True
        append(partition)
        sync = await disk.next_sync()
        partition.close()
        partition.log.drop()
        sync.let_go(failure())
        await done(*partition.host.tasks.running_on(asyncio.get_running_loop()))
        assert (told, partition.log.is_distrusted, caplog.text) == ([], False, "")


async def test_a_sync_that_fails_when_its_directory_has_failed_is_told_to_the_next_start() -> None:
    """The log is closed by then, and the next start would trust what the page cache has."""
    disk = GatedDisk()
    async with led({}, disk, segment_bytes=100) as partition:
        append(partition)
        disk.is_gated = True
        append(partition)
        sync = await disk.next_sync()
        partition.close()
        partition.log.close_without_flush()
        sync.let_go(failure())
        await done(*partition.host.tasks.running_on(asyncio.get_running_loop()))
        assert disk.exists(f"{partition.log.directory}/{UNSYNCED}")


async def test_after_a_kill_what_is_only_in_the_page_cache_does_not_count_yet() -> None:
    """The producer asks again, and the answer is a promise: so a sync must come before it."""
    disk = GatedDisk()
    async with led(disk=disk) as partition:
        disk.is_gated = True
        last_offset = append(partition, sequence=0)
        await disk.next_sync()
    disk.syncs = 0
    async with led(disk=disk) as partition:
        assert partition.log.log_end_offset == 1
        assert append(partition, sequence=0) == last_offset
        await asyncio.wait_for(acknowledged(partition, last_offset, ACKS_ALL, LONG_MS), WAIT_S)
        assert disk.syncs == 1


async def test_closing_tells_those_who_wait_and_those_who_ask_later() -> None:
    disk = GatedDisk()
    async with led(disk=disk) as partition:
        disk.is_gated = True
        task = produce(partition, -1)
        await disk.next_sync()
        partition.close()
        partition.log.close_without_flush()
        assert await code_of(task) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        disk.open_gate()
        await syncs_ended()
        for acks in (1, ACKS_ALL):
            assert await code_of(acknowledged(partition, 5, acks, 100.0)) is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_whoever_ends_the_broker_waits_for_the_syncs_under_way_and_those_that_follow() -> None:
    disk = GatedDisk()
    async with led(disk=disk) as partition:
        await asyncio.wait_for(partition.durability.syncs_ended(), 1)
        disk.is_gated = True
        first = produce(partition, -1)
        landed = [asyncio.ensure_future(partition.durability.syncs_ended()) for _ in range(2)]
        sync = await disk.next_sync()
        second = produce(partition, -1)
        sync.let_go()
        sync = await disk.next_sync()
        assert not any(task.done() for task in landed)
        sync.let_go()
        await done(first, second, *landed)
        assert partition.log.durable_offset == 2


async def test_what_is_settled_has_nothing_to_sync_when_it_is_closed() -> None:
    disk = GatedDisk()
    async with led({}, disk) as partition:
        append(partition)
        disk.is_gated = True
        settled = asyncio.ensure_future(partition.durability.settle())
        sync = await disk.next_sync()
        assert not settled.done()
        sync.let_go()
        await done(settled)
        assert partition.log.recovery_point == 1
        before = disk.syncs
        partition.close()
        partition.log.close()
        assert disk.syncs == before


async def test_what_cannot_be_settled_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    disk = GatedDisk()
    async with led({}, disk) as partition:
        append(partition)
        disk.errors.append(failure())
        await partition.durability.settle()
        assert "orders-0: could not be synced" in caplog.text
        caplog.clear()
        await partition.durability.settle()
        assert "orders-0: could not be synced" in caplog.text, "nor is it asked of the device again"
        assert disk.syncs == 1


async def test_a_mistake_after_a_sync_keeps_nobody_from_the_next() -> None:
    async with led(disk=GatedDisk()) as partition:
        told: asyncio.Queue[str] = asyncio.Queue()
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.put_nowait(str(context["exception"])))

        def mistaken(*_: object) -> None:
            raise RuntimeError("a mistake of ours")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Log, "end_flush", mistaken)
            task = produce(partition, -1)
            assert await asyncio.wait_for(told.get(), 10) == "a mistake of ours"
        append(partition)
        await done(task)
        assert partition.log.durable_offset == 2


# -- a log that is cut ------------------------------------------------------------------------------------------------


async def test_what_was_settled_and_is_cut_off_counts_no_more() -> None:
    """What comes in its place has to be synced like anything else, however far the count had come."""
    disk = GatedDisk()
    async with led(disk=disk) as partition:
        for _ in range(3):
            await done(produce(partition, 1))
        assert partition.durability.end_offset == 3
        partition.log.truncate_to(1)
        partition.durability.truncated(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        assert partition.durability.end_offset == 1
        disk.is_gated = True
        append(partition)
        sync = await disk.next_sync()
        assert partition.durability.end_offset == 1
        sync.let_go()
        await asyncio.wait_for(partition.durability.durable.reach(2), WAIT_S)
        assert partition.durability.end_offset == 2


async def test_whoever_waits_for_what_is_cut_off_is_told() -> None:
    disk = GatedDisk()
    async with led(disk=disk) as partition:
        disk.is_gated = True
        waiting = produce(partition, 1)
        sync = await disk.next_sync()
        partition.log.truncate_to(0)
        partition.durability.truncated(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        assert await code_of(waiting) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        sync.let_go()
