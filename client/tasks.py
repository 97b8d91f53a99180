"""The one place where tasks are started, so that none is forgotten and a simulator can order them.

A `Tasks` holds the tasks of one owner (a server, a producer). A task that fails is logged with its name; nobody has to
await it. `close()` cancels what still runs and returns when all of it has ended. What may not end, since it runs code
of the program, is given a limit by `ended` before.

A loop that finds something to do again and again, and never has to wait, keeps every other task, answer, timer and
signal waiting: it says `await breathe()` now and then.
"""

import asyncio
import logging
import types
from collections.abc import Callable, Collection, Coroutine, Generator
from typing import Any, TypeVar

logger = logging.getLogger(__name__)

_T = TypeVar("_T")


@types.coroutine
def breathe() -> Generator[None, None, None]:
    """Gives the event loop one turn."""
    yield


class Tasks:
    """The running tasks of one owner, in order of creation."""

    __slots__ = ("_loop", "_running", "failed")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.failed: Callable[[BaseException], bool] = _unexplained
        """Told what has ended a task; whether the owner has said all that there is to say about it."""
        self._running: dict[asyncio.Task[Any], None] = {}

    def __len__(self) -> int:
        return len(self._running)

    def start(self, coroutine: Coroutine[Any, Any, _T], name: str) -> asyncio.Task[_T]:
        task = self._loop.create_task(coroutine, name=name)
        self._running[task] = None
        task.add_done_callback(self._ended)
        return task

    async def close(self) -> None:
        """Cancels every task still running and waits until each has ended, even one that is slow to die."""
        current = asyncio.current_task(self._loop)
        while others := [task for task in self._running if task is not current]:
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

    async def ended(self, cancelled: Collection[asyncio.Task[Any]], timeout_ms: float) -> None:
        """Returns when these have ended, or after `timeout_ms`: those left are named in the log, and then forgotten."""
        _, left = await asyncio.wait(cancelled, timeout=timeout_ms / 1000.0)
        if left:
            names = ", ".join(sorted(task.get_name() for task in left))
            logger.warning("waited for no longer, although they have not ended since they were cancelled: %s", names)
        for task in left:
            self._running.pop(task, None)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None and not self.failed(error):
            logger.error("task %s ended with an error", task.get_name(), exc_info=error)


def _unexplained(error: BaseException) -> bool:
    return False
