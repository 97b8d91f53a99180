"""What a producer does when a broker refuses a sequence, rule by rule, by examples; with bumps, new ids and splits.

`test_idempotence_histories.py` tries the same on a broker.
"""

import pytest

from odradek.client.producer.idempotence.idempotence import EPOCH_MAX, SequenceGap
from odradek.protocol.errors import ErrorCode, Reaction
from tests.client.idempotence_driver import KEY, OTHER, OUT_OF_ORDER, UNKNOWN_ID, Batch, Driver


# -------------------------------------------------------------------------------------------------- refusals
def test_out_of_order_while_an_older_batch_is_under_way_is_only_retried() -> None:
    driver = Driver().begun()
    first, second = driver.sent(10, 10)
    assert driver.refuses(second) is Reaction.RETRY
    driver.is_lost(first)
    assert driver.drains(first)
    driver.succeeds(first)
    assert driver.drains(second)
    assert second.identity == (7, 0, 20)
    assert driver.state.bump_count == 0


def test_out_of_order_next_in_sequence_is_a_gap_at_the_broker() -> None:
    driver = Driver(epoch=2).begun()
    first, second = driver.sent(10, 10)
    assert driver.refuses(first, log_start=55) is Reaction.RETRY
    assert not driver.drains(first), "the second one may be appended at this moment"
    assert driver.refuses(second) is Reaction.RETRY
    assert driver.drains(first)
    assert (first.identity, second.identity) == ((7, 3, 0), (7, 3, 10))
    assert not driver.drains(second)
    driver.succeeds(first)
    assert driver.drains(second)
    assert driver.state.bump_count == 1
    (gap,) = driver.state.take_events()
    assert gap == SequenceGap(*KEY, 7, 2, 10, 9, 109, 55)
    assert driver.state.take_events() == []
    for fact in ("orders-3", "sequence 10", "producer 7", "epoch 2", "acknowledged 9", "offset 109", "begins at 55"):
        assert fact in str(gap)


def test_a_refusal_from_before_the_acknowledgement_is_no_gap() -> None:
    """The second went to another broker, and was refused before the first was appended."""
    driver = Driver().begun()
    first, second = driver.sent(10, 10)
    driver.succeeds(first)
    assert driver.refuses(second) is Reaction.RETRY
    assert driver.drains(second)
    assert second.identity == (7, 0, 20)
    assert driver.state.take_events() == []
    driver.refuses(second)
    assert len(driver.state.take_events()) == 1


def test_a_batch_of_unknown_fate_is_not_renumbered_before_it_is_known() -> None:
    driver = Driver().begun()
    failed, unknown, refused = driver.sent(10, 10, 10)
    driver.fails(failed, ErrorCode.UNKNOWN_SERVER_ERROR, is_certain=True)
    driver.is_lost(unknown)
    driver.refuses(refused)
    assert driver.drains(unknown)
    assert unknown.identity == (7, 0, 20)
    driver.succeeds(unknown)
    assert driver.drains(refused)
    assert refused.identity == (7, 1, 0)


def test_a_refusal_is_forgotten_when_the_batch_is_sent_again() -> None:
    driver = Driver().begun()
    first, second = driver.sent(10, 10)
    driver.refuses(second)
    driver.succeeds(first)
    assert driver.drains(second)
    (third,) = driver.sent(10)
    driver.fails(third, ErrorCode.INVALID_RECORD, is_certain=True)
    driver.is_lost(second)
    assert driver.drains(second)
    assert second.identity == (7, 0, 20)


def test_a_batch_that_a_later_one_has_overtaken_at_the_broker_keeps_its_number() -> None:
    """Under a new epoch it would be appended after that one."""
    driver = Driver().begun()
    first, second = driver.sent(10, 10)
    driver.succeeds(second)
    assert driver.refuses(first) is Reaction.RETRY
    assert driver.drains(first)
    assert first.identity == (7, 0, 10)
    driver.state.expired(KEY, first)
    (new,) = driver.sent(10)
    assert new.identity == (7, 0, 30)
    assert driver.state.take_events() == []


