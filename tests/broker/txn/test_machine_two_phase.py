"""Transactions of two phases (KIP-939): no time-out ends them, and a successor keeps what is under way, and ends it."""

import pytest

from odradek.broker.txn.transaction import (
    EPOCH_MAX,
    WITHOUT_TIMEOUT_MS,
    ProducerIdentity,
    Transaction,
    TxnState,
)
from odradek.protocol.errors import ErrorCode
from tests.broker.txn.kept_outbox import BILLS, DAY_MS, ORDERS, START_MS, World, error_of

VERSIONS = [0, 2]


def two_phase_world(version: int = 2) -> World:
    world = World(version)
    world.options.transaction_two_phase_commit_enable = True
    return world


def begun(world: World) -> ProducerIdentity:
    """A transaction of orders is under way."""
    producer = world.ask_init("a", is_two_phase=True).answer
    world.begin("a", producer, ORDERS)
    return producer


def begun_with(epoch: int, version: int = 2) -> World:
    """By producer id 7."""
    world = two_phase_world(version)
    partitions = frozenset([ORDERS])
    world.place(
        "a", Transaction(7, epoch, WITHOUT_TIMEOUT_MS, START_MS, TxnState.ONGOING, partitions, START_MS, version)
    )
    return world


def test_two_phases_are_refused_unless_they_are_enabled() -> None:
    world = World(2)
    assert error_of(world.ask_init("a", is_two_phase=True)) is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert error_of(world.ask_keep("a")) is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    keep_alone = world.ask_keep("a", is_two_phase=False)
    assert error_of(keep_alone) is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    world.options.transaction_two_phase_commit_enable = True
    assert world.ask_init("a", is_two_phase=True).answer.epoch == 0


def test_a_transaction_in_two_phases_never_ends_by_time() -> None:
    world = two_phase_world()
    producer = begun(world)
    world.wait(30 * DAY_MS)
    world.reload()
    world.wait(30 * DAY_MS)
    assert world.of("a").state is TxnState.ONGOING
    assert world.end("a", producer).epoch == 1


def test_a_producer_of_one_phase_has_its_timeout_beside_them() -> None:
    world = two_phase_world()
    world.begin("a", world.init("a"))
    world.wait(60_000)
    assert world.of("a").state is TxnState.PREPARE_ABORT


def test_a_successor_that_does_not_keep_it_aborts_it() -> None:
    """So does an operator, by the same request."""
    world = two_phase_world()
    producer = begun(world)
    successor = world.ask_init("a")
    [ending] = world.sent
    assert (ending.is_commit, ending.partitions) == (False, frozenset([ORDERS]))
    world.write_markers()
    assert successor.answer == (producer.producer_id, producer.epoch + 2)
    assert not world.of("a").is_two_phase


# -- kept -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["absent", "EMPTY", "COMPLETE_COMMIT"])
def test_where_nothing_is_under_way_nothing_is_kept(state: str) -> None:
    world = two_phase_world()
    epoch = 0
    if state != "absent":
        producer = world.init("a")
        if state == "COMPLETE_COMMIT":
            world.begin("a", producer)
            producer = world.end("a", producer)
            world.write_markers()
        epoch = producer.epoch + 1
    identity, ongoing = world.ask_keep("a").answer
    assert (identity.epoch, ongoing) == (epoch, None)
    assert world.of("a").state is TxnState.EMPTY


def test_what_is_decided_is_waited_for() -> None:
    world = two_phase_world()
    producer = world.end("a", begun(world))
    kept = world.ask_keep("a")
    assert kept.answers == []
    world.write_markers()
    assert kept.answer == ((producer.producer_id, producer.epoch + 1), None)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("is_commit", [True, False])
