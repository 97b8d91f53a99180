"""What a transactional producer does otherwise: epochs are its coordinator's, and a gap is the end of a transaction."""

import pytest

from odradek.client.producer.idempotence.idempotence import Idempotence
from odradek.protocol.errors import ErrorCode, Reaction
from tests.client.idempotence_driver import KEY, OTHER, UNKNOWN_ID, Batch, Driver


def in_transaction() -> Driver:
    return Driver(in_transactions=True).begun()


def test_it_never_asks_for_a_producer_id_by_itself() -> None:
    state = Idempotence(lambda key: True)
    assert not state.needs_producer_id
    assert not state.may_drain(KEY, Batch())
    state.start_over(7, 0)
    assert state.may_drain(KEY, Batch())


def test_a_batch_waits_until_its_transaction_lets_it_go() -> None:
    driver = in_transaction()
    driver.allowed.remove(OTHER)
    batch = Batch()
    assert not driver.drains(batch, OTHER)
    driver.allowed.add(OTHER)
    assert driver.drains(batch, OTHER)
    driver.is_lost(batch)
    driver.allowed.remove(OTHER)
    assert not driver.drains(batch, OTHER), "nor is one sent again"


def test_a_gap_fails_the_batch_and_no_epoch_is_made_up() -> None:
    driver = in_transaction()
    (batch,) = driver.sent(10)
    assert driver.refuses(batch) is Reaction.FAIL
    driver.fails(batch, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, is_certain=True)
    assert not driver.drains(Batch())
    assert not driver.state.is_settled
    assert (driver.state.bump_count, driver.state.needs_producer_id) == (0, False)


def test_a_batch_that_waits_for_one_before_it_is_sent_again() -> None:
    driver = in_transaction()
    first, second = driver.sent(10, 10)
    assert driver.refuses(second) is Reaction.RETRY
    driver.succeeds(first)
    assert driver.drains(second)


@pytest.mark.parametrize(("log_start", "reaction"), [(5, Reaction.FAIL), (-1, Reaction.RETRY)])
def test_a_forgotten_producer_fails_the_batch_where_the_log_start_is_known(log_start: int, reaction: Reaction) -> None:
    driver = in_transaction()
    (batch,) = driver.sent(10)
    assert driver.refuses(batch, UNKNOWN_ID, log_start) is reaction


def test_a_batch_of_unknown_fate_leaves_the_sequence_open_until_it_is_known() -> None:
    driver = in_transaction()
    (batch,) = driver.sent(10)
    driver.state.expired(KEY, batch)
    assert not driver.state.is_settled
    driver.succeeds(batch)
    driver.state.advance()
    assert driver.state.is_settled


def test_with_another_identity_every_sequence_begins_at_zero() -> None:
    driver = in_transaction()
    (batch,) = driver.sent(10)
    driver.fails(batch, ErrorCode.INVALID_RECORD, is_certain=True)
    driver.state.start_over(7, 1)
    assert driver.state.is_settled
    (fresh,) = driver.sent(10)
    assert fresh.identity == (7, 1, 0)


def test_without_another_identity_sequences_go_on() -> None:
    driver = in_transaction()
    (batch,) = driver.sent(10)
    assert batch.identity == (7, 0, 10)
