"""A delivery can be awaited in every way that asyncio has, by anybody, at any time, and no wait disturbs another.

All on virtual time, which also shows that no task, timer or unhandled error is left behind.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from odradek.client.errors.client_errors import (
    ConnectionFailed,
    RecordRefused,
    UndeliveredRecords,
)
from odradek.client.producer.results.delivery import Ack, Delivery, wait_for_all
from odradek.protocol.errors import ErrorCode
from tests.client.deliveries import NOW, Batch, CountedResults, ack, lost, raises_lost, turns

pytestmark = pytest.mark.virtual_time


# ------------------------------------------------------------------------------------------------------- awaiting it
async def test_awaited_before_and_after_its_end_by_several_tasks() -> None:
    batch = Batch(3)
    delivery = batch.deliveries[1]

    async def wait() -> Ack:
        return await delivery

    tasks = [asyncio.create_task(wait()) for _ in range(5)]
    await turns()
    assert not delivery.done()
    batch.complete()
    assert delivery.done()
    assert await asyncio.gather(*tasks) == [ack(1)] * 5
    assert await delivery == ack(1)
    assert await delivery == await wait() == delivery.result() == ack(1)
    assert delivery.exception() is None


async def test_a_failure_is_raised_by_every_await_anew() -> None:
    batch = Batch(1)
    delivery = batch.deliveries[0]
    tasks = [asyncio.create_task(raises_lost(delivery)) for _ in range(3)]
    await turns()
    batch.fail()
    assert batch.owner.lost_count == 0
    await asyncio.gather(*tasks)
    await raises_lost(delivery)
    first, second = delivery.exception(), delivery.exception()
    assert isinstance(first, ConnectionFailed)
    assert first is not second, "who raises it would add a traceback to the one that is kept"
    with pytest.raises(ConnectionFailed):
        delivery.result()
    batch.owner.report()


async def test_single_records_fail_by_their_own_errors() -> None:
    batch = Batch(2)
    batch.result.fail(lost(), {1: RecordRefused(ErrorCode.INVALID_RECORD, "no key", what="a record")})
    await raises_lost(batch.deliveries[0])
    with pytest.raises(RecordRefused, match="no key"):
        await batch.deliveries[1]


async def test_cancelling_one_wait_touches_no_other() -> None:
    """Neither one for the same record, nor one for another of its batch, nor the record."""
    batch = Batch(2)
    first, second = batch.deliveries

    async def wait(delivery: Delivery) -> Ack:
        return await delivery

    tasks = [asyncio.create_task(wait(delivery)) for delivery in (first, first, second)]
    await turns()
    tasks[0].cancel()
    await turns()
    assert tasks[0].cancelled()
    assert not tasks[1].done()
    assert not tasks[2].done()
    assert not first.done()
    assert not first.cancelled()
    batch.complete()
    assert await tasks[1] == await first == ack(0)
    assert await tasks[2] == ack(1)


async def test_a_wait_that_was_cancelled_leaves_nothing_in_the_batch() -> None:
    batch = Batch(1)

    async def wait() -> Ack:
        return await batch.deliveries[0]

    for _ in range(1000):
        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    waiter = batch.result.waiter(0)
    assert batch.result._waiters == {waiter: 0}  # pyright: ignore[reportPrivateUsage]
    batch.complete()


# --------------------------------------------------------------------------------------------------- asyncio's ways
async def test_wait_for() -> None:
    """One that times out, one that does not, and one that fails in time."""
    batch, failing = Batch(2), Batch(1)
    batch.later(batch.complete)
    failing.later(failing.fail)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(batch.deliveries[0], 0.5)
    assert await asyncio.wait_for(batch.deliveries[0], 5) == ack(0)
    assert await asyncio.wait_for(batch.deliveries[1], 5) == ack(1)
    await raises_lost(asyncio.wait_for(failing.deliveries[0], 5))
    failing.owner.report()


async def test_timeout() -> None:
    batch = Batch(1)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await batch.deliveries[0]
    batch.complete()
    async with asyncio.timeout(1):
        assert await batch.deliveries[0] == ack(0)


async def asyncio_wait(deliveries: Iterable[Delivery], **options: Any) -> tuple[set[Delivery], set[Delivery]]:
    """`asyncio.wait`, whose types know of futures only; it takes all that has their methods."""
    wait: Any = asyncio.wait
    found: tuple[set[Delivery], set[Delivery]] = await wait(deliveries, **options)
    return found


@pytest.mark.parametrize(
    ("return_when", "done_count"),
    [(asyncio.FIRST_COMPLETED, 2), (asyncio.FIRST_EXCEPTION, 3), (asyncio.ALL_COMPLETED, 4)],
)
async def test_wait(return_when: str, done_count: int) -> None:
    """As they are, without a task each. One after another ends: two records, then one by failure, then the last."""
    batch, failing, last = Batch(2), Batch(1), Batch(1)
    batch.later(batch.complete, 1)
    failing.later(failing.fail, 2)
    last.later(last.complete, 3)
    deliveries = [*batch.deliveries, *failing.deliveries, *last.deliveries]
    done, pending = await asyncio_wait(deliveries, return_when=return_when)
    assert len(done) == done_count
    assert done | pending == set(deliveries)
    assert all(delivery.done() for delivery in done)
    await raises_lost(failing.deliveries[0])
    await wait_for_all(deliveries)


async def test_wait_with_a_timeout_and_with_what_has_ended() -> None:
    batch, other = Batch(1), Batch(1)
    batch.complete()
    deliveries = {*batch.deliveries, *other.deliveries}
    done, pending = await asyncio_wait(deliveries, timeout=1)
    assert (done, pending) == (set(batch.deliveries), set(other.deliveries))
    other.fail()
    assert other.owner.lost_count == 1, "who has stopped waiting is no witness"


async def test_gather() -> None:
    """Of two batches; one failure is raised, or returned, and the others are not disturbed."""
    batch, failing = Batch(2), Batch(1)
    batch.later(batch.complete)
    failing.later(failing.fail, 2)
    deliveries = [batch.deliveries[1], *failing.deliveries, batch.deliveries[0]]
    found = await asyncio.gather(*deliveries, return_exceptions=True)
    assert [found[0], found[2]] == [ack(1), ack(0)]
    assert isinstance(found[1], ConnectionFailed)
    await raises_lost(asyncio.gather(*deliveries))
    batch.owner.report()
    failing.owner.report()


async def test_a_gather_that_is_cancelled_leaves_the_records_alone() -> None:
    batch = Batch(2)
    gathering = asyncio.gather(*batch.deliveries)
    await turns()
    gathering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gathering
    batch.complete()
    assert await asyncio.gather(*batch.deliveries) == [ack(0), ack(1)]


async def test_as_completed() -> None:
    slow, quick = Batch(1), Batch(2)
    quick.later(lambda: quick.complete(100), 1)
    slow.later(lambda: slow.complete(500), 2)
    deliveries = [*slow.deliveries, *quick.deliveries]
    offsets = [(await first).offset for first in asyncio.as_completed(deliveries)]
    assert offsets[2] == 500
    assert set(offsets[:2]) == {100, 101}


async def test_shield() -> None:
    batch = Batch(2)

    async def wait() -> Ack:
        return await asyncio.shield(batch.deliveries[0])

    task = asyncio.create_task(wait())
    await turns()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    batch.later(batch.complete)
    assert await asyncio.gather(*map(asyncio.shield, batch.deliveries)) == [ack(0), ack(1)]


async def test_a_task_group() -> None:
    batch = Batch(2)

    async def wait(delivery: Delivery) -> Ack:
        return await delivery

    batch.later(batch.complete)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(wait(delivery)) for delivery in batch.deliveries]
    assert [task.result() for task in tasks] == [ack(0), ack(1)]


async def test_settle_waits_for_many_and_looks_at_all() -> None:
    """Some have failed before, some fail meanwhile, one is split meanwhile; nothing is left to be reported."""
    owner = CountedResults()
    failed, failing, split, completing = (Batch(3, owner) for _ in range(4))
    failed.fail()
    assert owner.lost_count == 3
    deliveries = [each for batch in (failed, failing, split, completing) for each in batch.deliveries]
    task = asyncio.create_task(wait_for_all(deliveries))
    await turns()
    completing.complete()
    parts = split.split(1, 2)
    parts[1].fail(lost())
    failing.fail()
    await turns()
    assert not task.done()
    parts[0].complete(100, -1)
    await task
    assert owner.lost_count == 3
    owner.report()
    await wait_for_all([])


async def test_settle_that_is_cancelled_is_no_witness() -> None:
    batch = Batch(2)
    task = asyncio.create_task(wait_for_all(batch.deliveries))
    await turns()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    batch.fail()
    with pytest.raises(UndeliveredRecords) as caught:
        batch.owner.report()
    assert caught.value.count == 2


# ------------------------------------------------------------------------------------------------------------ splits
async def test_a_split_while_it_is_awaited() -> None:
    """Waits, callbacks and later looks all find the part that has the record, through two splits."""
    batch = Batch(10)
    called: list[tuple[int, Ack]] = []

    async def wait(delivery: Delivery) -> Ack:
        return await delivery

    def note(delivery: Delivery) -> None:
        if delivery.exception() is None:
            called.append((delivery.batch_index, delivery.result()))

    for n in (2, 5, 9):
        batch.deliveries[n].add_done_callback(note)
    tasks = [asyncio.create_task(wait(batch.deliveries[n])) for n in (2, 5, 9)]
    await turns()
    left, right = batch.split(4, 6)
    await turns()
    assert not any(task.done() for task in tasks)
    first, second = right.split((3, 3))
    assert not batch.deliveries[5].done()
    assert batch.deliveries[5].topic == "orders"
    second.complete(900, NOW)
    await turns()
    assert [task.done() for task in tasks] == [False, False, True]
    left.complete(100, NOW)
    first.fail(lost())
    assert await tasks[0] == Ack("orders", 3, 102, NOW)
    await raises_lost(tasks[1])
    assert await tasks[2] == Ack("orders", 3, 902, NOW)
    assert called == [(2, Ack("orders", 3, 902, NOW)), (2, Ack("orders", 3, 102, NOW))]
    assert batch.deliveries[3].result().offset == 103
    assert batch.deliveries[8].result().offset == 901
    assert isinstance(batch.deliveries[4].exception(), ConnectionFailed)


async def test_a_callback_is_removed_after_a_split() -> None:
    batch = Batch(3)
    called: list[Delivery] = []
    batch.deliveries[2].add_done_callback(called.append)
    parts = batch.split(1, 2)
    assert batch.deliveries[2].remove_done_callback(called.append) == 1
    for part in parts:
        part.complete(0, -1)
    assert called == []


async def test_a_wait_that_was_cancelled_in_the_turn_of_a_split_goes_away() -> None:
    batch = Batch(2)

    async def wait() -> Ack:
        return await batch.deliveries[1]

    task, other = asyncio.create_task(wait()), asyncio.create_task(wait())
    await turns()
    task.cancel()
    parts = batch.split(1, 1)
    with pytest.raises(asyncio.CancelledError):
        await task
    parts[1].complete(7, -1)
    assert (await other).offset == 7
