"""What a machine of transactions goes back to when the log refuses what it wrote, and what it does again."""

from itertools import pairwise
from typing import Any

import pytest

from odradek.broker.txn.machine import AGAIN_MS, HELD_MS
from odradek.broker.txn.transaction import ProducerIdentity, TxnState
from odradek.protocol.errors import ErrorCode
from tests.broker.group.kept_outbox import Asked
from tests.broker.txn.kept_outbox import BILLS, DAY_MS, ORDERS, World, error_of

REFUSED = ErrorCode.COORDINATOR_NOT_AVAILABLE


def manual(version: int = 2, state: TxnState = TxnState.ONGOING) -> tuple[World, ProducerIdentity]:
    """From here on the log takes what the test says."""
    world = World(version)
    producer = world.init("a")
    if state is not TxnState.EMPTY:
        world.begin("a", producer, ORDERS)
    if state.is_prepared:
        producer = world.end("a", producer, is_commit=state is TxnState.PREPARE_COMMIT)
    world.outbox.is_manual = True
    return world, producer


def snapshot(world: World) -> dict[str, Any]:
    return dict(world.machine.transactions)


@pytest.mark.parametrize("version", [0, 2])
def test_all_changes_of_an_id_in_one_batch_are_taken_back(version: int) -> None:
    world, producer = manual(version, TxnState.PREPARE_COMMIT)
    before = snapshot(world)
    held = world.ask_add("a", producer, BILLS)
    world.write_markers()
    asked: list[Asked[Any]] = [held, world.ask_end("a", producer), world.ask_init("b")]
    assert world.of("a").partitions == {BILLS}
    world.outbox.append_all(refused={0})
    assert snapshot(world) == before
    assert [error_of(each) for each in asked] == [REFUSED] * 3


def test_what_builds_on_a_refused_batch_goes_with_it() -> None:
    world, producer = manual()
    before = snapshot(world)
    asked: list[Asked[Any]] = [world.ask_add("a", producer, BILLS), world.ask_init("b"), world.ask_end("a", producer)]
    assert world.outbox.append_all(refused={0}, size_bytes_max=1) == 2
    world.outbox.commit()
    assert [error_of(each) for each in asked] == [REFUSED, None, REFUSED]
    assert snapshot(world) == before | {"b": world.of("b")}
    assert world.sent == []


def test_what_was_in_the_log_before_a_refusal_stays() -> None:
    world, producer = manual()
    asked: list[Asked[Any]] = [world.ask_add("a", producer, BILLS), world.ask_end("a", producer)]
    world.outbox.append_all(refused={1}, size_bytes_max=1)
    world.outbox.commit()
    assert [error_of(each) for each in asked] == [None, REFUSED]
    assert world.of("a").partitions == {ORDERS, BILLS}
    assert world.of("a").state is TxnState.ONGOING


@pytest.mark.parametrize("version", [0, 2])
def test_a_refused_takeover_fences_nobody(version: int) -> None:
    world, producer = manual(version)
    init = world.ask_init("a")
    zombie = world.ask_add("a", producer, BILLS)
    assert zombie.answers == [], "that it is fenced is not in the log yet"
    world.outbox.append_all(refused={0})
    assert error_of(zombie) is REFUSED
    assert world.of("a").identity == producer
    world.outbox.is_manual = False
    world.begin("a", producer, BILLS)
    world.wait(HELD_MS)
    assert error_of(init) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert world.of("a").state is TxnState.ONGOING


def test_a_refused_first_producer_leaves_nothing_behind() -> None:
    world = World(2)
    world.outbox.is_manual = True
    asked = world.ask_init("a")
    first = world.ask_add("a", ProducerIdentity(1_000, 0))
    world.outbox.append_all(refused={0})
    assert error_of(asked) is REFUSED and error_of(first) is REFUSED
    assert snapshot(world) == {}
    deadline_ms = world.machine.next_deadline_ms
    assert deadline_ms == world.options.transaction_remove_expired_transaction_cleanup_interval_ms


