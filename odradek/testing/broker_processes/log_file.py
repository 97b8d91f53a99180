"""What brokers in processes of their own have logged: JSON lines in the file that all of them write to."""

import json
import os
import threading
from collections import deque
from datetime import datetime
from typing import Any

from odradek.testing.remote.log_lines import LINES_MAX, LogLine


class LogFile:
    """A file that others append to. It may be emptied meanwhile, after which it is read from its beginning."""

    def __init__(self, descriptor: int) -> None:
        """One that can be read."""
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._position = 0
        self._count = 0
        self._kept: deque[LogLine] = deque(maxlen=LINES_MAX)

    def since(self, number: int) -> list[LogLine]:
        """The lines behind this one, as far as they are kept. In any thread."""
        with self._lock:
            self._read()
            return [line for line in self._kept if line.number > number]

    def _read(self) -> None:
        size_bytes = os.fstat(self._descriptor).st_size
        if size_bytes < self._position:
            self._position = 0
        data = os.pread(self._descriptor, size_bytes - self._position, self._position)
        whole = data[: data.rfind(b"\n") + 1]
        self._position += len(whole)
        for line in whole.decode(errors="replace").splitlines():
            self._count += 1
            self._kept.append(_parsed(self._count, line))


def _parsed(number: int, line: str) -> LogLine:
    """A line that is no JSON was written by no logger: it is a traceback's, or of the interpreter."""
    try:
        entry: dict[str, Any] = json.loads(line)
        time_s = datetime.fromisoformat(entry["time"]).timestamp()
        message = entry["message"] + ("\n" + entry["exception"] if "exception" in entry else "")
        whose = f"broker {entry['broker']}" if "broker" in entry else "supervisor"
        return LogLine(number, time_s, entry["level"].upper(), entry["logger"], whose, message)
    except (ValueError, KeyError, TypeError):
        return LogLine(number, 0.0, "ERROR", "standard error", "", line)