@pytest.mark.parametrize("is_loaded", [True, False])
def test_a_successor_ends_what_it_has_kept(version: int, is_commit: bool, is_loaded: bool) -> None:
    world = two_phase_world(version)
    producer = begun(world)
    identity, ongoing = world.ask_keep("a").answer
    assert (identity, ongoing) == ((producer.producer_id, producer.epoch + 1), producer)
    assert world.of("a").state is TxnState.ONGOING
    if is_loaded:
        world.reload()
    following = world.end("a", identity, is_commit=is_commit)
    ending = world.sent[-1]
    assert ending.producer == (producer.producer_id, producer.epoch + (version == 2)), "whose batches it ends"
    assert (ending.is_commit, ending.partitions) == (is_commit, frozenset([ORDERS]))
    assert following == (identity.producer_id, identity.epoch + (version == 2))
    if is_loaded:
        world.reload()
    if version == 2:
        assert world.end("a", identity, is_commit=is_commit) == following, "its answer was lost"
    world.write_markers()
    if is_loaded:
        world.reload()
    assert world.end("a", identity, is_commit=is_commit) == following, "again, when it is complete"
    assert error_of(world.ask_end("a", identity, is_commit=not is_commit)) is ErrorCode.INVALID_TXN_STATE
    world.begin("a", following, BILLS)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_producer_before_is_fenced(version: int) -> None:
    world = two_phase_world(version)
    producer = begun(world)
    world.ask_keep("a")
    for asked in (
        world.ask_end("a", producer),
        world.ask_end("a", producer, is_commit=False),
        world.ask_add("a", producer),
        world.ask_verify("a", producer),
        world.ask_init("a", producer),
        world.ask_keep("a", producer),
    ):
        assert error_of(asked) is ErrorCode.PRODUCER_FENCED
    assert world.of("a").state is TxnState.ONGOING


@pytest.mark.parametrize("version", VERSIONS)
def test_a_successor_writes_nothing_into_what_it_has_kept(version: int) -> None:
    """Its batches would have another epoch than the marker."""
    world = two_phase_world(version)
    begun(world)
    identity, _ = world.ask_keep("a").answer
    for asked in (world.ask_add("a", identity, BILLS), world.ask_add("a", identity), world.ask_verify("a", identity)):
        assert error_of(asked) is ErrorCode.INVALID_TXN_STATE
    assert world.of("a").partitions == {ORDERS}


def test_each_successor_fences_the_one_before() -> None:
    world = two_phase_world()
    producer = begun(world)
    first, second = world.ask_keep("a").answer, world.ask_keep("a").answer
    assert first.ongoing == second.ongoing == producer
    assert second.identity == (first.identity.producer_id, first.identity.epoch + 1)
    assert error_of(world.ask_end("a", first.identity)) is ErrorCode.PRODUCER_FENCED
    assert world.end("a", second.identity).epoch == second.identity.epoch + 1


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("brings", [True, False])
def test_what_was_kept_is_aborted_by_the_next_that_keeps_nothing(version: int, brings: bool) -> None:
    world = two_phase_world(version)
    producer = begun(world)
    identity, _ = world.ask_keep("a").answer
    successor = world.ask_init("a", identity if brings else None)
    ending = world.sent[-1]
    assert (ending.producer, ending.is_commit) == ((producer.producer_id, producer.epoch + 1), False)
    for _ in range(2):
        assert error_of(world.ask_end("a", identity)) in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_TXN_STATE)
        world.write_markers()
    assert successor.answer == (identity.producer_id, identity.epoch + 2)


def test_a_kept_transaction_of_one_phase_has_the_longer_timeout() -> None:
    world = two_phase_world()
    world.begin("a", world.init("a"))
    identity, _ = world.ask_keep("a", timeout_ms=90_000, is_two_phase=False).answer
    assert world.ask_keep("a", timeout_ms=30_000, is_two_phase=False).answer.identity.epoch == identity.epoch + 1
    world.wait(89_999)
    assert world.of("a").state is TxnState.ONGOING
    world.wait(1)
    assert world.of("a").state is TxnState.PREPARE_ABORT
    world.write_markers()
    assert world.of("a").identity == (identity.producer_id, identity.epoch + 2), "who kept it is fenced, too"


def test_keeping_does_not_give_two_phases_a_timeout() -> None:
    world = two_phase_world()
    begun(world)
    world.ask_keep("a", is_two_phase=False)
    world.wait(30 * DAY_MS)
    assert world.of("a").state is TxnState.ONGOING


