"""A client of the demo as a process of its own: started, killed without mercy, or told to end.

`run_until_told` is the inside of it, `ClientProcess` the outside. It is signalled by its own process id only.
"""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from odradek.spark_jobs.demo.child import Child, end

STOP_TIMEOUT_S = 30.0


def run_until_told(work: Coroutine[Any, Any, None]) -> None:
    """Runs it until SIGTERM cancels it, which has its clients close well. Raises what it raises."""
    asyncio.run(_until_told(work))


async def _until_told(work: Coroutine[Any, Any, None]) -> None:
    working = asyncio.ensure_future(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, working.cancel)
    await asyncio.wait([working])
    if not working.cancelled():
        working.result()


class ClientProcess(Child):
    """`python -m MODULE ARGUMENTS…`, by the interpreter that runs the demo; gone when the block ends."""

    def __init__(self, module: str, *arguments: str, log: Path) -> None:
        self._log = log
        with log.open("w", encoding="utf-8") as output:
            self._process = subprocess.Popen([sys.executable, "-m", module, *arguments], stdout=output, stderr=output)

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def errors(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")[-2000:]

    def pause(self) -> None:
        """SIGSTOP: it does nothing more until it is resumed, and does not notice."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL, also when it is paused; does nothing when it is gone."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """SIGTERM, also when it is paused, and SIGKILL where that does not end it."""
        end(self._process, STOP_TIMEOUT_S)
