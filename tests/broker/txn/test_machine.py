"""What a machine of transactions answers: each request in each state. What waits goes on when the one before is over.

The state is reached by requests, and its records are committed. Then a request comes; the table says what it is
answered.
"""

from collections.abc import Callable
from typing import Any

import pytest

from odradek.broker.txn.machine import HELD_MS
from odradek.broker.txn.transaction import WITHOUT_TIMEOUT_MS, ProducerIdentity, TxnState
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.group.kept_outbox import Asked
from tests.broker.txn.kept_outbox import BILLS, ORDERS, World, error_of

STATES = ["absent", "EMPTY", "ONGOING", "PREPARE_COMMIT", "PREPARE_ABORT", "COMPLETE_COMMIT", "COMPLETE_ABORT"]
FOREIGN = ProducerIdentity(77, 3)
CELLS = {
    "fenced": ErrorCode.PRODUCER_FENCED,
    "unknown": ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    "state": ErrorCode.INVALID_TXN_STATE,
    "busy": ErrorCode.CONCURRENT_TRANSACTIONS,
    "none": None,
    "in": {ORDERS: ErrorCode.NONE},
    "out": {ORDERS: ErrorCode.TRANSACTION_ABORTABLE},
}


def reach(world: World, state: str) -> ProducerIdentity:
    """The identity of the producer that has come that far with the id `a`. Its epoch was 2 when it began."""
    if state == "absent":
        return ProducerIdentity(1_000, 2)
    for _ in range(2):
        world.init("a")
    producer = world.init("a")
    if state == "EMPTY":
        return producer
    world.begin("a", producer, ORDERS)
    if state != "ONGOING":
        producer = world.end("a", producer, is_commit=state.endswith("COMMIT"))
    if state.startswith("COMPLETE"):
        world.write_markers()
    assert world.of("a").state is TxnState[state]
    return producer


def check(world: World, asked: Asked[Any], producer: ProducerIdentity, cell: str) -> None:
    if cell == "waits":
        assert asked.answers == []
        world.wait(HELD_MS - 1)
        assert asked.answers == []
        world.wait(1)
        assert error_of(asked) is ErrorCode.CONCURRENT_TRANSACTIONS
        return
    [answer] = asked.answers
    if isinstance(answer, KafkaError):
        assert answer.code is CELLS[cell]
    elif cell == "new":
        assert answer == (world.ids - 1, 0)
    elif cell in ("same", "next"):
        assert answer == (producer.producer_id, producer.epoch + (cell == "next"))
    else:
        assert answer == CELLS[cell]


Question = Callable[[World, ProducerIdentity], Asked[Any]]

INITS: dict[str, tuple[Question, str]] = {
    "nobody": (lambda world, _: world.ask_init("a"), "new next waits waits waits next next"),
    "itself": (
        lambda world, producer: world.ask_init("a", producer),
        "new next waits waits waits next next",
    ),
    "older": (
        lambda world, producer: world.ask_init("a", ProducerIdentity(producer.producer_id, 1)),
        "new fenced fenced fenced fenced fenced fenced",
    ),
    "foreign": (
        lambda world, _: world.ask_init("a", FOREIGN),
        "new fenced fenced fenced fenced fenced fenced",
    ),
}
ADDS: dict[str, tuple[Question, str]] = {
    "itself": (
        lambda world, producer: world.ask_add("a", producer, BILLS),
        "unknown none none waits waits none none",
    ),
    "older": (
        lambda world, producer: world.ask_add("a", ProducerIdentity(producer.producer_id, 1), BILLS),
        "unknown fenced fenced fenced fenced fenced fenced",
    ),
    "foreign": (
        lambda world, _: world.ask_add("a", FOREIGN, BILLS),
        "unknown unknown unknown unknown unknown unknown unknown",
    ),
}
VERIFICATIONS: dict[str, tuple[Question, str]] = {
    "itself": (lambda world, producer: world.ask_verify("a", producer, ORDERS), "unknown out in busy busy out out"),
    "older": (
        lambda world, producer: world.ask_verify("a", ProducerIdentity(producer.producer_id, 1), ORDERS),
        "unknown fenced fenced fenced fenced fenced fenced",
    ),
    "foreign": (
        lambda world, _: world.ask_verify("a", FOREIGN, ORDERS),
        "unknown unknown unknown unknown unknown unknown unknown",
    ),
}


