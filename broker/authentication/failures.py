"""How authentication went: counted by listener and mechanism, and failures told in the log, but not without end.

Labels are names from the configuration: a mechanism that a client has made up counts as `OTHER`. The log takes
`LINES_TOGETHER` lines at once and one a second from then on; how many were left out is said with the next one.
"""

import logging
from collections import Counter
from typing import Final

from odradek.broker.authentication.shown import shown
from odradek.broker.config.sasl_options import MECHANISMS

logger = logging.getLogger(__name__)

OTHER: Final = "other"
LINES_TOGETHER: Final = 20
LINE_MS: Final = 1_000.0

Key = tuple[str, str]
"""Listener and mechanism."""


class LineBudget:
    """How many lines may be written: so many at once, and one more after each `LINE_MS`. Pure."""

    __slots__ = ("_lines", "_since_ms", "left_out")

    def __init__(self, now_ms: float) -> None:
        self._lines = float(LINES_TOGETHER)
        self._since_ms = now_ms
        self.left_out = 0
        """Lines since the last one that was written."""

    def takes(self, now_ms: float) -> bool:
        self._lines = min(LINES_TOGETHER, self._lines + max(0.0, now_ms - self._since_ms) / LINE_MS)
        self._since_ms = now_ms
        if self._lines < 1.0:
            self.left_out += 1
            return False
        self._lines -= 1.0
        return True


class AuthenticationCounts:
    """Of one broker. Changed by the event loop's thread alone."""

    def __init__(self, now_ms: float) -> None:
        self.successes = Counter[Key]()
        self.failures = Counter[Key]()
        self.renewals = Counter[Key]()
        """Authentications of connections that were authenticated before (KIP-368)."""
        self.failed_renewals = Counter[Key]()
        self.expired = Counter[str]()
        """Connections closed that went on after their session, by listener."""
        self._budget = LineBudget(now_ms)

    def succeeded(self, listener: str, mechanism: str, *, again: bool) -> None:
        (self.renewals if again else self.successes)[listener, mechanism] += 1

    def failed(self, listener: str, mechanism: str, *, again: bool) -> None:
        known = mechanism if mechanism in MECHANISMS else OTHER
        (self.failed_renewals if again else self.failures)[listener, known] += 1

    def tell(self, now_ms: float, peer: str, listener: str, mechanism: str, user: str, why: str) -> None:
        """A line for a failure, if there is room for one. `peer`: address and port. `user`: empty for one who has not
        said his name."""
        if not self._budget.takes(now_ms):
            return
        left_out, self._budget.left_out = self._budget.left_out, 0
        logger.warning(
            "authentication failed: %s on listener %s by %s%s: %s%s",
            peer,
            listener,
            mechanism if mechanism in MECHANISMS else shown(mechanism),
            f" as {shown(user)}" if user else "",
            why,
            f" ({left_out} more were not told)" if left_out else "",
        )
