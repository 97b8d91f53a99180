"""Log starts that followers are told: at once those of DeleteRecords, which wait for it, and in their time all others.

Broker 0 leads; broker 1 asks, in one session.
"""

import asyncio

import pytest

from odradek.broker.handling.context import Context
from odradek.protocol.messages.fetch import FetchPartition
from tests.broker.api.fetch.test_follower import LONG_MS, leader, led, led_throttled, wanted
from tests.broker.support import append, batch


async def deleted(context: Context, index: int, offset: int) -> "asyncio.Task[int]":
    """A DeleteRecords of a partition, which the leader has on its disk."""
    partition = leader(context, index)
    partition.acknowledgements.deletions.ask(offset)
    await context.partitions.delete_records(partition, offset)
    deadline_ms = context.environment.monotonic_ms() + LONG_MS
    return asyncio.ensure_future(partition.acknowledgements.deletions.held_by_all(offset, deadline_ms))


def at_start(index: int, offset: int, log_start_offset: int) -> FetchPartition:
    said = wanted(index, offset)
    said.log_start_offset = log_start_offset
    return said


@pytest.mark.parametrize("is_parked", [True, False])
async def test_a_log_start_of_delete_records_is_told_at_once_and_once(is_parked: bool) -> None:
    """To a fetch that waits, or to the next one, which names no partition. Then the follower says that it has it on its
    disk, and the DeleteRecords is answered; it hears no more of it."""
    async with led(3) as (context, replica):
        append(leader(context, 1), batch(b"a", b"b"))
        await replica.fetch(wanted(0), at_start(1, 2, 0), wanted(2))
        if is_parked:
            waiting = asyncio.create_task(replica.fetch(max_wait_ms=LONG_MS))
            await asyncio.sleep(0)
            asked = await deleted(context, 1, 2)
        else:
            asked = await deleted(context, 1, 2)
            waiting = asyncio.create_task(replica.fetch(max_wait_ms=LONG_MS))
        (answer,) = await waiting
        assert (answer.partition_index, answer.log_start_offset, answer.records) == (1, 2, b"")
        assert await replica.fetch(max_wait_ms=20) == [], "it was told"
        assert not asked.done()
        assert await replica.fetch(at_start(1, 2, 2)) == []
        assert await asked == 2


async def test_a_follower_whose_answer_was_lost_is_told_in_its_next_session() -> None:
    async with led() as (context, replica):
        append(leader(context), batch(b"a", b"b"))
        await replica.fetch(at_start(0, 2, 0))
        asked = await deleted(context, 0, 2)
        await replica.fetch(max_wait_ms=LONG_MS)
        replica.session = (0, 0)
        (answer,) = await replica.fetch(at_start(0, 2, 0), max_wait_ms=LONG_MS)
        assert answer.log_start_offset == 2
        asked.cancel()


async def test_a_log_start_of_retention_waits_for_the_time_to_be_up() -> None:
    """Nobody waits for it; also where a DeleteRecords had asked for less before."""
    async with led() as (context, replica):
        append(leader(context), batch(b"a", b"b", b"c"))
        await replica.fetch(at_start(0, 3, 0))
        asked = await deleted(context, 0, 1)
        assert [answer.log_start_offset for answer in await replica.fetch(max_wait_ms=LONG_MS)] == [1]
        await replica.fetch(at_start(0, 3, 1))
        await asked
        waiting = asyncio.create_task(replica.fetch(max_wait_ms=100))
        await asyncio.sleep(0)
        began_ms = context.environment.monotonic_ms()
        leader(context).log.advance_log_start(3)
        leader(context).reader.notify()
        (answer,) = await waiting
        assert answer.log_start_offset == 3
        assert context.environment.monotonic_ms() - began_ms > 90


async def test_what_is_throttled_hears_of_a_log_start_without_records() -> None:
    async with led_throttled() as (context, replica):
        await replica.fetch(wanted(0, max_bytes=300_100))
        assert await replica.fetch(at_start(0, 1, 0)) == []
        asked = await deleted(context, 0, 1)
        (answer,) = await replica.fetch(max_wait_ms=LONG_MS)
        assert (answer.log_start_offset, answer.records) == (1, b"")
        asked.cancel()
