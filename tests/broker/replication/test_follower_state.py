"""What an answer means to a follower: where it cuts its log, how long it waits. Tables, and no logs."""

import pytest

from odradek.broker.replication.follower_state import (
    MOVES,
    RETRY_FIRST_MS,
    UNDER_WAY,
    UNDER_WAY_FAILURES,
    FetchPosition,
    FollowerState,
    Phase,
    Restart,
    Truncate,
    after_out_of_range,
    truncation_offset,
)
from odradek.protocol.errors import ErrorCode, KafkaError

BACKOFF_MS = 1000.0
# Our log: epoch 1 from 0, epoch 3 from 10, epoch 6 from 20, the end at 30.
STARTS = [(1, 0), (3, 10), (6, 20)]
AT = FetchPosition(7, 30, 6, 0)


def own_end(epoch: int) -> tuple[int, int]:
    """The largest of our epochs up to this one, and its end."""
    known = [number for number, _ in STARTS if number <= epoch]
    following = [start for number, start in STARTS if number > epoch]
    return (known[-1] if known else epoch), (following[0] if following else 30)


@pytest.mark.parametrize(
    ("leader_end", "offset"),
    [
        ((6, 25), 25),  # it has our last epoch, and less of it
        ((6, 20), 20),
        ((3, 15), 15),  # it has none of epoch 6, and less of epoch 3 than we
        ((3, 20), 20),
        ((3, 28), 20),  # it has more of epoch 3: that is to be fetched
        ((5, 28), 20),  # we know no epoch 5: what comes before it is compared next
        ((2, 28), 10),
        ((1, 4), 4),
        ((0, 4), 0),  # older than all that we have
        ((0, 0), 0),
    ],
)
def test_where_the_log_is_cut(leader_end: tuple[int, int], offset: int) -> None:
    assert truncation_offset(leader_end, AT, own_end) == offset


@pytest.mark.parametrize("leader_end", [(7, 10), (6, 30), (6, 31), (-1, 10), (3, -1)])
def test_what_no_leader_answers_cuts_nothing(leader_end: tuple[int, int]) -> None:
    with pytest.raises(KafkaError) as caught:
        truncation_offset(leader_end, AT, own_end)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_a_leader_that_has_deleted_our_offset() -> None:
    assert after_out_of_range(AT, 31, 50) == Restart(31)
    assert after_out_of_range(AT, 30, 50) == Restart(30), "all that we have"
    assert after_out_of_range(FetchPosition(7, 0, -1, 0), 31, 50) == Restart(31)


def test_a_leader_that_ends_before_a_log_without_epochs() -> None:
    assert after_out_of_range(FetchPosition(7, 30, -1, 30), 5, 12) == Truncate(12)


@pytest.mark.parametrize(
    ("asked", "start", "end"), [(AT, 5, 12), (AT, 0, 50), (AT, 29, 30), (FetchPosition(7, 30, -1, 30), 0, 30)]
)
def test_records_are_not_thrown_away_for_what_is_not_understood(asked: FetchPosition, start: int, end: int) -> None:
    with pytest.raises(KafkaError) as caught:
        after_out_of_range(asked, start, end)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_the_first_wait_for_metadata_is_short_and_grows() -> None:
    """And nobody is told before there were many of them."""
    state, waits = FollowerState(3), list[float]()
    for number in range(1, 11):
        is_told = state.failed(ErrorCode.NOT_LEADER_OR_FOLLOWER, 50.0, BACKOFF_MS)
        assert is_told is (number == UNDER_WAY_FAILURES)
        waits.append(state.deadline_ms - 50.0)
        state.resume()
    assert waits[:4] == [RETRY_FIRST_MS, 2 * RETRY_FIRST_MS, 4 * RETRY_FIRST_MS, 8 * RETRY_FIRST_MS]
    assert waits[-1] == BACKOFF_MS


@pytest.mark.parametrize(
    "code", [ErrorCode.CORRUPT_MESSAGE, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.UNKNOWN_SERVER_ERROR]
)
def test_what_is_broken_waits_for_the_whole_time(code: ErrorCode) -> None:
    state = FollowerState(3)
    state.failed(code, 50.0, BACKOFF_MS)
    assert (state.phase, state.deadline_ms) == (Phase.WAITING, 50.0 + BACKOFF_MS)
    assert code not in UNDER_WAY


def test_a_good_answer_ends_a_row_of_errors() -> None:
    state = FollowerState(3)
    for _ in range(2):
        told = list[bool]()
        for _ in range(UNDER_WAY_FAILURES + 2):
            told.append(state.failed(ErrorCode.NOT_LEADER_OR_FOLLOWER, 0.0, BACKOFF_MS))
            if len(told) == 1:
                assert state.deadline_ms == RETRY_FIRST_MS
            state.resume()
        assert told == [False] * (UNDER_WAY_FAILURES - 1) + [True, False, False]
        state.appended(12, 10)


def test_what_is_broken_is_told_at_once_whatever_came_before() -> None:
    state = FollowerState(3)
    assert not state.failed(ErrorCode.NOT_LEADER_OR_FOLLOWER, 0.0, BACKOFF_MS)
    state.resume()
    assert state.failed(ErrorCode.KAFKA_STORAGE_ERROR, 0.0, BACKOFF_MS)
    state.resume()
    assert not state.failed(ErrorCode.KAFKA_STORAGE_ERROR, 0.0, BACKOFF_MS)


def test_lag_is_unknown_then_counted() -> None:
    state = FollowerState(3)
    assert (state.lag, state.is_in_sync) == (None, False)
    state.appended(12, 10)
    assert (state.lag, state.is_in_sync) == (2, False)
    state.appended(12, 15)
    assert (state.lag, state.is_in_sync) == (0, True)


def test_no_other_moves_are_made() -> None:
    assert set(MOVES) == set(Phase)
    state = FollowerState(3)
    state.out_of_range()
    with pytest.raises(AssertionError):
        state.out_of_range()
    state.truncated()
    state.throttled(5.0, 7.0)
    assert state.deadline_ms == 12.0
    with pytest.raises(AssertionError):
        state.appended(1, 1)
