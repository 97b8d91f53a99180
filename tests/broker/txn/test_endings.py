"""Which EndTxn asks for an end that has been decided already."""

import pytest

from odradek.broker.txn.endings import ended, ending_of, is_repeated
from odradek.broker.txn.requests import Ending, EndTransaction
from odradek.broker.txn.transaction import EPOCH_MAX, NO_PRODUCER_ID, ProducerIdentity, Transaction, TxnState
from odradek.protocol.errors import ErrorCode, KafkaError

ENDED = [TxnState.PREPARE_COMMIT, TxnState.PREPARE_ABORT, TxnState.COMPLETE_COMMIT, TxnState.COMPLETE_ABORT]


def present(state: TxnState, producer_id: int = 7, epoch: int = 5, version: int = 2, previous: int = 6) -> Transaction:
    return Transaction(
        producer_id, epoch, 60_000, 2_000, state, frozenset([("orders", 0)]), 1_000, version, 4, previous
    )


def request(producer_id: int = 7, epoch: int = 4, *, is_commit: bool = True, version: int = 2) -> EndTransaction:
    return EndTransaction("a", ProducerIdentity(producer_id, epoch), is_commit, version, 900)


@pytest.mark.parametrize("state", TxnState)
def test_the_epoch_before_repeats_where_something_has_ended(state: TxnState) -> None:
    assert is_repeated(present(state), request()) is (state in ENDED)
    for epoch in (2, 3, 5, 6, EPOCH_MAX):
        assert not is_repeated(present(state), request(epoch=epoch))
    assert not is_repeated(present(state), request(producer_id=8))


@pytest.mark.parametrize("state", TxnState)
@pytest.mark.parametrize(("present_version", "version"), [(0, 2), (1, 2), (2, 0), (2, 1)])
def test_before_version_2_no_epoch_repeats(state: TxnState, present_version: int, version: int) -> None:
    assert not is_repeated(present(state, version=present_version), request(version=version))


def test_the_last_of_the_producer_id_before_repeats_while_nothing_has_followed() -> None:
    for epoch, is_first in ((0, True), (1, False)):
        following = present(TxnState.COMPLETE_COMMIT, epoch=epoch)
        assert is_repeated(following, request(6, EPOCH_MAX)) is is_first
        assert not is_repeated(following, request(6, EPOCH_MAX - 1))
        assert not is_repeated(following, request(8, EPOCH_MAX))
    assert not is_repeated(
        present(TxnState.COMPLETE_COMMIT, epoch=0, previous=NO_PRODUCER_ID), request(NO_PRODUCER_ID, 4)
    )


@pytest.mark.parametrize("state", TxnState)
@pytest.mark.parametrize("is_commit", [True, False])
def test_the_outcome_has_to_be_the_one_that_was_decided(state: TxnState, is_commit: bool) -> None:
    wanted = request(is_commit=is_commit)
    if state.name.endswith("COMMIT" if is_commit else "ABORT"):
        assert ended(present(state), wanted) == (7, 5)
        return
    with pytest.raises(KafkaError) as raised:
        ended(present(state), wanted)
    assert raised.value.code is ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize("is_commit", [True, False])
def test_partitions_are_told_what_the_record_says(is_commit: bool) -> None:
    prepared = present(TxnState.PREPARE_COMMIT if is_commit else TxnState.PREPARE_ABORT)
    ending = ending_of("a", prepared._replace(next_producer_id=900))
    assert ending == Ending("a", ProducerIdentity(7, 5), is_commit, frozenset([("orders", 0)]), 2, 2_000)
