"""The batches of a partition follow one another: numbers, the window, retries, and what was given up on the way.

By examples, through the state that the sender uses; `test_idempotence_histories.py` tries the same on a broker.
"""

import pytest

from odradek.client.producer.idempotence.idempotence import Idempotence
from odradek.client.producer.idempotence.sequences import MOVES, SEQUENCE_COUNT, State, incremented
from odradek.protocol.errors import ErrorCode, Reaction
from tests.client.idempotence_driver import KEY, OTHER, Batch, Driver


# ------------------------------------------------------------------------------------------ ids and sequences
def test_nothing_is_drained_without_a_producer_id() -> None:
    state = Idempotence()
    assert not state.has_producer_id
    assert state.needs_producer_id
    assert not state.may_drain(KEY, Batch())
    state.set_producer_id(7, 0)
    assert state.has_producer_id
    assert not state.needs_producer_id
    assert state.may_drain(KEY, Batch())


def test_sequences_follow_one_another_in_each_partition() -> None:
    driver = Driver(epoch=5).begun()
    first, second = driver.sent(3, 4)
    (elsewhere,) = driver.sent(3, key=OTHER)
    assert [batch.identity for batch in (first, second, elsewhere)] == [(7, 5, 10), (7, 5, 13), (7, 5, 0)]


@pytest.mark.parametrize(
    ("sequence", "count", "after"),
    [(0, 5, 5), (SEQUENCE_COUNT - 1, 1, 0), (SEQUENCE_COUNT - 3, 2, SEQUENCE_COUNT - 1), (SEQUENCE_COUNT - 2, 5, 3)],
)
def test_sequences_wrap(sequence: int, count: int, after: int) -> None:
    assert incremented(sequence, count) == after


def test_acknowledgements_are_followed_over_the_wrap() -> None:
    driver = Driver()
    (first,) = driver.sent(SEQUENCE_COUNT - 15)
    driver.succeeds(first)
    across, after = driver.sent(20, 30)
    assert (across.base_sequence, after.base_sequence) == (SEQUENCE_COUNT - 15, 5)
    driver.succeeds(after)
    driver.succeeds(across)
    (last,) = driver.sent(1)
    assert last.base_sequence == 35
    driver.refuses(last)
    (gap,) = driver.state.take_events()
    assert gap.last_acked_sequence == 34


def test_a_retry_changes_nothing() -> None:
    driver = Driver().begun()
    (batch,) = driver.sent(10)
    before = batch.identity
    driver.is_lost(batch)
    assert driver.drains(batch)
    assert batch.identity == before


# ------------------------------------------------------------------------------------------------- one window
def test_one_batch_is_under_way_until_the_first_is_acknowledged() -> None:
    driver = Driver()
    (first,) = driver.sent(10)
    assert not driver.drains(Batch())
    assert driver.drains(Batch(), OTHER)
    driver.succeeds(first)
    driver.sent(10, 10)


def test_five_batches_are_under_way_counted_from_the_oldest() -> None:
    """Those after it that were acknowledged count: the broker remembers them and would forget the oldest."""
    driver = Driver().begun()
    batches = driver.sent(1, 1, 1, 1, 1)
    assert not driver.drains(Batch())
    driver.succeeds(batches[2])
    driver.succeeds(batches[1])
    assert not driver.drains(Batch())
    driver.succeeds(batches[0])
    driver.sent(1, 1, 1)
    assert not driver.drains(Batch())


def test_retries_go_one_at_a_time_lowest_first_and_nothing_new_overtakes_them() -> None:
    driver = Driver().begun()
    first, second, third = driver.sent(1, 1, 1)
    for batch in (first, second, third):
        driver.is_lost(batch)
    assert not driver.drains(second)
    assert not driver.drains(Batch())
    assert driver.drains(first)
    assert not driver.drains(second)
    driver.succeeds(first)
    assert not driver.drains(third)
    assert driver.drains(second)
    driver.succeeds(second)
    assert driver.drains(third)
    assert driver.drains(Batch())


# ------------------------------------------------------------------------------------------------- unresolved
def test_a_batch_expired_in_flight_stops_the_partition_until_a_later_one_succeeds() -> None:
    driver = Driver().begun()
    given_up, later = driver.sent(10, 10)
    driver.state.expired(KEY, given_up)
    assert not driver.drains(Batch())
    driver.succeeds(later)
    (new,) = driver.sent(10)
    assert new.identity == (7, 0, 30)
    assert driver.state.bump_count == 0


def test_without_a_later_one_the_epoch_is_bumped() -> None:
    driver = Driver().begun()
    (given_up,) = driver.sent(10)
    driver.state.expired(KEY, given_up)
    (new,) = driver.sent(10)
    assert new.identity == (7, 1, 0)
    assert driver.state.bump_count == 1
    assert driver.state.take_events() == []


def test_a_late_answer_resolves_what_was_given_up() -> None:
    driver = Driver().begun()
    (given_up,) = driver.sent(10)
    driver.state.expired(KEY, given_up)
    driver.succeeds(given_up)
    (new,) = driver.sent(10)
    assert new.identity == (7, 0, 20)


def test_a_late_answer_under_an_epoch_of_the_past_counts_no_more() -> None:
    driver = Driver().begun()
    (given_up,) = driver.sent(50)
    driver.state.expired(KEY, given_up)
    (new,) = driver.sent(10)
    driver.succeeds(given_up, 500)
    assert not driver.drains(Batch()), "nothing was acknowledged under the new epoch"
    driver.refuses(new)
    (gap,) = driver.state.take_events()
    assert gap.last_acked_sequence == -1


def test_the_batch_after_one_that_was_given_up_shows_the_gap() -> None:
    driver = Driver().begun()
    given_up, later = driver.sent(10, 10)
    driver.state.expired(KEY, given_up)
    assert driver.refuses(later) is Reaction.RETRY
    assert driver.drains(later)
    assert later.identity == (7, 1, 0)
    assert driver.state.take_events() == [], "nothing that was acknowledged is missing"


def test_retries_that_run_out_leave_the_partition_unresolved() -> None:
    driver = Driver().begun()
    failed, later = driver.sent(10, 10)
    driver.fails(failed, ErrorCode.REQUEST_TIMED_OUT, is_certain=False)
    assert not driver.drains(Batch())
    driver.succeeds(later)
    (new,) = driver.sent(10)
    assert new.identity == (7, 0, 30)


def test_a_batch_that_was_never_drained_leaves_nothing_behind() -> None:
    driver = Driver()
    driver.state.expired(KEY, Batch())
    driver.begun()
    driver.state.expired(KEY, Batch())
    (new,) = driver.sent(10)
    assert new.identity == (7, 0, 10)


# ---------------------------------------------------------------------------------------------------- states
def test_every_state_says_where_it_goes() -> None:
    assert MOVES.keys() == set(State)
    assert all(state not in targets and targets for state, targets in MOVES.items())