def test_a_refusal_behind_a_batch_that_was_given_up_and_one_that_was_not() -> None:
    driver = Driver().begun()
    first, given_up, later = driver.sent(10, 10, 10)
    driver.state.expired(KEY, given_up)
    driver.refuses(later)
    driver.succeeds(first)
    driver.succeeds(given_up)
    assert driver.drains(later)
    assert later.identity == (7, 0, 30)


@pytest.mark.parametrize("log_start", [0, 500])
def test_an_unknown_producer_id_is_retried_under_a_new_epoch(log_start: int) -> None:
    driver = Driver().begun()
    first, second = driver.sent(10, 10)
    for batch in (first, second):
        assert driver.refuses(batch, UNKNOWN_ID, log_start) is Reaction.RETRY
    assert driver.drains(first)
    assert (first.identity, second.identity) == ((7, 1, 0), (7, 1, 10))
    assert driver.state.bump_count == 1
    assert driver.state.take_events() == []


def test_an_unknown_producer_id_is_only_retried_while_the_log_start_is_unknown() -> None:
    driver = Driver().begun()
    (batch,) = driver.sent(10)
    assert driver.refuses(batch, UNKNOWN_ID, -1) is Reaction.RETRY
    assert driver.drains(batch)
    assert batch.identity == (7, 0, 10)


def test_an_old_epoch_fails_the_batch_and_bumps() -> None:
    driver = Driver().begun()
    (batch,) = driver.sent(10)
    assert driver.refuses(batch, ErrorCode.INVALID_PRODUCER_EPOCH) is Reaction.FAIL
    driver.fails(batch, ErrorCode.INVALID_PRODUCER_EPOCH, is_certain=True)
    (new,) = driver.sent(10)
    assert new.identity == (7, 1, 0)


@pytest.mark.parametrize("code", [OUT_OF_ORDER, UNKNOWN_ID, ErrorCode.INVALID_PRODUCER_EPOCH])
def test_an_error_of_sequences_bumps_even_when_retries_ran_out(code: ErrorCode) -> None:
    driver = Driver().begun()
    failed, later = driver.sent(10, 10)
    driver.fails(failed, code, is_certain=False)
    driver.succeeds(later)
    (new,) = driver.sent(10)
    assert new.identity == (7, 1, 0)


def test_a_batch_that_the_broker_will_not_have_leaves_its_place_to_the_next() -> None:
    driver = Driver().begun()
    (batch,) = driver.sent(10)
    driver.fails(batch, ErrorCode.INVALID_RECORD, is_certain=True)
    (new,) = driver.sent(10)
    assert new.identity == (7, 1, 0)


def test_the_answer_to_a_batch_that_was_given_up_decides_nothing() -> None:
    driver = Driver().begun()
    given_up, middle, given_up_too, later = driver.sent(10, 10, 10, 10)
    for batch in (given_up, given_up_too):
        driver.state.expired(KEY, batch)
        assert driver.refuses(batch) is Reaction.FAIL
        driver.fails(batch, OUT_OF_ORDER, is_certain=True)
    driver.succeeds(middle)
    driver.succeeds(later)
    (new,) = driver.sent(10)
    assert new.identity == (7, 0, 50)


# --------------------------------------------------------------------------------------------------- epochs
def test_other_partitions_go_over_to_the_new_epoch_when_nothing_of_them_is_under_way() -> None:
    driver = Driver().begun().begun(OTHER)
    (elsewhere,) = driver.sent(10, key=OTHER)
    (batch,) = driver.sent(10)
    driver.fails(batch, ErrorCode.INVALID_RECORD, is_certain=True)
    driver.sent(10)
    assert not driver.drains(Batch(), OTHER)
    driver.is_lost(elsewhere)
    assert driver.drains(elsewhere, OTHER)
    assert elsewhere.identity == (7, 0, 10)
    driver.succeeds(elsewhere, key=OTHER)
    (new,) = driver.sent(10, key=OTHER)
    assert new.identity == (7, 1, 0)


