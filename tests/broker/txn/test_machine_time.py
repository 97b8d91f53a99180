"""What a machine of transactions does of itself: time-outs, expiry, and what it finds after a load."""

import pytest

from odradek.broker.coordinator.machine import Now
from odradek.broker.txn.machine import OVERDUE_MS
from odradek.broker.txn.stored import tombstone
from odradek.broker.txn.sweep import LOOKED_AT_TOGETHER
from odradek.broker.txn.transaction import WITHOUT_TIMEOUT_MS, ProducerIdentity, Transaction, TxnState
from odradek.protocol.errors import ErrorCode
from tests.broker.txn.kept_outbox import BILLS, DAY_MS, ORDERS, START_MS, World, error_of


def ongoing(world: World, started_ms: int, timeout_ms: int = 60_000) -> Transaction:
    partitions = frozenset([ORDERS])
    return Transaction(7, 3, timeout_ms, started_ms, TxnState.ONGOING, partitions, started_ms, world.version)


@pytest.mark.parametrize("version", [0, 2])
def test_a_transaction_is_aborted_when_its_time_is_up_and_not_before(version: int) -> None:
    world = World(version)
    producer = world.init("a")
    world.begin("a", producer, ORDERS)
    world.wait(59_000)
    world.begin("a", producer, BILLS)
    world.wait(999)
    assert world.of("a").state is TxnState.ONGOING
    world.wait(1)
    assert world.of("a").state is TxnState.PREPARE_ABORT
    [ending] = world.sent
    assert (ending.producer.epoch, ending.is_commit) == (producer.epoch + 1, False)
    assert ending.partitions == {ORDERS, BILLS}


def test_what_has_timed_out_is_told_its_partitions_without_any_client() -> None:
    """The record of the abort is committed late."""
    world = World(2)
    world.begin("a", world.init("a"))
    world.outbox.is_manual = True
    world.wait(60_000)
    world.outbox.append_all()
    assert world.sent == []
    world.outbox.commit()
    assert len(world.sent) == 1


@pytest.mark.parametrize(("age_ms", "left_ms"), [(59_000, 1_000), (60_000, OVERDUE_MS), (7 * DAY_MS, OVERDUE_MS)])
def test_after_a_load_time_counts_from_the_record(age_ms: int, left_ms: int) -> None:
    world = World(2)
    world.place("a", ongoing(world, world.now.unix_ms - age_ms))
    world.wait(left_ms - 1)
    world.begin("a", ProducerIdentity(7, 3), BILLS)
    assert world.of("a").state is TxnState.ONGOING, "what happens meanwhile does not take the rest of its time"
    world.wait(0)
    assert world.of("a").state is TxnState.ONGOING
    world.wait(1)
    assert world.of("a").state is TxnState.PREPARE_ABORT


def test_a_clock_that_goes_back_neither_aborts_early_nor_at_once() -> None:
    world = World(2)
    world.clock_ms -= DAY_MS
    world.begin("a", world.init("a"))
    world.wait(59_999)
    assert world.of("a").state is TxnState.ONGOING
    world.wait(1)
    assert world.of("a").state is TxnState.PREPARE_ABORT


def test_a_clock_that_goes_back_leaves_endings_apart() -> None:
    world = World(0)
    producer = world.init("a")
    for _ in range(3):
        world.begin("a", producer)
        world.end("a", producer)
        world.write_markers()
        world.clock_ms -= 1_000
    assert len({each.prepared_ms for each in world.sent}) == 3


@pytest.mark.parametrize("state", [TxnState.PREPARE_COMMIT, TxnState.PREPARE_ABORT])
def test_what_a_load_finds_prepared_is_announced_when_it_is_committed(state: TxnState) -> None:
    world = World(2)
    producer = world.init("a")
    world.begin("a", producer, ORDERS, BILLS)
    world.outbox.is_manual = True
    world.ask_end("a", producer, is_commit=state is TxnState.PREPARE_COMMIT)
    world.outbox.append_all()
    world.reload()
    assert world.sent == []
    world.outbox.commit()
    [ending] = world.sent
    assert ending.partitions == {ORDERS, BILLS}
    assert ending.is_commit is (state is TxnState.PREPARE_COMMIT)


