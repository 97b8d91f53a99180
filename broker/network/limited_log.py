"""A log that strangers can write to, and must not fill: so many lines in a while, and then how many there were."""

import logging
from typing import Final

from odradek.runtime.environment import Environment

LINES_MAX: Final = 20
WINDOW_MS: Final = 10_000.0


class LimitedLog:
    """Warnings of one kind."""

    def __init__(self, logger: logging.Logger, environment: Environment) -> None:
        self._logger = logger
        self._environment = environment
        self._begun_ms = environment.monotonic_ms()
        self._count = 0

    def warning(self, text: str, *args: object) -> None:
        """Logs it, if there were few enough; it counts in any case."""
        self.tick()
        self._count += 1
        if self._count <= LINES_MAX:
            self._logger.warning(text, *args)

    def tick(self) -> None:
        """Tells of what was left out, when the while is over. Called now and then."""
        now_ms = self._environment.monotonic_ms()
        if now_ms - self._begun_ms < WINDOW_MS:
            return
        if (left_out := self._count - LINES_MAX) > 0:
            seconds = (now_ms - self._begun_ms) / 1000.0
            self._logger.warning(
                "closed %d more connections before they were authenticated, in %.0f s", left_out, seconds
            )
        self._begun_ms, self._count = now_ms, 0