@pytest.mark.parametrize("version", [0, 2])
def test_an_abort_by_time_that_is_refused_is_tried_again(version: int) -> None:
    world, _ = manual(version)
    world.outbox.is_manual = False
    world.outbox.refuses = True
    world.wait(60_000)
    assert world.of("a").state is TxnState.ONGOING
    assert world.settle() == 0, "not before some time has passed: the log is asked again and again otherwise"
    world.outbox.refuses = False
    world.wait(AGAIN_MS - 1)
    assert world.of("a").state is TxnState.ONGOING
    world.wait(1)
    assert len(world.sent) == 1


def test_a_refused_request_leaves_the_time_out_where_it_was() -> None:
    world, producer = manual()
    world.wait(59_900)
    world.ask_end("a", producer)
    world.outbox.append_all(refused={0})
    world.outbox.is_manual = False
    world.wait(99)
    assert world.of("a").state is TxnState.ONGOING
    world.wait(1)
    assert world.of("a").state is TxnState.PREPARE_ABORT


@pytest.mark.parametrize("state", [TxnState.PREPARE_COMMIT, TxnState.PREPARE_ABORT])
def test_a_completion_that_is_refused_is_tried_again(state: TxnState) -> None:
    """Nobody else would: its markers are written."""
    world, producer = manual(2, state)
    world.outbox.is_manual = False
    world.outbox.refuses = True
    held = world.ask_add("a", producer, BILLS)
    world.write_markers()
    assert world.of("a").state is state
    assert error_of(held) is REFUSED
    assert world.settle() == 0
    world.wait(10 * AGAIN_MS)
    world.outbox.refuses = False
    held = world.ask_add("a", producer, BILLS)
    world.wait(AGAIN_MS)
    assert held.answer is None
    assert world.of("a").partitions == {BILLS}
    assert len(world.sent) == 1, "the markers are not written again"


def test_markers_reported_again_complete_what_was_refused() -> None:
    world, _ = manual(2, TxnState.PREPARE_COMMIT)
    world.outbox.is_manual = False
    world.outbox.refuses = True
    world.write_markers()
    world.outbox.refuses = False
    world.write_markers()
    assert world.of("a").state is TxnState.COMPLETE_COMMIT
    length = len(world.outbox.log)
    world.wait(10 * AGAIN_MS)
    assert len(world.outbox.log) == length


def test_what_waits_for_an_end_that_is_refused_is_answered_in_time() -> None:
    world, producer = manual(0)
    end = world.ask_end("a", producer)
    held = world.ask_add("a", producer, BILLS)
    world.outbox.append_all(refused={0})
    assert error_of(end) is REFUSED
    assert held.answers == []
    world.outbox.is_manual = False
    world.wait(HELD_MS)
    assert error_of(held) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert world.of("a").partitions == {ORDERS}


def test_expiry_that_is_refused_is_undone_and_comes_with_the_next_sweep() -> None:
    world, _ = manual(2, TxnState.EMPTY)
    world.outbox.is_manual = False
    before = snapshot(world)
    world.outbox.refuses = True
    world.wait(8 * DAY_MS)
    assert snapshot(world) == before
    world.outbox.refuses = False
    world.wait(3_600_000)
    assert snapshot(world) == {}


def test_an_id_that_comes_back_in_the_batch_of_its_expiry_is_undone_with_it() -> None:
    world, _ = manual(2, TxnState.EMPTY)
    before = snapshot(world)
    world.passed_ms += 8 * DAY_MS
    world.machine.tick(world.now)
    assert snapshot(world) == {}
    asked = world.ask_init("a")
    assert world.of("a").producer_id not in (each.producer_id for each in before.values())
    world.outbox.append_all(refused={0})
    assert snapshot(world) == before
    assert error_of(asked) is REFUSED


def test_states_in_the_log_follow_one_another() -> None:
    """A batch may hold several changes of one id: all of them are written."""
    world, producer = manual(2, TxnState.PREPARE_COMMIT)
    before = len(world.outbox.log)
    world.write_markers()
    world.ask_add("a", producer, ORDERS)
    world.ask_add("a", producer, BILLS)
    world.ask_end("a", producer)
    world.outbox.append_all()
    world.outbox.commit()
    records = world.outbox.log[before:]
    assert len(records) == 4
    assert all(one != other for one, other in pairwise(records))
    assert world.sent[-1].partitions == {ORDERS, BILLS}
