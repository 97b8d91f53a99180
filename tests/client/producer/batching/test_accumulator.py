"""What is ready when, and what is drained: the accumulator's rules, one by one.

Where records go and how batches end stands in test_accumulator_accepting.py and test_accumulator_ends.py, whole
histories in test_accumulator_histories.py, batches that are too large in test_accumulator_limits.py.
"""

import pytest

from odradek.client.producer.batching.batch import BATCH_OVERHEAD_BYTES
from odradek.client.producer.idempotence.idempotence import Idempotence
from tests.client.core import INFINITY, Core


# ------------------------------------------------------------------------------------------------- what is ready
def test_nothing_is_ready_at_first() -> None:
    assert Core().ready() == ({}, INFINITY, set())


def test_a_batch_lingers() -> None:
    core = Core()
    core.sent()
    assert core.ready() == ({}, 1010.0, set())
    core.now_ms = 1009.9
    assert core.ready_partitions() == {}
    core.now_ms = 1010.0
    assert core.ready_partitions() == {0: [0]}
    assert core.ready().next_ms == INFINITY


def test_the_next_look_is_at_the_first_batch_to_have_lingered() -> None:
    core = Core(3)
    for partition in (1, 0, 2):
        core.sent(partition)
        core.now_ms += 3
    assert core.ready() == ({}, 1010.0, set())


def test_without_lingering_it_is_ready_at_once() -> None:
    core = Core(linger_ms=0)
    core.sent()
    assert core.ready_partitions() == {0: [0]}


def test_a_full_batch_does_not_linger() -> None:
    """One that a record did not fit into, and one that its first record fills."""
    core = Core(2)
    first = core.sent(0, 600)
    assert core.ready_partitions() == {}
    assert core.sent(0, 600) is not first
    assert core.ready_partitions() == {0: [0]}
    assert core.drain() == [first]
    assert core.ready_partitions() == {}, "the second lingers"
    core.sent(1, 2000)
    assert core.ready_partitions() == {0: [0, 1]}


def test_while_memory_is_short_nothing_lingers() -> None:
    core = Core(memory_bytes=2 * BATCH_OVERHEAD_BYTES)
    core.sent(0, 300)
    assert core.ready_partitions() == {}
    claim = core.memory.queue(core.memory.limit_bytes, lambda: None)
    assert core.ready_partitions() == {0: [0]}
    core.memory.cancel(claim)
    assert core.ready_partitions() == {}
    assert core.send(0, 1500) is None
    assert core.ready_partitions() == {0: [0]}, "one that was refused may not have queued"


def test_while_flushing_nothing_lingers() -> None:
    core = Core()
    core.sent()
    core.accumulator.flushing += 1
    assert core.ready_partitions() == {0: [0]}
    core.accumulator.flushing -= 1
    assert core.ready_partitions() == {}


def test_a_batch_that_failed_waits_for_its_backoff_whatever_is_urgent() -> None:
    """First 100 ms, then 200 ms; also while flushing, and with another batch behind it."""
    core = Core()
    core.accumulator.flushing = 1
    core.sent()
    batch = core.drained()
    for attempts, wait_ms in ((1, 100.0), (2, 200.0)):
        core.accumulator.remove_in_flight(batch)
        core.accumulator.requeue(batch, core.now_ms)
        assert batch.attempts == attempts
        assert batch.retry_at_ms == pytest.approx(core.now_ms + wait_ms)
        core.sent()
        assert core.ready_partitions() == {}
        assert core.ready().next_ms == batch.retry_at_ms
        core.now_ms = batch.retry_at_ms
        assert core.ready_partitions() == {0: [0]}
        assert core.drain() == [batch]


@pytest.mark.parametrize("leader", [(1, 2), (0, 2), (1, 1)])
def test_a_leader_that_has_moved_is_tried_at_once(leader: tuple[int, int]) -> None:
    """KIP-580: a new leader, or a new term of the same one."""
    core = Core()
    core.sent()
    core.now_ms += 10
    batch = core.drained()
    core.accumulator.remove_in_flight(batch)
    core.accumulator.requeue(batch, core.now_ms)
    assert core.ready_partitions() == {}
    core.leaders[0] = leader
    assert core.ready_partitions() == {leader[0]: [0]}
    assert core.drain(leader[0]) == [batch]
    assert batch.attempt_leader == leader


def test_a_partition_in_backoff_is_left_out_where_another_makes_the_node_ready() -> None:
    core = Core(2, linger_ms=0)
    core.sent(0)
    batch = core.drained()
    core.accumulator.remove_in_flight(batch)
    core.accumulator.requeue(batch, core.now_ms)
    other = core.sent(1)
    assert core.drain() == [other]


def test_a_node_that_is_ready_is_given_what_lingers_too() -> None:
    """As in Kafka: it costs no request more. Another node's partitions linger on."""
    core = Core(3)
    core.leaders[2] = (7, 1)
    lingering = core.sent(0)
    full = core.sent(1, 2000)
    core.sent(2)
    assert core.ready_partitions() == {0: [0, 1]}
    assert core.ready().next_ms == 1010.0
    assert core.drain() == [lingering, full]
    assert lingering.is_closed
    assert core.topic.partitions[0].open is None


