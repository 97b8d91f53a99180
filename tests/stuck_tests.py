"""Ends a test process whose test outlives its time limit.

pytest-timeout raises an exception in the test when its limit is over. Asyncio reports one that is raised in a callback
and goes on; and a test that it does end may stand still in what it cleans up. Nothing ended such a run, and nothing
said which test it was. `GRACE_S` after the limit, the stacks of all threads are printed and the process ends;
pytest-xdist says which test it ran.
"""

import faulthandler
from typing import Final, Protocol

import pytest

GRACE_S: Final = 60.0


class TimeLimit(Protocol):
    """What this reads of pytest-timeout's `Settings`."""

    timeout: float | None
    """Seconds."""


class StuckTests:
    """A plugin: what pytest-timeout asks of those who set timers."""

    def __init__(self, stderr: int, grace_s: float = GRACE_S) -> None:
        """`stderr`: a descriptor of the process's own, for pytest takes the standard one while a test runs."""
        self._stderr = stderr
        self._grace_s = grace_s

    @pytest.hookimpl(tryfirst=True)
    def pytest_timeout_set_timer(self, settings: TimeLimit) -> None:
        """None: pytest-timeout sets its own, too."""
        if settings.timeout:
            faulthandler.dump_traceback_later(settings.timeout + self._grace_s, exit=True, file=self._stderr)

    @pytest.hookimpl(tryfirst=True)
    def pytest_timeout_cancel_timer(self) -> None:
        faulthandler.cancel_dump_traceback_later()
