"""Counts of authentications by bounded labels, and a log that failures cannot fill."""

import logging

import pytest

from odradek.broker.authentication.failures import LINE_MS, LINES_TOGETHER, OTHER, AuthenticationCounts, LineBudget


def test_labels_are_names_that_are_known() -> None:
    counts = AuthenticationCounts(0.0)
    for number in range(1000):
        counts.failed("OUTSIDE", f"made up {number}", again=False)
    counts.failed("OUTSIDE", "PLAIN", again=True)
    counts.succeeded("OUTSIDE", "PLAIN", again=False)
    counts.succeeded("OUTSIDE", "PLAIN", again=True)
    assert counts.failures == {("OUTSIDE", OTHER): 1000}
    assert counts.failed_renewals == counts.successes == counts.renewals == {("OUTSIDE", "PLAIN"): 1}


def test_lines_come_together_and_then_one_a_second() -> None:
    budget = LineBudget(0.0)
    taken = [budget.takes(0.0) for _ in range(LINES_TOGETHER + 5)]
    assert taken == [True] * LINES_TOGETHER + [False] * 5
    assert budget.left_out == 5
    assert [budget.takes(now_ms) for now_ms in (LINE_MS / 2, LINE_MS, LINE_MS, 2 * LINE_MS)] == [
        False,
        True,
        False,
        True,
    ]
    taken = [budget.takes(1e9) for _ in range(LINES_TOGETHER + 1)]
    assert taken == [True] * LINES_TOGETHER + [False], "what was not used is not saved up for ever"
    assert not budget.takes(0.0), "nor does a clock that goes back give anything"


def test_a_line_names_peer_listener_mechanism_and_user(caplog: pytest.LogCaptureFixture) -> None:
    counts = AuthenticationCounts(0.0)
    with caplog.at_level(logging.WARNING):
        counts.tell(0.0, "192.0.2.1:1", "OUTSIDE", "PLAIN", "alice\nERROR", "no such user with this password")
        counts.tell(0.0, "192.0.2.1:1", "OUTSIDE", "X\n" * 1000, "", "not offered")
        for _ in range(LINES_TOGETHER + 3):
            counts.tell(0.0, "192.0.2.1:1", "OUTSIDE", "PLAIN", "bob", "why")
        counts.tell(LINE_MS, "192.0.2.1:2", "OUTSIDE", "PLAIN", "bob", "why")
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == LINES_TOGETHER + 1
    assert lines[0] == (
        "authentication failed: 192.0.2.1:1 on listener OUTSIDE by PLAIN as 'alice\\nERROR': "
        "no such user with this password"
    )
    assert lines[1].endswith("X\\nX\\n'... (2000 characters): not offered")
    assert lines[-1].endswith("by PLAIN as 'bob': why (5 more were not told)")
    assert not any("\n" in line for line in lines)
