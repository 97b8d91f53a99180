"""`Watch`: a long poll wakes when enough may have come, or at other news, and loses none that came while reading."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from odradek.broker.handling.context import Context
from odradek.broker.replica.partition import Partition
from odradek.broker.replica.replicas import Replicas
from odradek.broker.replica.watch import Watch
from tests.broker.support import append, batch, make_topic, running_broker

ONE = batch(b"a" * 100)
LONG_MS = 10_000.0


@pytest.fixture
async def context() -> AsyncIterator[Context]:
    async with running_broker() as context:
        await make_topic(context, "orders", 3)
        yield context


def led(context: Context, index: int = 0) -> Partition:
    return context.partitions.leader("orders", index)


async def waiting(watch: Watch, missing_bytes: int, timeout_ms: float = LONG_MS) -> asyncio.Task[bool]:
    task = asyncio.ensure_future(watch.wait(missing_bytes, timeout_ms))
    await asyncio.sleep(0)
    return task


async def test_a_wait_ends_when_enough_bytes_came_over_all_partitions(context: Context) -> None:
    partitions = [led(context, index) for index in range(3)]
    with Watch(context.environment.loop, partitions) as watch:
        watch.mark()
        task = await waiting(watch, 3 * len(ONE))
        for partition in partitions:
            await asyncio.sleep(0)
            assert not task.done()
            append(partition, ONE)
        assert await asyncio.wait_for(task, 5) is True


async def test_what_came_between_the_reading_and_the_wait_is_not_lost(context: Context) -> None:
    with Watch(context.environment.loop, [led(context)]) as watch:
        watch.mark()
        append(led(context), ONE)  # the reading did not see it
        assert await asyncio.wait_for(watch.wait(1, LONG_MS), 5) is True
        watch.mark()  # and now it will be read
        assert await watch.wait(1, 5) is False


async def test_without_news_the_time_ends_the_wait(context: Context) -> None:
    with Watch(context.environment.loop, [led(context)]) as watch:
        watch.mark()
        append(led(context), ONE)
        assert await asyncio.wait_for(watch.wait(len(ONE) + 1, 10), 5) is False


async def test_lost_leadership_ends_the_wait_at_once(context: Context) -> None:
    with Watch(context.environment.loop, [led(context), led(context, 1)]) as watch:
        watch.mark()
        task = await waiting(watch, 1 << 30)
        led(context, 1).resign()
        assert await asyncio.wait_for(task, 5) is True


async def test_a_high_watermark_that_a_follower_moves_ends_the_wait(context: Context) -> None:
    partition = led(context)
    partition.become_leader(1, Replicas(0, (0, 1), (0, 1)))
    with Watch(context.environment.loop, [partition]) as watch:
        watch.mark()
        task = await waiting(watch, len(ONE))
        append(partition, ONE)
        await asyncio.sleep(0)
        assert not task.done(), "it cannot be read yet"
        partition.replicas.followers[1].fetched(1, context.environment.monotonic_ms(), 1)
        partition.acknowledgements.update()
        assert await asyncio.wait_for(task, 5) is True


async def test_what_was_hidden_counts_when_the_reader_comes_to_see_it(context: Context) -> None:
    """Appended before the reading, and behind its end: once that is known to be little, a little is not enough."""
    partition = led(context)
    partition.become_leader(1, Replicas(0, (0, 1), (0, 1)))

    def replicate(offset: int) -> None:
        partition.replicas.followers[1].fetched(offset, context.environment.monotonic_ms(), offset)
        partition.acknowledgements.update()

    append(partition, ONE)
    with Watch(context.environment.loop, [partition]) as watch:
        append(partition, ONE)
        replicate(1)
        assert await watch.wait(1 << 20, LONG_MS) is True, "nobody knows how much was hidden before"
        watch.mark()
        append(partition, ONE)
        replicate(3)
        assert await watch.wait(2 * len(ONE), LONG_MS) is True, "two batches"
        watch.mark()
        append(partition, ONE)
        replicate(4)
        assert await watch.wait(len(ONE) + 1, 5) is False, "one batch"


async def test_more_than_a_partition_has_room_for_ends_the_wait(context: Context) -> None:
    with Watch(context.environment.loop, [led(context), led(context, 1)]) as watch:
        watch.rooms = {led(context, 1): len(ONE) - 1}
        task = asyncio.ensure_future(watch.wait(1 << 20, LONG_MS))
        append(led(context), ONE)
        await asyncio.sleep(0)
        assert not task.done()
        append(led(context, 1), ONE)
        assert await asyncio.wait_for(task, 5) is True
        assert await watch.wait(1 << 20, LONG_MS) is True, "known before the wait; nothing was read since"
        watch.mark()
        assert await watch.wait(1 << 20, 5) is False
        append(led(context, 1), batch(b""))
        watch.rooms = {led(context, 1): 0}
        assert await watch.wait(1 << 20, LONG_MS) is True, "there is less room now"


async def test_a_new_segment_ends_the_wait(context: Context) -> None:
    """Whoever has read the one before has all of it."""
    partition = led(context)
    append(partition, ONE)
    with Watch(context.environment.loop, [partition]) as watch:
        partition.log.roll(0)
        append(partition, ONE)
        assert await watch.wait(1 << 20, LONG_MS) is True
        watch.mark()
        append(partition, ONE)
        assert await watch.wait(1 << 20, 5) is False


async def test_an_interruption_ends_the_wait_and_is_remembered_until_the_next_reading(context: Context) -> None:
    with Watch(context.environment.loop, [led(context)]) as watch:
        watch.mark()
        task = await waiting(watch, 1)
        watch.interrupt()
        watch.interrupt()
        assert await asyncio.wait_for(task, 5) is True
        assert await asyncio.wait_for(watch.wait(1, LONG_MS), 5) is True
        watch.mark()
        assert await watch.wait(1, 5) is False


async def test_nothing_is_left_behind_however_it_ends(context: Context) -> None:
    with pytest.raises(LookupError), Watch(context.environment.loop, [led(context)]):
        assert len(led(context).reader.watchers) == 1
        raise LookupError
    with Watch(context.environment.loop, [led(context)]) as watch:
        task = await waiting(watch, 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        append(led(context), ONE)  # wakes nobody, and harms nothing
    assert led(context).reader.watchers == {}
