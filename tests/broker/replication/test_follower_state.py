"""What an answer means to a follower: what it does next, and how long it waits. Tables, and no logs."""

import pytest

from odradek.broker.replication.follower_state import (
    MOVES,
    RETRY_FIRST_MS,
    UNDER_WAY,
    UNDER_WAY_FAILURES,
    FollowerState,
    Phase,
)
from odradek.protocol.errors import ErrorCode

BACKOFF_MS = 1000.0


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
