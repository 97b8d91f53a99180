"""The event loop of one simulated process: asyncio's own, made to go round by the world, one round at a time.

Each process has a loop of its own, as it has in reality, and while it goes round it is the running one, so `asyncio`
finds it (`get_running_loop`, `current_task`, `sleep`, `timeout`), and a future of another process is refused as asyncio
refuses those of other loops. Between rounds no loop runs: what happens there is the network's, the disk's, or a helper
thread's doing. Rounds are those of `BaseEventLoop._run_once`, without a selector: what comes from outside lies in
`_ready` already, in front of timers that are due, as it is with a selector. Callbacks and timers are kept as that class
keeps them, at less cost: much of a history's time goes there.

`kill` is SIGKILL: the loop is closed, so that nothing can be put on it, and then each coroutine is closed, in order of
its task's creation. What their `finally` clauses try comes to nothing, for whatever they could reach raises `Killed`
by then (process.py severs it first).
"""

# Handles are made from outside, without their `__init__`.
# pyright: reportPrivateUsage=false

import asyncio
import sys
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from concurrent.futures import Executor
from contextvars import Context, copy_context
from heapq import heapify, heappop, heappush
from typing import Any, Final, NoReturn, TypeVar, TypeVarTuple, Unpack
from weakref import WeakValueDictionary

from odradek.testing.killed import Killed
from odradek.testing.sim.world.clock import Clock

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

TIDY_TIMERS = 100
"""With more cancelled ones, and more than half of all cancelled, they are taken out."""
TIMER_SLACK_S = 1e-6
"""Timers due within it ring now: rounding may make them seem that early."""


_new: Final = object.__new__
"""What follows are made without their `__init__`, which would be most of what they cost."""


class _Handle(asyncio.Handle):
    """A callback that waits for its turn."""

    __slots__ = ()

    _callback: Callable[..., object] | None
    _cancelled: bool
    _context: Context

    def cancel(self) -> None:
        self._cancelled = True
        self._callback, self._args = None, ()


class _Timer(asyncio.TimerHandle):
    """A callback that waits for its time, and then for its turn."""

    __slots__ = ()

    _callback: Callable[..., object] | None
    _cancelled: bool
    _context: Context
    _loop: "ProcessLoop"
    _scheduled: bool
    _when: float

    def cancel(self) -> None:
        if not self._cancelled:
            self._cancelled = True
            self._callback, self._args = None, ()
            if self._scheduled:
                self._loop.timer_cancelled()


