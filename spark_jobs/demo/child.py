"""What the demo's processes have in common: they are gone when their block ends."""

import signal
import subprocess
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, Self


class Child(ABC):
    """A process of the demo; a context manager that leaves none behind."""

    @abstractmethod
    def stop(self) -> None:
        """Does nothing when it does not run."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def end(process: subprocess.Popen[Any], timeout_s: float) -> None:
    """SIGTERM, also for one that is paused, and SIGKILL where that does not end it in time. Returns when it is gone."""
    process.terminate()
    process.send_signal(signal.SIGCONT)
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
