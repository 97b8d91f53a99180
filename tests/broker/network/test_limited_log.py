"""Strangers may make so many lines in a while; how many more there were is told afterwards."""

import logging

import pytest

from odradek.broker.network.limited_log import LINES_MAX, WINDOW_MS, LimitedLog
from odradek.runtime.environment import Environment


class Clock(Environment):
    """Which the test moves."""

    at_ms = 0.0

    def monotonic_ms(self) -> float:
        return self.at_ms


async def test_lines_are_limited_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    log = LimitedLog(logging.getLogger("strangers"), clock)
    for number in range(LINES_MAX + 5):
        log.warning("line %d", number)
    assert [record.getMessage() for record in caplog.records] == [f"line {number}" for number in range(LINES_MAX)]
    log.tick()
    assert len(caplog.records) == LINES_MAX
    clock.at_ms = WINDOW_MS
    log.tick()
    assert caplog.records[-1].getMessage() == "closed 5 more connections before they were authenticated, in 10 s"
    log.warning("again")
    assert caplog.records[-1].getMessage() == "again"
    clock.at_ms = 3 * WINDOW_MS
    log.tick()
    assert caplog.records[-1].getMessage() == "again", "nothing was left out"