def _end(is_commit: bool, epochs_before: int = 0) -> Question:
    def ask(world: World, producer: ProducerIdentity) -> Asked[Any]:
        asking = ProducerIdentity(producer.producer_id, producer.epoch - epochs_before)
        return world.ask_end("a", asking, is_commit=is_commit)

    return ask


OLD_ENDS: dict[str, tuple[Question, str]] = {
    "commit": (_end(True), "unknown state same waits state same state"),
    "abort": (_end(False), "unknown state same state waits state same"),
    "commit, an epoch before": (_end(True, 1), "unknown fenced fenced fenced fenced fenced fenced"),
    "abort, an epoch before": (_end(False, 1), "unknown fenced fenced fenced fenced fenced fenced"),
    "foreign": (
        lambda world, _: world.ask_end("a", FOREIGN),
        "unknown unknown unknown unknown unknown unknown unknown",
    ),
}
ENDS: dict[str, tuple[Question, str]] = {
    "commit": (_end(True), "unknown state next waits waits state state"),
    "abort": (_end(False), "unknown next next waits waits next next"),
    "commit, an epoch before": (_end(True, 1), "unknown fenced fenced same state same state"),
    "abort, an epoch before": (_end(False, 1), "unknown fenced fenced state same state same"),
    "commit, two before": (_end(True, 2), "unknown fenced fenced fenced fenced fenced fenced"),
    "foreign": (
        lambda world, _: world.ask_end("a", FOREIGN),
        "unknown unknown unknown unknown unknown unknown unknown",
    ),
}


def cells(table: dict[str, tuple[Question, str]]) -> list[Any]:
    return [
        pytest.param(question, state, cell, id=f"{state}-{who}")
        for who, (question, row) in table.items()
        for state, cell in zip(STATES, row.split(), strict=True)
    ]


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize(("question", "state", "cell"), cells(INITS) + cells(ADDS) + cells(VERIFICATIONS))
def test_a_request_is_answered_by_the_state(question: Question, state: str, cell: str, version: int) -> None:
    world = World(version)
    producer = reach(world, state)
    check(world, question(world, producer), producer, cell)


@pytest.mark.parametrize(("question", "state", "cell"), cells(OLD_ENDS))
def test_an_end_before_version_2_is_told_apart_by_the_outcome(question: Question, state: str, cell: str) -> None:
    world = World(0)
    producer = reach(world, state)
    check(world, question(world, producer), producer, cell)


@pytest.mark.parametrize(("question", "state", "cell"), cells(ENDS))
def test_an_end_in_version_2_is_told_apart_by_the_epoch(question: Question, state: str, cell: str) -> None:
    world = World(2)
    producer = reach(world, state)
    check(world, question(world, producer), producer, cell)


@pytest.mark.parametrize(("question", "state", "cell"), cells(ENDS))
def test_a_machine_that_has_loaded_the_log_answers_ends_alike(question: Question, state: str, cell: str) -> None:
    world = World(2)
    producer = reach(world, state)
    world.reload()
    check(world, question(world, producer), producer, cell)


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("is_commit", [True, False])
def test_what_was_held_goes_on_in_order_when_it_is_complete(version: int, is_commit: bool) -> None:
    world = World(version)
    world.begin("a", world.init("a"), ORDERS)
    producer = world.end("a", world.of("a").identity, is_commit=is_commit)
    add = world.ask_add("a", producer, BILLS)
    end = world.ask_end("a", producer, is_commit=True) if version == 2 else None
    init = world.ask_init("a")
    world.write_markers()
    assert add.answer is None
    if end is not None:
        assert end.answer.epoch == producer.epoch + 1
    assert init.answers == [], "it waits for the second one"
    assert world.sent[-1].partitions == {BILLS}
    world.write_markers()
    assert init.answer.epoch == world.of("a").epoch


def test_nothing_is_due_of_an_id_for_which_nobody_waits_any_more() -> None:
    world = World(2)
    producer = reach(world, "PREPARE_COMMIT")
    world.ask_init("a", producer)
    world.write_markers()
    assert world.machine.next_deadline_ms == world.options.transaction_remove_expired_transaction_cleanup_interval_ms