class ProcessLoop(asyncio.BaseEventLoop):
    """See the module."""

    # What this class uses of BaseEventLoop's inside.
    _ready: deque[_Handle | _Timer]
    _thread_id: int | None
    _asyncgen_firstiter_hook: Callable[[AsyncGenerator[Any, Any]], None]
    _asyncgen_finalizer_hook: Callable[[AsyncGenerator[Any, Any]], None]

    def __init__(self, clock: Clock, on_error: Callable[[dict[str, Any]], object]) -> None:
        super().__init__()
        self.set_debug(False)  # it would cost half of the speed, and every test but the simulator's runs with it
        self._thread_id = threading.get_ident()  # so `is_running()`: true as long as the process lives
        self._is_over = False  # what `is_closed` says, without a call
        self._tasks: WeakValueDictionary[int, asyncio.Task[Any]] = WeakValueDictionary()
        self._task_count = 0
        self._timers: list[tuple[float, int, _Timer]] = []
        self._timer_count = 0
        self._cancelled_count = 0
        """Of those in `_timers`, as many were cancelled."""
        self._ending: list[_Handle] = []
        self._on_error = on_error
        self.time = clock.monotonic_s  # type: ignore[method-assign]
        self.set_exception_handler(self._report)

    def _write_to_self(self) -> None:
        """Nobody has to wake a loop that goes round as long as there is something to do."""

    def _report(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not self.is_closed():
            self._on_error(context)

    # -- callbacks and timers --------------------------------------------------------------------------------------

    def call_soon(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        if self._is_over:
            raise RuntimeError("Event loop is closed")
        handle = _new(_Handle)
        handle._callback, handle._args, handle._cancelled = callback, args, False
        handle._context = copy_context() if context is None else context
        self._ready.append(handle)
        return handle

    def call_at(
        self, when: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        if self._is_over:
            raise RuntimeError("Event loop is closed")
        timer = _new(_Timer)
        timer._callback, timer._args, timer._cancelled = callback, args, False
        timer._context = copy_context() if context is None else context
        timer._loop, timer._when, timer._scheduled = self, when, True
        self._timer_count = count = self._timer_count + 1
        heappush(self._timers, (when, count, timer))
        return timer

    def call_later(
        self, delay: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at_end(self, callback: Callable[[], object]) -> asyncio.Handle:
        """When all callbacks of the present round, or of the next one, have run: what uvloop does with writes."""
        handle = _new(_Handle)
        handle._callback, handle._args, handle._cancelled = callback, (), False
        self._ending.append(handle)
        return handle

    def timer_cancelled(self) -> None:
        """For a timer that has not rung."""
        self._cancelled_count += 1
        if self._cancelled_count > TIDY_TIMERS and self._cancelled_count > len(self._timers) / 2:
            self._timers = [each for each in self._timers if not each[2]._cancelled]
            heapify(self._timers)
            self._cancelled_count = 0

    # -- going round -----------------------------------------------------------------------------------------------

    @property
    def ready(self) -> Collection[object]:
        """What the next round will run, timers apart. Always the same object."""
        return self._ready

    @property
    def timers(self) -> Sequence[tuple[float, int, object]]:
        """The first one is due first, unless it was cancelled. Ask anew after each round."""
        return self._timers

    @property
    def next_timer_s(self) -> float | None:
        """When, by this loop's clock, its next timer is due."""
        timers = self._timers
        while timers and timers[0][2]._cancelled:
            heappop(timers)
            self._cancelled_count -= 1
        return timers[0][0] if timers else None

    def enter(self) -> None:
        """This is the running loop now. (The scheduler's `run` puts back what was before.)"""
        asyncio._set_running_loop(self)
        sys.set_asyncgen_hooks(self._asyncgen_firstiter_hook, self._asyncgen_finalizer_hook)

    def leave(self) -> None:
        asyncio._set_running_loop(None)

    def go_round(self) -> None:
        """Runs what is ready, and the timers that are due. Raises Killed. Between `enter` and `leave`."""
        ready, timers = self._ready, self._timers
        if timers:
            end_s = self.time() + TIMER_SLACK_S
            while timers and timers[0][0] < end_s:
                timer = heappop(timers)[2]
                if timer._cancelled:
                    self._cancelled_count -= 1
                else:
                    timer._scheduled = False
                    ready.append(timer)
        for _ in range(len(ready)):
            handle = ready.popleft()
            callback = handle._callback
            if callback is not None:
                try:
                    handle._context.run(callback, *handle._args)
                except SystemExit:
                    raise
                except BaseException as error:  # noqa: BLE001 - as asyncio: what a callback raises goes to the handler
                    self.call_exception_handler({"message": f"Exception in {_name_of(callback)}", "exception": error})
        if self._ending:
            ending, self._ending = self._ending, []
            for handle in ending:
                if (callback := handle._callback) is not None:
                    callback()

    # -- tasks -----------------------------------------------------------------------------------------------------

    def create_task(self, coro: Any, **named: Any) -> asyncio.Task[Any]:
        if self.is_closed():
            coro.close()
            raise Killed
        task: asyncio.Task[Any] = super().create_task(coro, **named)
        self._task_count += 1
        self._tasks[self._task_count] = task
        return task

    def running_tasks(self) -> list[asyncio.Task[Any]]:
        """All tasks that have not ended, in order of creation."""
        return [task for _, task in sorted(self._tasks.items()) if not task.done()]

    def kill(self) -> None:
        """Ends it at once. It must not be going round. May be called again."""
        if self.is_closed():
            return
        tasks = self.running_tasks()
        self._thread_id = None
        self._is_over = True
        self.close()
        for task in tasks:
            # asyncio would say that a task was destroyed while it was pending: that is what SIGKILL does.
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            _close(task.get_coro())

    # -- what is refused: it would reach the real world ---------------------------------------------------------------

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        _refuse("run_in_executor")

    async def getaddrinfo(self, *_: Any, **__: Any) -> NoReturn:
        _refuse("getaddrinfo")

    async def getnameinfo(self, *_: Any, **__: Any) -> NoReturn:
        _refuse("getnameinfo")

    async def create_connection(self, *_: Any, **__: Any) -> NoReturn:
        _refuse("create_connection")

    async def create_server(self, *_: Any, **__: Any) -> NoReturn:
        _refuse("create_server")


def _name_of(callback: Callable[..., object]) -> str:
    """The same in each run, other than its `repr`."""
    return str(getattr(callback, "__qualname__", type(callback).__qualname__))


def _close(coroutine: Any) -> None:
    """Closes a coroutine whose process is gone. Whatever it does about it, nobody is there any more to hear of it."""
    try:
        coroutine.close()
    except (Exception, Killed):  # noqa: BLE001 - the world goes on
        return


def _refuse(what: str) -> NoReturn:
    raise RuntimeError(f"{what}: a simulated process has its Environment, and no other world")
