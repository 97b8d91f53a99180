"""A program of others as a child process that prints lines, which can be waited for. It ends by SIGTERM.

with ForeignProcess([python, "app.py"], directory) as app:
    app.printed_until(lambda lines: "value 3" in lines)
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

PATIENCE_S: Final = 45.0
STOP_S: Final = 20.0
TAIL_CHARACTERS: Final = 6_000


class ForeignProcess:
    """Runs within the `with` block. What it prints is in `directory`, as `0.out` and `0.err`, `1.out` …; so
    are its own files."""

    def __init__(self, command: Sequence[str], directory: Path) -> None:
        self._command = list(command)
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        number = len(list(directory.glob("*.out")))
        self._out = (directory / f"{number}.out").open("wb+")
        self._errors = (directory / f"{number}.err").open("wb+")

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, stdout=self._out, stderr=self._errors, cwd=self._directory,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )  # fmt: skip
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._process.poll() is None:
                self.stop()
        finally:
            if error is not None:
                error.add_note(f"--- {self._command}\n{self.printed[-TAIL_CHARACTERS:]}\n{self._tail()}")
            self._out.close()
            self._errors.close()

    @property
    def printed(self) -> str:
        return _text(self._out.fileno())

    @property
    def lines(self) -> list[str]:
        """The whole lines that it has printed."""
        return self.printed.split("\n")[:-1]

    def printed_until(self, is_so: Callable[[list[str]], bool], timeout_s: float = PATIENCE_S) -> list[str]:
        """Waits until that is so of its lines, and returns them. Fails when it ends before."""
        deadline = time.monotonic() + timeout_s
        while not is_so(lines := self.lines):
            assert self._process.poll() is None, f"it ended with {self._process.returncode}"
            assert time.monotonic() < deadline, f"{len(lines)} lines after {timeout_s} s"
            time.sleep(0.05)  # between two looks at its file
        return lines

    def stop(self, by: signal.Signals = signal.SIGTERM) -> None:
        """Asks it to end, and waits until it has."""
        self._process.send_signal(by)
        self.wait()

    def kill(self) -> None:
        self.stop(signal.SIGKILL)

    def wait(self, timeout_s: float = STOP_S) -> int:
        """Its exit code."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise AssertionError(f"it still ran after {timeout_s} s") from None

    def _tail(self) -> str:
        return _text(self._errors.fileno())[-TAIL_CHARACTERS:]


def _text(descriptor: int) -> str:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode(errors="replace")
