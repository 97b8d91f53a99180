"""How batches end in the accumulator: acknowledged, failed or expired, wherever they are; and when memory is free."""

from contextvars import copy_context

import pytest

from odradek.client.errors.client_errors import UndeliveredRecords
from odradek.client.producer.batching.batch import BATCH_OVERHEAD_BYTES, ProducerBatch
from tests.client.core import INFINITY, Core, lost


def test_memory_is_free_when_a_batch_has_ended_and_landed() -> None:
    """In either order; expired in flight, its bytes are held until nobody sends them any more."""
    core = Core(2, linger_ms=0)
    batches = [core.sent(partition, 100) for partition in (0, 1)]
    assert core.drain() == batches
    core.accumulator.remove_in_flight(batches[0])
    assert core.memory.free_bytes < core.memory.limit_bytes
    core.accumulator.complete(batches[0], 0, -1)
    assert core.memory.limit_bytes - core.memory.free_bytes == batches[1].memory_bytes
    batches[1].result.observe((0,))
    core.accumulator.fail(batches[1], lost())
    assert batches[1].result.is_done
    assert batches[1].encoded is not None
    assert core.memory.limit_bytes - core.memory.free_bytes == batches[1].memory_bytes
    core.accumulator.remove_in_flight(batches[1])
    assert batches[1].encoded is None
    assert core.memory.free_bytes == core.memory.limit_bytes


def test_an_answer_that_comes_after_the_end_changes_nothing() -> None:
    core = Core(linger_ms=0)
    core.sent()
    batch = core.drained()
    core.accumulator.fail(batch, lost())
    core.accumulator.remove_in_flight(batch)
    core.accumulator.complete(batch, 0, -1)
    core.accumulator.fail(batch, lost())
    assert batch.result.error is not None
    assert core.memory.free_bytes == core.memory.limit_bytes


def test_a_batch_fails_while_it_takes_records() -> None:
    """Everything is failed at the end of a close: its records are told how many they are."""
    core = Core(2)
    batch = core.sent(0, 100)
    assert core.sent(0, 100) is batch
    core.sent(1)
    core.accumulator.fail(batch, lost())
    assert batch.result.count == 2
    assert core.topic.partitions[0].open is None
    core.accumulator.flushing = 1
    assert core.ready_partitions() == {0: [1]}
    with pytest.raises(UndeliveredRecords) as caught:
        core.results.report()
    assert caught.value.count == 2
    assert core.sent(0) is not batch


def test_a_batch_that_fails_in_its_queue_leaves_the_others_there() -> None:
    core = Core()
    batches = [core.sent(0, 2000) for _ in range(3)]
    for batch in batches:
        batch.result.observe((0,))
    core.accumulator.fail(batches[1], lost())
    assert [core.drained(), core.drained()] == [batches[0], batches[2]]


def test_an_end_is_told_after_the_memory_is_free() -> None:
    """So that a callback can send again at once, if nobody waits for the memory."""
    core = Core(memory_bytes=BATCH_OVERHEAD_BYTES + 200, linger_ms=0)
    core.sent(0, 100)
    batch = core.drained()
    begun: list[ProducerBatch | None] = []
    batch.result.add_callback(0, lambda _: begun.append(core.send(0, 100)), None, copy_context(), True)
    core.accumulator.remove_in_flight(batch)
    core.accumulator.complete(batch, 0, -1)
    assert begun[0] is not None


def test_batches_expire_at_their_deadline_wherever_they_are() -> None:
    """Queued, in flight or landed and queued again; each is found once, and no later than at its deadline."""
    core = Core(3, linger_ms=0)
    assert core.accumulator.next_deadline_ms == INFINITY
    assert core.accumulator.expired(1e9) == []
    in_flight = core.sent(0)
    core.drain()
    again = core.sent(1)
    core.drain()
    core.accumulator.remove_in_flight(again)
    core.now_ms = 1300.0
    core.accumulator.requeue(again, core.now_ms)
    queued = core.sent(2)
    assert core.accumulator.next_deadline_ms == 6000.0
    assert core.accumulator.expired(5999.9) == []
    found = core.accumulator.expired(6000.0)
    assert found == [in_flight, again]
    assert core.accumulator.next_deadline_ms == 6300.0
    for batch in found:
        batch.result.observe((0,))
        core.accumulator.fail(batch, lost())
    assert core.ready_partitions() == {0: [2]}
    assert core.accumulator.expired(6299.0) == []
    assert core.accumulator.expired(7000.0) == [queued]
    assert core.accumulator.next_deadline_ms == INFINITY
