"""`LogCondition`: each state refuses appends until what ends it, and forgets nothing that is still so."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.log.log_state import MOVES, LogCondition, LogEvent, LogState


def test_an_open_log_refuses_nothing_and_each_other_state_says_why() -> None:
    condition = LogCondition()
    assert (condition.is_open, condition.refusal) == (True, "")
    condition.move(LogEvent.CUT_BEGINS)
    assert condition.refusal == "a truncation has not been completed"
    condition.fail("the device is gone")
    condition.fail("and so is the next")
    assert condition.refusal == "the device is gone"
    condition.move(LogEvent.CLOSES)
    assert condition.refusal == "the log is closed"


@given(st.lists(st.sampled_from(LogEvent)))
def test_a_half_done_cut_and_a_failure_are_each_known_until_what_ends_them(events: list[LogEvent]) -> None:
    condition, is_cut, has_failed = LogCondition(), False, False
    for event in events:
        if (condition.state, event) not in MOVES:
            with pytest.raises(KeyError):
                condition.move(event)
            continue
        condition.move(event)
        is_cut = event is LogEvent.CUT_BEGINS or (is_cut and event is not LogEvent.CUT_ENDS)
        has_failed |= event is LogEvent.FAILS
        if condition.state is LogState.CLOSED:
            return
        assert (condition.is_half_cut, condition.is_given_up) == (is_cut, has_failed)
        assert condition.is_open == (not is_cut and not has_failed)


def test_a_cut_ends_only_where_one_has_begun() -> None:
    assert {state for state, event in MOVES if event is LogEvent.CUT_ENDS} == {
        LogState.HALF_CUT,
        LogState.GIVEN_UP_HALF_CUT,
    }
