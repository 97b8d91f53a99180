"""How the values of a transaction follow one another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.txn.transaction import (
    EPOCH_MAX,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_TIME,
    ProducerIdentity,
    Transaction,
    TxnState,
    created,
)
from odradek.protocol.errors import ErrorCode, KafkaError

NEW_ID = 900
ORDERS, BILLS = ("orders", 0), ("bills", 1)


def empty(epoch: int = 5, last_epoch: int = NO_EPOCH) -> Transaction:
    return created(7, 60_000, 1_000)._replace(epoch=epoch, last_epoch=last_epoch)


def test_states_have_the_names_that_kafka_gives_them() -> None:
    names = ["Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"]
    assert [state.text for state in TxnState] == names
    assert [state.value for state in TxnState] == list(range(6))


def test_a_new_id_begins_with_epoch_0() -> None:
    new = created(7, 60_000, 1_000)
    assert new.identity == (7, 0)
    assert (new.state, new.started_ms, new.updated_ms) == (TxnState.EMPTY, NO_TIME, 1_000)


@pytest.mark.parametrize(
    ("expected", "following", "last_epoch"),
    [
        pytest.param(None, (7, 6), NO_EPOCH, id="a successor"),
        pytest.param(ProducerIdentity(7, 5), (7, 6), 5, id="itself"),
        pytest.param(ProducerIdentity(7, 4), (7, 5), 4, id="itself, again"),
    ],
)
def test_an_epoch_follows_for_who_may_ask(
    expected: ProducerIdentity | None, following: tuple[int, int], last_epoch: int
) -> None:
    new = empty(5, last_epoch=4).initialized(expected, NEW_ID, 30_000, 2_000)
    assert new.identity == following
    assert (new.last_epoch, new.timeout_ms, new.updated_ms) == (last_epoch, 30_000, 2_000)


@pytest.mark.parametrize("expected", [(7, 3), (7, 6), (8, 5), (8, 4), (NO_PRODUCER_ID, 4), (7, NO_EPOCH)])
def test_who_may_not_be_it_is_fenced(expected: tuple[int, int]) -> None:
    for present in (empty(5, last_epoch=4), empty(0), empty(EPOCH_MAX + 1)):
        with pytest.raises(KafkaError) as raised:
            present.initialized(ProducerIdentity(*expected), NEW_ID, 30_000, 2_000)
        assert raised.value.code is ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize(("epoch", "following"), [(EPOCH_MAX - 1, (7, EPOCH_MAX)), (EPOCH_MAX, (NEW_ID, 0))])
def test_the_last_epoch_is_followed_by_another_producer_id(epoch: int, following: tuple[int, int]) -> None:
    present = empty(epoch)
    assert present.initialized(None, NEW_ID, 30_000, 2_000).identity == following
    new = present.initialized(present.identity, NEW_ID, 30_000, 2_000)
    assert new.identity == following
    assert new.previous_producer_id == (NO_PRODUCER_ID if following[0] == 7 else 7)
    again = new.initialized(present.identity, NEW_ID + 1, 30_000, 2_000)
    assert again.identity == following, "its answer was lost"


def test_partitions_are_added_to_the_transaction_that_is_under_way() -> None:
    begun = empty(5, last_epoch=4).including(frozenset([ORDERS]), 2, 2_000)
    assert (begun.state, begun.started_ms, begun.version, begun.last_epoch) == (TxnState.ONGOING, 2_000, 2, NO_EPOCH)
    more = begun.including(frozenset([BILLS]), 0, 3_000)
    assert more.partitions == {ORDERS, BILLS}
    assert (more.started_ms, more.updated_ms, more.version) == (2_000, 3_000, 2)
    complete = more.prepared(is_commit=True, version=2, next_producer_id=NEW_ID, now_ms=4_000).completed(5_000)
    assert complete.including(frozenset([BILLS]), 0, 6_000).partitions == {BILLS}


@pytest.mark.parametrize("is_commit", [True, False])
@pytest.mark.parametrize(("version", "epoch"), [(0, 5), (1, 5), (2, 6)])
def test_an_end_brings_an_epoch_from_version_2_on(is_commit: bool, version: int, epoch: int) -> None:
    begun = empty(5).including(frozenset([ORDERS]), version, 2_000)
    prepared = begun.prepared(is_commit=is_commit, version=version, next_producer_id=NEW_ID, now_ms=3_000)
    assert prepared.state is (TxnState.PREPARE_COMMIT if is_commit else TxnState.PREPARE_ABORT)
    assert prepared.identity == (7, epoch)
    assert prepared.partitions == {ORDERS}
    assert prepared.started_ms == 2_000
    complete = prepared.completed(4_000)
    assert complete.state is (TxnState.COMPLETE_COMMIT if is_commit else TxnState.COMPLETE_ABORT)
    assert complete.identity == (7, epoch)
    assert (complete.partitions, complete.started_ms, complete.next_producer_id) == (frozenset(), 2_000, NO_PRODUCER_ID)


def test_the_last_epoch_ends_with_another_producer_id_when_complete() -> None:
    begun = empty(EPOCH_MAX).including(frozenset([ORDERS]), 2, 2_000)
    prepared = begun.prepared(is_commit=True, version=2, next_producer_id=NEW_ID, now_ms=3_000)
    assert (prepared.producer_id, prepared.epoch) == (7, EPOCH_MAX + 1)
    assert prepared.identity == (NEW_ID, 0)
    complete = prepared.completed(4_000)
    assert (complete.producer_id, complete.epoch, complete.previous_producer_id) == (NEW_ID, 0, 7)
    old = begun.prepared(is_commit=True, version=1, next_producer_id=NEW_ID, now_ms=3_000)
    assert old.completed(4_000).identity == (7, EPOCH_MAX)


def test_aborts_by_others_bring_an_epoch_and_say_by_whom() -> None:
    begun = empty(5).including(frozenset([ORDERS]), 2, 2_000)
    aborted = {"time": begun.timed_out(3_000), "successor": begun.taken_over(3_000), "itself": begun.given_up(3_000)}
    assert {each.identity for each in aborted.values()} == {(7, 6)}
    assert {each.state for each in aborted.values()} == {TxnState.PREPARE_ABORT}
    assert {name: each.version for name, each in aborted.items()} == {"time": 2, "successor": 0, "itself": 2}
    may_go_on = {name: each.may_be(begun.identity) for name, each in aborted.items()}
    assert may_go_on == {"time": False, "successor": False, "itself": True}


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 10)), max_size=30))
def test_times_never_go_back_and_endings_have_their_own(steps: list[tuple[int, int]]) -> None:
    """Whatever the clock does, and whatever happens."""
    present, prepared = created(7, 60_000, 5), [0]
    for action, now_ms in steps:
        former = present
        if present.state.is_prepared:
            present = present.completed(now_ms)
        elif action == 0:
            present = present.initialized(None, NEW_ID, 60_000, now_ms)
        elif present.state is not TxnState.ONGOING or action == 1:
            present = present.including(frozenset([ORDERS]), 0, now_ms)
        elif action == 2:
            present = present.timed_out(now_ms)
        else:
            present = present.prepared(is_commit=True, version=0, next_producer_id=NEW_ID, now_ms=now_ms)
        assert present.updated_ms >= former.updated_ms
        if present.state.is_prepared:
            assert present.updated_ms > prepared[-1]
            prepared.append(present.updated_ms)