def test_without_a_leader_nothing_is_ready_and_its_topic_is_named() -> None:
    core = Core(2, linger_ms=0)
    core.sent(0)
    core.sent(1)
    core.leaders[0] = (-1, 1)
    ready = core.ready()
    assert [queue.partition for queues in ready.nodes.values() for queue in queues] == [1]
    assert ready.unknown_leaders == {"orders"}
    core.leaders[0] = (0, 2)
    assert core.ready().unknown_leaders == set()


# ------------------------------------------------------------------------------------------------ what is drained
def test_one_batch_of_each_partition_in_their_order() -> None:
    core = Core(2)
    first = [core.sent(partition, 2000) for partition in (0, 1)]
    second = [core.sent(partition, 2000) for partition in (0, 1)]
    assert core.drain() == first
    assert core.drain() == second
    assert core.drain() == []


def test_a_request_is_no_larger_than_it_may_be_unless_by_one_batch() -> None:
    core = Core(4)
    batches = [core.sent(partition, size) for partition, size in enumerate([2000, 2000, 2000, 9000])]
    assert core.drain() == batches[:2]
    assert core.drain() == batches[2:3]
    assert core.drain() == batches[3:]


def test_a_batch_that_has_no_room_in_a_request_keeps_its_turn() -> None:
    """As in Kafka, smaller ones behind it wait."""
    core = Core(3)
    batches = [core.sent(partition, size) for partition, size in enumerate([4000, 2000, 700])]
    assert core.drain() == batches[:1]
    assert core.drain() == batches[1:]


def test_partitions_take_turns() -> None:
    """Two fit into a request; six times each, none twice before the others."""
    core = Core(3)
    for partition in range(3):
        for _ in range(6):
            core.sent(partition, 2000)
    found = [batch.partition for _ in range(9) for batch in core.drain()]
    assert found == [0, 1, 2] * 6


def test_with_one_request_in_flight_a_partition_is_muted_until_it_has_landed() -> None:
    core = Core(2, is_serial=True)
    first, second = core.sent(0, 2000), core.sent(0, 2000)
    other = core.sent(1, 2000)
    assert core.drain() == [first, other]
    assert core.ready_partitions() == {}
    core.accumulator.remove_in_flight(other)
    core.accumulator.complete(other, 0, -1)
    assert core.ready_partitions() == {}
    core.accumulator.remove_in_flight(first)
    core.accumulator.requeue(first, core.now_ms)
    core.now_ms += 1000
    assert core.drain() == [first]
    core.accumulator.remove_in_flight(first)
    core.accumulator.complete(first, 0, -1)
    assert core.drain() == [second]


def test_with_several_requests_in_flight_an_answer_changes_nothing_for_the_others() -> None:
    core = Core()
    batches = [core.sent(0, 2000) for _ in range(4)]
    assert [core.drained() for _ in range(3)] == batches[:3]
    core.accumulator.remove_in_flight(batches[0])
    core.accumulator.complete(batches[0], 0, -1)
    assert core.drain() == batches[3:]


@pytest.mark.parametrize("is_serial", [True, False])
def test_while_a_thread_compresses_its_batch_a_partition_is_muted(is_serial: bool) -> None:
    """Even if its leader moves meanwhile. With one in flight it stays muted after that."""
    core = Core(is_serial=is_serial)
    first, second = core.sent(0, 2000), core.sent(0, 2000)
    (drained,) = core.accumulator.drain(core.topic.partitions, core.leader_of, core.now_ms)
    assert drained is first
    core.accumulator.mute(first)
    core.leaders[0] = (1, 2)
    assert core.ready_partitions() == {}
    assert core.accumulator.drain(core.topic.partitions, core.leader_of, core.now_ms) == []
    core.accumulator.unmute(first)
    assert core.ready_partitions() == ({} if is_serial else {1: [0]})
    core.accumulator.remove_in_flight(first)
    core.accumulator.complete(first, 0, -1)
    assert core.drain(1) == [second]


def test_a_batch_that_comes_back_goes_before_those_that_were_begun_later() -> None:
    core = Core(linger_ms=0, retry_backoff_ms=1, retry_backoff_max_ms=1)
    batches = [core.sent(0, 2000) for _ in range(4)]
    assert [core.drained() for _ in range(3)] == batches[:3]
    for batch in (batches[2], batches[0], batches[1]):
        core.accumulator.remove_in_flight(batch)
        core.accumulator.requeue(batch, core.now_ms)
    core.now_ms += 1
    assert [core.drained() for _ in range(4)] == batches


def test_sequences_are_given_in_the_order_of_draining_and_kept() -> None:
    state = Idempotence()
    core = Core(idempotence=state, linger_ms=0)
    first = core.sent(0, 10)
    assert core.sent(0, 20) is first
    assert core.drain() == [], "there is no producer id yet"
    assert not first.has_sequence
    assert not first.is_closed
    state.set_producer_id(77, 0)
    assert core.drain() == [first]
    assert (first.producer_id, first.producer_epoch, first.base_sequence) == (77, 0, 0)
    second = core.sent(0, 10)
    assert core.drain() == [], "while nothing was acknowledged, only one is under way"
    core.accumulator.remove_in_flight(first)
    core.accumulator.requeue(first, core.now_ms)
    core.now_ms = first.retry_at_ms
    assert core.drain() == [first]
    assert first.base_sequence == 0
    core.accumulator.remove_in_flight(first)
    state.completed(first.key, first, 0)
    core.accumulator.complete(first, 0, -1)
    assert core.drain() == [second]
    assert second.base_sequence == 2
