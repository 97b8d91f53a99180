"""Waiting for something to become true, in a test: with an end, and with words about what was there instead."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

T = TypeVar("T")

TIMEOUT_S: Final = 10.0
LOOK_EVERY_S: Final = 0.01
_CLOCK: Final = time.CLOCK_MONOTONIC
"""Read by `clock_gettime`, which libraries that freeze a test's clocks leave alone."""


class WaitedInVain(AssertionError):
    """What a test waited for has not come; the text says what there was instead."""


def now_s() -> float:
    """Seconds of a clock that nobody freezes."""
    return time.clock_gettime(_CLOCK)


@dataclass(slots=True)
class _Wait:
    """What was seen so far of a condition. An AssertionError of its own is as good as a value that is not true."""

    message: str
    timeout_s: float
    deadline_s: float
    seen: Any = None
    instead: str = ""

    def note(self, seen: Any) -> bool:
        """Whether this is it."""
        self.seen, self.instead = seen, repr(seen)
        return bool(seen)

    def note_error(self, error: AssertionError) -> None:
        self.instead = str(error) or "an assertion without words"

    def check_time(self) -> None:
        """Raises WaitedInVain."""
        if now_s() >= self.deadline_s:
            raise WaitedInVain(f"{self.message}: not so within {self.timeout_s:g} s; there was: {self.instead}")


async def wait_until(condition: Callable[[], Awaitable[T]], message: str, timeout_s: float = TIMEOUT_S) -> T:
    """Looks again and again until what it gets is true, and returns that. While the condition raises an AssertionError
    it is not yet. `message`: what was waited for. Raises WaitedInVain, and what else the condition raises."""
    wait = _Wait(message, timeout_s, now_s() + timeout_s)
    while True:
        try:
            if wait.note(seen := await condition()):
                return seen
        except AssertionError as error:
            wait.note_error(error)
        wait.check_time()
        await asyncio.sleep(LOOK_EVERY_S)  # between two looks


def wait_in_thread(condition: Callable[[], T], message: str, timeout_s: float = TIMEOUT_S) -> T:
    """As `wait_until`, in a thread that may block."""
    wait = _Wait(message, timeout_s, now_s() + timeout_s)
    while True:
        try:
            if wait.note(seen := condition()):
                return seen
        except AssertionError as error:
            wait.note_error(error)
        wait.check_time()
        time.sleep(LOOK_EVERY_S)  # between two looks
