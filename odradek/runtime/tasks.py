"""The one place where tasks are started, so that none is forgotten and a simulator can order them.

A `Tasks` holds the tasks of one owner (a server, a producer). A task that fails is logged with its name; nobody has to
await it. `close()` cancels what still runs and returns when all of it has ended. What may not end, since it runs code
of the program, is given a limit by `ended` before.

Only the owner cancels them. `asyncio.run` cancels whatever `asyncio.all_tasks()` lists as soon as its main coroutine
has ended, while other tasks of the program still deliver what they have sent; pytest plugins and servers do the same.
So these tasks are not listed there, and go on until their owner is closed. An owner that nobody closes is closed when
the loop shuts down its asynchronous generators, which `asyncio.run` does after it has cancelled all other tasks.
`running_tasks` lists them. (docs/decisions/013-internal-tasks.md)

A loop that finds something to do again and again, and never has to wait, keeps every other task, answer, timer and
signal waiting: it says `await breathe()` now and then.
"""

import asyncio
import logging
import types
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Generator, Sequence
from contextlib import suppress
from types import AsyncGeneratorType
from typing import Any, Final, TypeVar, cast
from weakref import WeakSet

logger = logging.getLogger(__name__)

_T = TypeVar("_T")


@types.coroutine
def breathe() -> Generator[None, None, None]:
    """Gives the event loop one turn."""
    yield


class Tasks:
    """The running tasks of one owner, in order of creation."""

    __slots__ = ("__weakref__", "_loop", "_running", "_shutdown", "failed")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.failed: Callable[[BaseException], bool] = _unexplained
        """Told what has ended a task; whether the owner has said all that there is to say about it."""
        self._running: dict[asyncio.Task[Any], None] = {}
        self._shutdown: AsyncGeneratorType[None, None] | None = None
        """Closes this owner when the loop shuts down; there is one while a task runs."""
        _owners.add(self)

    def __len__(self) -> int:
        return len(self._running)

    def running_on(self, loop: asyncio.AbstractEventLoop) -> list[asyncio.Task[Any]]:
        """Those that have not ended, if this loop is the owner's."""
        return [task for task in self._running if not task.done()] if self._loop is loop else []

    def start(self, coroutine: Coroutine[Any, Any, _T], name: str) -> asyncio.Task[_T]:
        task = self._loop.create_task(coroutine, name=name)
        self.adopt(task)
        return task

    def adopt(self, task: asyncio.Task[Any]) -> None:
        """Makes a task of this loop one of these, from now on."""
        asyncio._unregister_task(task)  # pyright: ignore[reportPrivateUsage]  (public: "Extending" in asyncio's manual)
        self._running[task] = None
        task.add_done_callback(self._ended)
        if self._shutdown is None:
            self._shutdown = cast(AsyncGeneratorType[None, None], _at_shutdown(self))
            _step(self._shutdown.asend(None))

    @property
    def loop_is_closed(self) -> bool:
        """Nothing runs there any more, and nothing can be cancelled."""
        return self._loop.is_closed()

    async def close(self) -> None:
        """Cancels every task still running and waits until each has ended, even one that is slow to die."""
        current = asyncio.current_task(self._loop)
        while others := [task for task in self._running if task is not current]:
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

    async def ended(self, awaited: Collection[asyncio.Task[Any]], timeout_ms: float) -> None:
        """Returns when these have ended, or after `timeout_ms`: those left are named in the log, and then forgotten."""
        _, left = await asyncio.wait(awaited, timeout=timeout_ms / 1000.0)
        if left:
            names = ", ".join(sorted(task.get_name() for task in left))
            logger.warning("waited for no longer, although they have not ended since they were cancelled: %s", names)
        for task in left:
            self._forget(task)

    def abandon(self, loop: asyncio.AbstractEventLoop) -> list[asyncio.Task[Any]]:
        """Those that have not ended, if this loop is the owner's; what becomes of them, nobody is told any more."""
        abandoned = self.running_on(loop)
        for task in abandoned:
            task.remove_done_callback(self._ended)
            del self._running[task]
        return abandoned

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._forget(task)
        if task.cancelled() or (error := task.exception()) is None or isinstance(error, SystemExit | KeyboardInterrupt):
            return  # the last two come out of the loop, which ends by them
        if not self.failed(error):
            logger.error("task %s ended with an error", task.get_name(), exc_info=error)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._running.pop(task, None)
        if not self._running and self._shutdown is not None and not self._shutdown.ag_running:
            shutdown, self._shutdown = self._shutdown, None
            _step(shutdown.aclose())


_owners: Final[WeakSet[Tasks]] = WeakSet()


def running_tasks(loop: asyncio.AbstractEventLoop | None = None) -> list[asyncio.Task[Any]]:
    """The tasks of all owners on this loop, the running one by default. `asyncio.all_tasks` does not list them."""
    loop = asyncio.get_running_loop() if loop is None else loop
    return [task for owner in list(_owners) for task in owner.running_on(loop)]


def abandon_tasks(loop: asyncio.AbstractEventLoop) -> list[asyncio.Task[Any]]:
    """The tasks of all owners on this loop, whose owners are never told how they end: for a loop that is killed."""
    return [task for owner in list(_owners) for task in owner.abandon(loop)]


async def run_together(coroutines: Sequence[Coroutine[Any, Any, _T]], name: str) -> list[_T]:
    """Runs coroutines side by side and returns their results, in the same order, when all have ended.

    Raises the first error. Then, and when the caller is cancelled, those that still run are cancelled.
    """
    if len(coroutines) == 1:
        return [await coroutines[0]]
    waiting = iter(coroutines)
    try:
        tasks = Tasks(asyncio.get_running_loop())
        tasks.failed = _told
        try:
            return await asyncio.gather(*(tasks.start(each, name) for each in waiting))
        finally:
            await tasks.close()
    finally:
        for each in waiting:  # which no loop has taken: it has been killed
            each.close()


async def _at_shutdown(owner: Tasks) -> AsyncGenerator[None]:
    try:
        yield
    finally:
        if not owner.loop_is_closed:
            await owner.close()


def _step(awaitable: Any) -> None:
    """Runs what does not wait for anything."""
    with suppress(StopIteration):
        awaitable.send(None)


def _told(error: BaseException) -> bool:
    """Who waits for the task gets its error."""
    return True


def _unexplained(error: BaseException) -> bool:
    return False