def test_a_request_that_is_held_twice_waits_no_longer_than_one() -> None:
    world = World(0)
    producer = world.init("a")
    world.begin("a", producer)
    world.end("a", producer)
    add, init = world.ask_add("a", producer), world.ask_init("a")
    world.wait(HELD_MS - 1)
    world.write_markers()
    assert add.answer is None
    assert init.answers == []
    world.wait(1)
    assert error_of(init) is ErrorCode.CONCURRENT_TRANSACTIONS


def test_an_error_of_what_was_held_reaches_who_asked_it() -> None:
    world = World(2)
    producer = reach(world, "PREPARE_COMMIT")
    first, second = world.ask_init("a"), world.ask_add("a", producer)
    third = world.ask_init("a")
    world.write_markers()
    assert first.answer.epoch == producer.epoch + 1
    assert error_of(second) is ErrorCode.PRODUCER_FENCED
    assert third.answer.epoch == producer.epoch + 2


def test_a_producer_that_begins_anew_itself_is_not_fenced_by_its_own_abort() -> None:
    world = World(0)
    producer = world.init("a")
    world.begin("a", producer)
    asked = world.ask_init("a", producer)
    assert world.sent[-1].producer.epoch == producer.epoch + 1
    world.write_markers()
    again = asked.answer
    assert again.epoch == producer.epoch + 2, "the epoch of the marker is nobody's: the marker may come twice"
    assert world.init("a", producer) == again, "its answer was lost"
    world.begin("a", again)
    assert error_of(world.ask_init("a", producer)) is ErrorCode.PRODUCER_FENCED


def test_a_zombie_that_asks_for_an_epoch_does_not_abort_its_successor() -> None:
    world = World(2)
    zombie = world.init("a")
    successor = world.init("a")
    world.begin("a", successor)
    assert error_of(world.ask_init("a", zombie)) is ErrorCode.PRODUCER_FENCED
    assert world.of("a").state is TxnState.ONGOING
    assert world.sent == []


def test_a_marker_that_is_reported_twice_does_not_complete_a_later_one() -> None:
    """Without another epoch: version 0, the same partitions and outcome, in the same millisecond."""
    world = World(0)
    producer = world.init("a")
    for _ in range(2):
        world.begin("a", producer)
        world.end("a", producer)
        world.write_markers(world.sent[0])
    assert world.of("a").state is TxnState.PREPARE_COMMIT
    world.write_markers()
    assert world.of("a").state is TxnState.COMPLETE_COMMIT
    world.write_markers()
    assert world.of("a").state is TxnState.COMPLETE_COMMIT


def test_markers_are_sent_for_what_is_committed_alone() -> None:
    world = World(2)
    producer = world.init("a")
    world.begin("a", producer, ORDERS, BILLS)
    world.outbox.is_manual = True
    asked = world.ask_end("a", producer)
    world.outbox.append_all()
    assert world.sent == [] and asked.answers == []
    world.outbox.commit()
    [ending] = world.sent
    assert (ending.producer, ending.is_commit) == (asked.answer, True)
    assert ending.partitions == {ORDERS, BILLS}


def test_an_abort_of_nothing_is_announced_and_completed() -> None:
    world = World(2)
    producer = world.end("a", world.init("a"), is_commit=False)
    assert world.sent[-1].partitions == frozenset()
    assert world.of("a").started_ms == world.now.unix_ms
    world.write_markers()
    assert world.of("a").state is TxnState.COMPLETE_ABORT
    world.begin("a", producer)


def test_ids_without_transactions_are_not_described() -> None:
    world = World(2)
    assert error_of(world.ask_describe("a")) is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    reach(world, "ONGOING")
    assert world.ask_describe("a").answer.partitions == {ORDERS}


@pytest.mark.parametrize("timeout_ms", [-1, 0, 900_001, WITHOUT_TIMEOUT_MS])
def test_a_timeout_out_of_bounds_is_refused(timeout_ms: int) -> None:
    world = World(2)
    asked = world.ask_init("a", timeout_ms=timeout_ms)
    assert error_of(asked) is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert dict(world.machine.transactions) == {}