def test_a_timeout_out_of_bounds_is_refused_where_something_is_kept_too() -> None:
    world = two_phase_world()
    begun(world)
    before = world.of("a")
    asked = world.ask_keep("a", timeout_ms=900_001, is_two_phase=False)
    assert error_of(asked) is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert world.of("a") == before


def test_nothing_is_kept_where_the_log_could_not_say_so() -> None:
    """Values of version 0 have no fields for it."""
    world = two_phase_world(0)
    world.options.stored_version = 0
    begun(world)
    assert error_of(world.ask_keep("a")) is ErrorCode.UNSUPPORTED_VERSION
    assert error_of(world.ask_end("a", world.of("a").identity)) is None


def test_a_refused_record_of_a_successor_fences_nobody() -> None:
    world = two_phase_world()
    producer = begun(world)
    world.outbox.is_manual = True
    kept = world.ask_keep("a")
    world.outbox.append_all(refused={0})
    assert error_of(kept) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.outbox.is_manual = False
    assert world.end("a", producer).epoch == producer.epoch + 1


# -- epochs that are used up ------------------------------------------------------------------------------------------


def test_a_successor_gets_another_producer_id_where_epochs_are_used_up() -> None:
    world = begun_with(EPOCH_MAX)
    identity, ongoing = world.ask_keep("a").answer
    assert (identity, ongoing) == ((world.ids - 1, 0), (7, EPOCH_MAX))
    world.reload()
    assert error_of(world.ask_end("a", ProducerIdentity(7, EPOCH_MAX))) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert world.end("a", identity) == (identity.producer_id, 1)
    assert world.sent[-1].producer == (7, EPOCH_MAX + 1)
    world.write_markers()
    assert world.end("a", identity) == (identity.producer_id, 1)


@pytest.mark.parametrize("is_loaded", [True, False])
def test_the_end_of_a_kept_one_may_use_up_the_epochs(is_loaded: bool) -> None:
    world = begun_with(EPOCH_MAX - 1)
    identity, _ = world.ask_keep("a").answer
    assert identity == (7, EPOCH_MAX)
    following = world.end("a", identity)
    assert following == (world.ids - 1, 0)
    assert world.sent[-1].producer == (7, EPOCH_MAX)
    for _ in range(2):
        if is_loaded:
            world.reload()
        assert world.end("a", identity) == following
        if world.of("a").state.is_prepared:
            world.write_markers()
    assert world.of("a").identity == following


@pytest.mark.parametrize("is_loaded", [True, False])
def test_three_producer_ids_are_told_apart(is_loaded: bool) -> None:
    """Of who has written, of who ends it, and of what follows."""
    world = begun_with(EPOCH_MAX)
    identity, _ = world.ask_keep("a").answer
    world.place("a", world.of("a")._replace(next_epoch=EPOCH_MAX))
    last = identity._replace(epoch=EPOCH_MAX)
    following = world.end("a", last)
    assert following == (world.ids - 1, 0)
    assert world.sent[-1].producer == (7, EPOCH_MAX + 1)
    for _ in range(2):
        if is_loaded:
            world.reload()
        assert world.end("a", last) == following
        assert error_of(world.ask_end("a", ProducerIdentity(7, EPOCH_MAX))) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if world.of("a").state.is_prepared:
            world.write_markers()
    assert world.of("a").previous_producer_id == identity.producer_id
    again = world.ask_init("a", last) if not is_loaded else world.ask_init("a", following)
    assert again.answer == (following.producer_id, 1)


def test_an_abort_of_a_kept_one_with_the_last_epoch_brings_another_producer_id() -> None:
    world = begun_with(EPOCH_MAX - 1)
    identity, _ = world.ask_keep("a").answer
    successor = world.ask_init("a")
    world.write_markers()
    assert identity == (7, EPOCH_MAX)
    assert successor.answer.epoch == 0
    assert successor.answer.producer_id >= 1_000
