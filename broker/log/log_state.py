"""Whether a log takes appends, and what it takes to have it take them again. Pure.

| state | appends | until |
|---|---|---|
| OPEN | taken | |
| HALF_CUT: a truncation failed half-way | refused | a truncation succeeds; at the log's end will do |
| GIVEN_UP: a sync failed, or a compacted segment is half in its place | refused | the next start has looked at it |
| GIVEN_UP_HALF_CUT: both | refused | the next start; the truncation can be completed before |
| CLOSED | refused | |

A log that is not open is read all the same.
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final


class LogState(Enum):
    OPEN = auto()
    HALF_CUT = auto()
    GIVEN_UP = auto()
    GIVEN_UP_HALF_CUT = auto()
    CLOSED = auto()


class LogEvent(Enum):
    CUT_BEGINS = auto()
    CUT_ENDS = auto()
    FAILS = auto()
    """What the files hold is in doubt."""
    CLOSES = auto()


MOVES: Final[Mapping[tuple[LogState, LogEvent], LogState]] = {
    (LogState.OPEN, LogEvent.CUT_BEGINS): LogState.HALF_CUT,
    (LogState.OPEN, LogEvent.FAILS): LogState.GIVEN_UP,
    (LogState.HALF_CUT, LogEvent.CUT_BEGINS): LogState.HALF_CUT,
    (LogState.HALF_CUT, LogEvent.CUT_ENDS): LogState.OPEN,
    (LogState.HALF_CUT, LogEvent.FAILS): LogState.GIVEN_UP_HALF_CUT,
    (LogState.GIVEN_UP, LogEvent.CUT_BEGINS): LogState.GIVEN_UP_HALF_CUT,
    (LogState.GIVEN_UP, LogEvent.FAILS): LogState.GIVEN_UP,
    (LogState.GIVEN_UP_HALF_CUT, LogEvent.CUT_BEGINS): LogState.GIVEN_UP_HALF_CUT,
    (LogState.GIVEN_UP_HALF_CUT, LogEvent.CUT_ENDS): LogState.GIVEN_UP,
    (LogState.GIVEN_UP_HALF_CUT, LogEvent.FAILS): LogState.GIVEN_UP_HALF_CUT,
    (LogState.CLOSED, LogEvent.FAILS): LogState.CLOSED,  # a sync that was under way
} | {(state, LogEvent.CLOSES): LogState.CLOSED for state in LogState}
"""Any other event is a mistake of whoever reports it."""

HALF_CUT: Final = frozenset({LogState.HALF_CUT, LogState.GIVEN_UP_HALF_CUT})
GIVEN_UP: Final = frozenset({LogState.GIVEN_UP, LogState.GIVEN_UP_HALF_CUT})


class LogCondition:
    """The state of one log, and why it was given up."""

    __slots__ = ("is_open", "state", "why_given_up")

    def __init__(self) -> None:
        self.state = LogState.OPEN
        self.is_open = True
        """Looked at in each append, and so not looked up."""
        self.why_given_up = ""

    def move(self, event: LogEvent) -> None:
        self.state = MOVES[self.state, event]
        self.is_open = self.state is LogState.OPEN

    def fail(self, why: str) -> None:
        """The first reason stays."""
        self.move(LogEvent.FAILS)
        self.why_given_up = self.why_given_up or why

    @property
    def is_half_cut(self) -> bool:
        return self.state in HALF_CUT

    @property
    def is_given_up(self) -> bool:
        return self.state in GIVEN_UP

    @property
    def refusal(self) -> str:
        """Why appends are refused; empty where they are not."""
        match self.state:
            case LogState.OPEN:
                return ""
            case LogState.HALF_CUT:
                return "a truncation has not been completed"
            case LogState.CLOSED:
                return "the log is closed"
            case LogState.GIVEN_UP | LogState.GIVEN_UP_HALF_CUT:
                return self.why_given_up
