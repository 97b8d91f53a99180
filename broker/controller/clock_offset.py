"""How far this machine's clock is from the controller's: told, and never acted upon.

Nothing that is promised depends on a clock (docs/guarantees.md). But record timestamps are made by it, and so are the
ends of retention and the answers to questions for a time; who reads logs of several machines believes them, too.

The controller's time comes with its answer to DescribeQuorum, where a leader says that it has "fetched" now
(LeaderState.describeReplicaState). It was taken between question and answer, so half of the time in between is what it
may be wrong by; clocks count as apart only where they are so beyond that. Pure, but for the log.
"""

import logging
from typing import Final

logger = logging.getLogger(__name__)

APART_MS: Final = 1000.0
"""Further apart than that, somebody should look."""


class ClockOffset:
    """The last comparison."""

    __slots__ = ("_is_apart", "offset_ms")

    def __init__(self) -> None:
        self.offset_ms = 0.0
        """By how much this clock is ahead of the controller's; 0.0 where there is nobody to compare with."""
        self._is_apart = False

    def compared(self, controller_id: int, asked_ms: int, round_trip_ms: float, told_ms: int) -> None:
        """Our clock was at `asked_ms` when the controller was asked, and it has told its own after `round_trip_ms`."""
        slack_ms = round_trip_ms / 2
        self.offset_ms = asked_ms + slack_ms - told_ms
        is_apart = abs(self.offset_ms) - slack_ms > APART_MS
        if is_apart and not self._is_apart:
            logger.warning(
                "the clock of this machine is %.1f s %s that of the controller, broker %d: timestamps of records and "
                "the ends of retention follow it; look at both machines' time synchronisation",
                abs(self.offset_ms) / 1000.0,
                "ahead of" if self.offset_ms > 0 else "behind",
                controller_id,
            )
        elif self._is_apart and not is_apart:
            logger.info("the clock of this machine agrees with that of the controller, broker %d, again", controller_id)
        self._is_apart = is_apart

    def alone(self) -> None:
        """This broker is the controller, or there is none."""
        self.offset_ms = 0.0
