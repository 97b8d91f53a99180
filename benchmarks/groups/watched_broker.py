"""An Odradek that times the turns of its event loop: `python -m benchmarks.groups.watched_broker REPORT OPTIONS…`

A turn is one callback, or one step of a task: as long as it takes nothing else runs. What counts is processor time of
the loop's thread, so that a busy machine does not matter. The loop is asyncio's own, which can be watched; what runs in
it is the same as in uvloop's. With SIGUSR1 it writes the longest turn since the last signal to REPORT.
"""

import json
import os
import signal
import sys
import time
from asyncio import Handle, Task
from pathlib import Path
from typing import Any, NamedTuple

from odradek.broker.launch import run_broker
from odradek.broker.launch.serve_command import serve
from processes.odradek_broker import OdradekBroker

PATIENCE_S = 10.0


class Turn(NamedTuple):
    """One turn of a loop."""

    ms: float
    """Of the processor."""
    what: str


class WatchedBroker(OdradekBroker):
    """Such a broker as a child process."""

    def command(self) -> list[str]:
        return [sys.executable, "-m", "benchmarks.groups.watched_broker", str(self._report), *super().command()[4:]]

    @property
    def _report(self) -> Path:
        return self.data_dir.with_name(f"{self.data_dir.name}-turns.json")

    def longest_turn(self) -> Turn:
        """Since the last time that this was asked, or since the start. Raises TimeoutError."""
        self._report.unlink(missing_ok=True)
        os.kill(self.pid, signal.SIGUSR1)
        deadline = time.monotonic() + PATIENCE_S
        while not self._report.exists():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.bootstrap} does not say how long its turns were")
            time.sleep(0.01)  # between two looks
        return Turn(*json.loads(self._report.read_text()))


def watch(report: Path) -> None:
    """From now on all loops of this process are timed."""
    longest = [Turn(0.0, "")]
    run = Handle._run  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType, reportUnknownVariableType, reportAttributeAccessIssue]

    def timed(handle: Any) -> None:
        callback, began_s = handle._callback, time.thread_time()
        run(handle)
        took_ms = 1000 * (time.thread_time() - began_s)
        if took_ms > longest[0].ms:
            longest[0] = Turn(took_ms, _described(callback))

    def tell(*_: object) -> None:
        written = report.with_suffix(".new")
        written.write_text(json.dumps(longest[0]))
        written.rename(report)
        longest[0] = Turn(0.0, "")

    Handle._run = timed  # type: ignore[method-assign, assignment]  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
    signal.signal(signal.SIGUSR1, tell)


def _described(callback: Any) -> str:
    task = getattr(callback, "__self__", None)
    return task.get_name() if isinstance(task, Task) else repr(callback)


def main(report: str, *options: str) -> None:
    run_broker.loop_factory = lambda: None  # type: ignore[attr-defined]  # pyright: ignore[reportPrivateImportUsage]
    watch(Path(report))
    serve(list(options), prog_name="watched broker")


if __name__ == "__main__":
    main(*sys.argv[1:])
