"""A thread with an event loop, for what is to run beside a program that has a loop of its own, or none.

The loop is uvloop's where there is one: it asks no clock of Python's `time` module, which tests like to freeze, and it
opens no sockets of Python's, which tests like to forbid. Nothing of it is set for other threads: no policy, no signals.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final, TypeVar

from odradek.runtime.environment import loop_factory
from odradek.runtime.tasks import abandon_tasks
from odradek.testing.hosting.gate import Gate
from odradek.testing.killed import Killed

T = TypeVar("T")

LAST_TURNS: Final = 50
"""Of a loop that is killed, in which its sockets close and its tasks end; none of them has anything to wait for."""


class LoopThread:
    """See the module. A thread that is left running does not hold up the end of the interpreter."""

    def __init__(self, name: str) -> None:
        self.loop: Final = (loop_factory() or asyncio.new_event_loop)()
        self._bury_by: Callable[[], object] | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Runs it in the loop; anybody may wait for the future."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Returns what it returns, and raises what it raises. Not in the thread itself."""
        assert threading.current_thread() is not self._thread, "it would wait for itself"
        return self.submit(coroutine).result()

    def call(self, callback: Callable[[], object]) -> None:
        """Has it called in the loop's next turn. Nothing happens when the loop has ended."""
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(callback)

    def end(self) -> None:
        """Ends it: cancels what is left, and returns when the thread has ended."""
        self.call(self.loop.stop)
        self._thread.join()

    def kill(self, sever: Callable[[], object], bury: Callable[[], object]) -> None:
        """Ends it where it stands. `sever`: has everything that its code could change refuse it, by Killed, from now on
        (gate.py), so that no `finally` has an effect. `bury`: called in the thread when none of its code runs any more;
        the loop turns some more for the transports that it aborts."""
        self._bury_by = bury
        sever()
        self.call(_die)
        self._thread.join()

    def hold(self, gate: Gate) -> None:
        """Holds the loop, and what asks the gate in other threads, until the gate is opened again. Returns when the
        loop stands still."""
        stands = threading.Event()

        def stand() -> None:
            gate.pause()
            stands.set()
            gate.check()

        self.call(stand)
        stands.wait()

    def _run(self) -> None:
        try:
            with suppress(Killed):
                self.loop.run_forever()
            if self._bury_by is None:
                self._finish()
            else:
                self._bury(self._bury_by)
        finally:
            self.loop.close()

    def _finish(self) -> None:
        left = asyncio.all_tasks(self.loop)
        for task in left:
            task.cancel()
        if left:
            self.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())

    def _bury(self, bury: Callable[[], object]) -> None:
        """Breaks what connects the broker to others, and then cancels its tasks, which has no effect any more."""
        self.loop.set_exception_handler(_ignore)
        bury()
        tasks = {*asyncio.all_tasks(self.loop), *abandon_tasks(self.loop)}
        for task in tasks:
            task.cancel()
        for _ in range(LAST_TURNS):
            with suppress(Killed):
                self.loop.call_soon(self.loop.stop)
                self.loop.run_forever()
        with suppress(Exception, Killed):
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        for task in tasks:
            if not task.done():
                # asyncio would say that a task was destroyed while it was pending: that is what a kill does.
                task._log_destroy_pending = False  # type: ignore[attr-defined]
            elif not task.cancelled():
                task.exception()  # else asyncio would say that nobody has asked for it


def _die() -> None:
    raise Killed


def _ignore(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None: ...