def test_partitions_that_need_a_new_epoch_share_one() -> None:
    driver = Driver().begun().begun(OTHER)
    given_up = {key: driver.sent(10, key=key)[0] for key in (KEY, OTHER)}
    for key, batch in given_up.items():
        driver.state.expired(key, batch)
    assert driver.sent(10)[0].identity == (7, 1, 0)
    assert driver.sent(10, key=OTHER)[0].identity == (7, 1, 0)
    assert driver.state.bump_count == 1


def test_after_the_last_epoch_another_producer_id_is_needed() -> None:
    driver = Driver(EPOCH_MAX - 1).begun().begun(OTHER)
    for epoch in (EPOCH_MAX, 0):
        (batch,) = driver.sent(10)
        driver.fails(batch, ErrorCode.INVALID_RECORD, is_certain=True)
        if epoch == 0:
            assert not driver.drains(Batch())
            assert driver.state.needs_producer_id
            assert driver.drains(Batch(), OTHER), "the others go on meanwhile"
            driver.state.set_producer_id(8, 0)
            assert not driver.state.needs_producer_id
        (new,) = driver.sent(10)
        assert new.identity == (7 + (epoch == 0), epoch, 0)
        driver.succeeds(new)
    assert driver.state.bump_count == 2


def test_another_producer_id_waits_until_requests_of_the_last_one_have_landed() -> None:
    """A broker refuses them under a lower epoch, but would append them under an id of their own."""
    driver = Driver(EPOCH_MAX).begun()
    (given_up,) = driver.sent(10)
    driver.state.expired(KEY, given_up)
    assert not driver.drains(Batch())
    assert driver.state.needs_producer_id
    driver.state.set_producer_id(8, 0)
    assert not driver.drains(Batch())
    given_up.in_flight = False
    assert driver.sent(10)[0].identity == (8, 0, 0)


def test_those_that_are_renumbered_close_ranks() -> None:
    driver = Driver().begun()
    first, failed, last = driver.sent(10, 10, 10)
    driver.fails(failed, ErrorCode.INVALID_RECORD, is_certain=True)
    for batch in (first, last):
        driver.refuses(batch)
    assert driver.drains(first)
    assert (first.identity, last.identity) == ((7, 1, 0), (7, 1, 10))


def test_what_was_renumbered_and_not_sent_is_renumbered_again_at_once() -> None:
    driver = Driver().begun()
    first, second, third = driver.sent(10, 10, 10)
    driver.fails(first, ErrorCode.INVALID_RECORD, is_certain=True)
    driver.refuses(second)
    driver.is_lost(third)
    assert driver.drains(second)
    driver.fails(second, ErrorCode.INVALID_RECORD, is_certain=True)
    assert driver.drains(third)
    assert third.identity == (7, 2, 0)


# ---------------------------------------------------------------------------------------------------- splits
def test_parts_take_over_the_sequences_of_the_whole() -> None:
    driver = Driver().begun()
    whole, later = driver.sent(10, 5)
    driver.is_lost(whole)
    parts = [Batch(3), Batch(4), Batch(3)]
    driver.state.split(KEY, whole, parts)
    assert [part.identity for part in parts] == [(7, 0, 10), (7, 0, 13), (7, 0, 17)]
    assert later.identity == (7, 0, 20)
    driver.refuses(later)
    assert not any(driver.drains(batch) for batch in (later, *reversed(parts[1:])))
    for batch in (*parts, later):
        assert driver.drains(batch)
        driver.succeeds(batch)
    assert driver.sent(1)[0].identity == (7, 0, 25)


def test_parts_are_renumbered_with_the_others() -> None:
    driver = Driver().begun()
    failed, whole, later = driver.sent(10, 10, 5)
    driver.fails(failed, ErrorCode.INVALID_RECORD, is_certain=True)
    driver.is_lost(whole)
    parts = [Batch(5), Batch(5)]
    driver.state.split(KEY, whole, parts)
    driver.refuses(later)
    assert driver.drains(parts[0])
    assert [batch.identity for batch in (*parts, later)] == [(7, 1, 0), (7, 1, 5), (7, 1, 10)]
