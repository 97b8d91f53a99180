"""Epochs of a transactional id in a machine: used up, bumped by ends, fenced by time-outs and by successors."""

import pytest

from odradek.broker.txn.machine import HELD_MS
from odradek.broker.txn.transaction import EPOCH_MAX, ProducerIdentity, TopicPartition, Transaction, TxnState
from odradek.protocol.errors import ErrorCode
from tests.broker.txn.kept_outbox import BILLS, ORDERS, START_MS, World, error_of

LAST = ProducerIdentity(7, EPOCH_MAX)


def with_last_epoch(version: int, state: TxnState = TxnState.EMPTY) -> World:
    """A producer has the last epoch of producer id 7."""
    world = World(version)
    partitions: frozenset[TopicPartition] = frozenset([ORDERS]) if state is TxnState.ONGOING else frozenset()
    world.place("a", Transaction(*LAST, 60_000, START_MS, state, partitions, START_MS, version))
    return world


def test_the_last_end_of_a_producer_id_goes_on_with_another_one() -> None:
    world = with_last_epoch(2, TxnState.ONGOING)
    following = world.end("a", LAST)
    assert following == (world.ids - 1, 0)
    assert world.sent[-1].producer == (7, EPOCH_MAX + 1), "markers are of the producer that has written"
    assert (world.of("a").producer_id, world.of("a").next_producer_id) == (7, following.producer_id)
    assert world.end("a", LAST) == following, "before it is complete"
    add = world.ask_add("a", following, BILLS)
    assert error_of(world.ask_add("a", LAST, BILLS)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert error_of(world.ask_verify("a", following)) is ErrorCode.CONCURRENT_TRANSACTIONS
    world.reload()
    add = world.ask_add("a", following, BILLS)
    assert world.end("a", LAST) == following, "by a machine that has loaded it"
    world.write_markers()
    assert add.answer is None
    assert world.of("a").identity == following
    assert error_of(world.ask_end("a", LAST)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING, "the next one is under way"
    assert world.end("a", following) == (following.producer_id, 1)


@pytest.mark.parametrize("is_loaded", [True, False])
def test_the_last_end_of_a_producer_id_is_told_again_when_complete(is_loaded: bool) -> None:
    world = with_last_epoch(2, TxnState.ONGOING)
    following = world.end("a", LAST)
    world.write_markers()
    if is_loaded:
        world.reload()
    assert world.of("a").previous_producer_id == 7
    assert world.end("a", LAST) == following
    assert error_of(world.ask_end("a", LAST, is_commit=False)) is ErrorCode.INVALID_TXN_STATE
    assert error_of(world.ask_end("a", LAST._replace(epoch=5))) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_who_has_got_another_producer_id_may_ask_for_an_epoch_at_once() -> None:
    world = with_last_epoch(2, TxnState.ONGOING)
    following = world.end("a", LAST)
    by_new = world.ask_init("a", following)
    world.write_markers()
    assert by_new.answer == (following.producer_id, 1)


def test_who_has_not_heard_of_its_other_producer_id_may_ask_for_an_epoch() -> None:
    world = with_last_epoch(2, TxnState.ONGOING)
    following = world.end("a", LAST)
    by_old, by_new = world.ask_init("a", LAST), world.ask_init("a", following)
    world.write_markers()
    assert by_old.answer == (following.producer_id, 1)
    assert error_of(by_new) is ErrorCode.PRODUCER_FENCED, "it has been replaced by the question before"


@pytest.mark.parametrize("version", [0, 2])
def test_epochs_that_are_used_up_bring_another_producer_id(version: int) -> None:
    world = with_last_epoch(version)
    following = world.init("a", LAST)
    assert following == (world.ids - 1, 0)
    assert world.init("a", LAST) == following, "it asks again"
    assert world.init("a") == (following.producer_id, 1)
    assert error_of(world.ask_init("a", LAST)) is ErrorCode.PRODUCER_FENCED


def test_a_successor_gets_another_producer_id_where_epochs_are_used_up() -> None:
    world = with_last_epoch(2)
    following = world.init("a")
    assert following == (world.ids - 1, 0)
    assert error_of(world.ask_init("a", LAST)) is ErrorCode.PRODUCER_FENCED, "another one has it"
    assert error_of(world.ask_end("a", LAST)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize("version", [0, 2])
def test_the_epoch_behind_the_last_one_fences_and_is_nobodys(version: int) -> None:
    world = with_last_epoch(version, TxnState.ONGOING)
    init = world.ask_init("a")
    assert world.sent[-1].producer == (7, EPOCH_MAX + 1)
    nobody = ProducerIdentity(7, EPOCH_MAX + 1)
    world.reload()
    assert error_of(world.ask_add("a", nobody)) is ErrorCode.PRODUCER_FENCED
    world.write_markers()
    for asked in (world.ask_add("a", nobody), world.ask_end("a", nobody, is_commit=False), world.ask_init("a", nobody)):
        assert error_of(asked) is ErrorCode.PRODUCER_FENCED
    assert init.answers == [], "its connection is that of the machine before"
    assert world.init("a") == (world.ids - 1, 0)


def test_who_gives_up_its_last_epoch_itself_gets_another_producer_id() -> None:
    world = with_last_epoch(0, TxnState.ONGOING)
    asked = world.ask_init("a", LAST)
    world.write_markers()
    assert asked.answer.epoch == 0
    assert asked.answer.producer_id >= 1_000
    assert world.init("a", LAST) == asked.answer


def test_an_epoch_from_before_another_producer_id_is_not_taken_for_it() -> None:
    """Both producer ids came as far as the last epoch."""
    world = World(0)
    world.place("a", Transaction(8, EPOCH_MAX, 60_000, START_MS, previous_producer_id=7))
    assert error_of(world.ask_init("a", LAST)) is ErrorCode.PRODUCER_FENCED
    assert world.of("a").identity == (8, EPOCH_MAX)


def test_the_epoch_before_the_last_one_is_told_again_as_it_was() -> None:
    world = World(0)
    world.place("a", Transaction(7, EPOCH_MAX - 1, 60_000, START_MS))
    before = world.of("a").identity
    assert world.init("a", before) == LAST
    assert world.init("a", before) == LAST


def test_no_epoch_is_not_taken_for_the_one_before() -> None:
    world = World(2)
    producer = world.init("a")
    assert error_of(world.ask_init("a", producer._replace(epoch=-1))) is ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("is_loaded", [True, False])
@pytest.mark.parametrize("is_commit", [True, False])
def test_who_is_replaced_in_a_transaction_stays_fenced(version: int, is_loaded: bool, is_commit: bool) -> None:
    """Before and after the abort is complete; an abort of its own is not taken for the one of its successor."""
    world = World(version)
    zombie = world.init("a")
    world.begin("a", zombie)
    successor = world.ask_init("a")
    if is_loaded:
        world.reload()
    for _ in range(2):
        for asked in (
            world.ask_end("a", zombie, is_commit=is_commit),
            world.ask_add("a", zombie),
            world.ask_verify("a", zombie),
            world.ask_init("a", zombie),
        ):
            assert error_of(asked) is ErrorCode.PRODUCER_FENCED
        if world.of("a").state is TxnState.PREPARE_ABORT:
            world.write_markers()
    if not is_loaded:
        assert successor.answer == (zombie.producer_id, zombie.epoch + 2)


@pytest.mark.parametrize("is_loaded", [True, False])
def test_in_version_2_who_aborts_what_has_timed_out_may_go_on(is_loaded: bool) -> None:
    """As in Kafka: its record cannot tell the two aborts apart, and nobody else has that epoch."""
    world = World(2)
    producer = world.init("a")
    world.begin("a", producer)
    world.wait(60_000)
    world.write_markers()
    if is_loaded:
        world.reload()
    assert error_of(world.ask_end("a", producer)) is ErrorCode.INVALID_TXN_STATE
    assert error_of(world.ask_init("a", producer)) is ErrorCode.PRODUCER_FENCED
    following = world.end("a", producer, is_commit=False)
    assert following == (producer.producer_id, producer.epoch + 1)
    world.begin("a", following)
    successor = world.ask_init("a")
    world.write_markers()
    assert successor.answer.epoch == following.epoch + 2
    assert error_of(world.ask_end("a", following, is_commit=False)) is ErrorCode.PRODUCER_FENCED


def test_who_has_timed_out_with_the_last_epoch_is_fenced() -> None:
    """The epoch behind it is nobody's."""
    world = with_last_epoch(2, TxnState.ONGOING)
    world.wait(70_000)
    assert world.of("a").identity == (7, EPOCH_MAX + 1)
    assert error_of(world.ask_end("a", LAST, is_commit=False)) is ErrorCode.PRODUCER_FENCED


def test_before_version_2_who_has_timed_out_is_fenced() -> None:
    world = World(0)
    producer = world.init("a")
    world.begin("a", producer)
    world.wait(60_000)
    for _ in range(2):
        for is_commit in (True, False):
            assert error_of(world.ask_end("a", producer, is_commit=is_commit)) is ErrorCode.PRODUCER_FENCED
        world.write_markers()


def test_of_two_successors_the_last_one_stays() -> None:
    world = World(2)
    world.begin("a", world.init("a"))
    first, second = world.ask_init("a"), world.ask_init("a")
    world.wait(HELD_MS - 1)
    world.write_markers()
    assert second.answer.epoch == first.answer.epoch + 1
    assert error_of(world.ask_add("a", first.answer)) is ErrorCode.PRODUCER_FENCED


# -- another transaction version is finalized meanwhile ---------------------------------------------------------------


@pytest.mark.parametrize("is_complete", [True, False])
@pytest.mark.parametrize("epoch", [5, EPOCH_MAX])
def test_what_was_begun_under_version_2_ends_under_it_by_another_machine_too(epoch: int, is_complete: bool) -> None:
    """Version 0 is finalized when it ends, and the answer is lost with the coordinator."""
    world, producer = World(2), ProducerIdentity(7, epoch)
    world.place("a", Transaction(*producer, 60_000, START_MS, TxnState.ONGOING, frozenset([ORDERS]), START_MS, 2))
    world.options.stored_version = 0
    following = world.end("a", producer)
    if is_complete:
        world.write_markers()
    world.reload()
    assert world.end("a", producer) == following
    if not is_complete:
        assert world.sent[-1].version == 2, "its markers are those of version 2"
        world.write_markers()
    assert world.of("a").identity == following


def test_what_is_begun_under_version_0_ends_under_it_where_2_is_finalized_meanwhile() -> None:
    world, producer = World(0), ProducerIdentity(7, 5)
    world.options.stored_version = 0
    world.place("a", Transaction(*producer, 60_000, START_MS, TxnState.ONGOING, frozenset([ORDERS]), START_MS, 0))
    world.options.stored_version = 1
    world.reload()
    assert world.end("a", producer) == producer
    assert world.sent[-1].version == 0
    world.write_markers()
    assert world.of("a").identity == producer
