"""The last lines that the brokers' process has logged, for a test's process that asks for them."""

import logging
import threading
from collections import deque
from typing import Final, NamedTuple

LINES_MAX: Final = 10_000
LOGGER: Final = "odradek"


class LogLine(NamedTuple):
    """A line; `number` counts all that the process has logged, from 1; `time_s`: seconds since 1970."""

    number: int
    time_s: float
    level: str
    logger: str
    thread: str
    message: str


class LogLines(logging.Handler):
    """Keeps them, and writes them nowhere."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(message)s"))
        self._own_lock = threading.Lock()
        self._kept: deque[LogLine] = deque(maxlen=LINES_MAX)
        self._count = 0

    def emit(self, record: logging.LogRecord) -> None:
        text = self.format(record)
        with self._own_lock:
            self._count += 1
            self._kept.append(
                LogLine(self._count, record.created, record.levelname, record.name, record.threadName or "", text)
            )

    def since(self, number: int) -> list[LogLine]:
        """Those behind line `number`, as far as they are kept. In any thread."""
        with self._own_lock:
            return [line for line in self._kept if line.number > number]


def keep_log_lines() -> LogLines:
    """Of a process that is ours alone: all that Odradek logs, and the warnings of everybody."""
    lines = LogLines()
    logging.basicConfig(handlers=[lines], force=True)
    logging.getLogger(LOGGER).setLevel(logging.DEBUG)
    return lines