def test_markers_of_the_machine_before_complete_what_was_loaded() -> None:
    world = World(2)
    producer = world.init("a")
    world.begin("a", producer)
    world.end("a", producer)
    [ending] = world.sent
    world.reload()
    assert world.sent == [ending]
    world.write_markers(ending)
    assert world.of("a").state is TxnState.COMPLETE_COMMIT


def test_a_tick_keeps_some_deadlines_and_leaves_the_rest_to_the_next() -> None:
    world = World(2)
    for number in range(2 * LOOKED_AT_TOGETHER + 1):
        world.begin(f"{number}", world.init(f"{number}"))
    world.passed_ms += 60_000
    world.machine.tick(world.now)
    states = [each.state for _, each in world.machine.transactions]
    assert states.count(TxnState.PREPARE_ABORT) == LOOKED_AT_TOGETHER
    assert world.settle() == 2
    assert {each.state for _, each in world.machine.transactions} == {TxnState.PREPARE_ABORT}


# -- expiry -----------------------------------------------------------------------------------------------------------


def test_ids_expire_when_they_have_ended_for_long_enough() -> None:
    world = World(2)
    for transactional_id in ("empty", "complete", "prepared", "ongoing", "later"):
        if transactional_id == "later":
            world.wait(DAY_MS)
        asked = world.ask_init(transactional_id, timeout_ms=900_000)
        if transactional_id != "empty":
            world.begin(transactional_id, asked.answer)
        if transactional_id in ("complete", "prepared", "later"):
            world.end(transactional_id, asked.answer)
        if transactional_id in ("complete", "later"):
            world.write_markers()
    world.place("ongoing", ongoing(world, START_MS, WITHOUT_TIMEOUT_MS))
    world.wait(6 * DAY_MS)
    world.wait(3_600_000)
    assert {name for name, _ in world.machine.transactions} == {"prepared", "ongoing", "later"}
    assert world.outbox.log[-2:] in (
        [tombstone("empty"), tombstone("complete")],
        [tombstone("complete"), tombstone("empty")],
    )
    world.reload()
    assert {name for name, _ in world.machine.transactions} == {"prepared", "ongoing", "later"}
    assert error_of(world.ask_add("empty", ProducerIdentity(1_000, 0))) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_a_sweep_looks_at_some_ids_in_each_step_and_leaves_who_came_back() -> None:
    world = World(2)
    ids = [f"{number:03}" for number in range(2 * LOOKED_AT_TOGETHER + 1)]
    for transactional_id in ids:
        world.init(transactional_id)
    world.passed_ms += 8 * DAY_MS
    world.machine.tick(world.now)
    world.outbox.turn_ends()
    left = {name for name, _ in world.machine.transactions}
    assert len(left) == LOOKED_AT_TOGETHER + 1
    gone = min(set(ids) - left)
    world.init(min(left))
    world.init(gone)
    assert world.settle() == 2
    assert {name for name, _ in world.machine.transactions} == {min(left), gone}


@pytest.mark.parametrize("age_ms", [7 * DAY_MS - 1, 7 * DAY_MS])
def test_an_id_expires_when_it_is_old_enough_and_not_before(age_ms: int) -> None:
    world = World(2)
    world.place("a", Transaction(7, 3, 60_000, START_MS + 3_600_000 - age_ms))
    world.wait(3_600_000)
    assert ("a" in dict(world.machine.transactions)) is (age_ms < 7 * DAY_MS)


def test_an_id_that_has_expired_begins_with_another_producer_id() -> None:
    world = World(2)
    former = world.init("a")
    world.wait(7 * DAY_MS + 3_600_000)
    assert dict(world.machine.transactions) == {}
    again = world.init("a", former)
    assert again.epoch == 0
    assert again.producer_id != former.producer_id


def test_nothing_is_due_before_the_machine_is_loaded() -> None:
    world = World(2)
    world.init("a")
    machine = world.new_machine()
    assert machine.next_deadline_ms is None
    machine.loaded(Now(0, START_MS))
    assert machine.next_deadline_ms == 3_600_000
