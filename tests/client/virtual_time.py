"""An event loop on virtual time: whenever nothing is ready, its clock jumps to the next timer, and nobody waits.

    def test_a_day() -> None:
        run_virtual(asyncio.sleep(86_000))         # a plain function; also thousands of times, under Hypothesis

    @pytest.mark.virtual_time                      # or an async test, with its fixtures (tests/conftest.py)
    async def test_an_hour() -> None:
        await asyncio.sleep(3_000)

Rules:
- What runs is decided by the program alone. There are no sockets, no signals and no helper threads:
  `run_in_executor` calls the function in the loop's thread, `blocking_ms` of virtual time later, as the slowest thread
  would, and even when its result is no longer wanted. What uses the real network is refused.
- What can never go on is found: `Deadlock` when nothing is ready and no timer is set, `BusyLoop` when the loop goes
  round more than `iterations_per_second_max` times in a virtual second, `NeverEnds` after `seconds_max`. Each names
  the tasks and where they wait.
- Timers ring exactly when they are due, or with `whole_ms` as uvloop's do, whose clock counts whole milliseconds: up to
  half of one early, or late. Who then sets the same timer again spins until it is due.
- What is left behind is found: `check_leftovers` refuses tasks and timers, and whatever was reported to the loop's
  exception handler. `run_virtual` and the marker call it.
- Real threads of a test (`send_threadsafe`) may call in while `threads_run()` is entered: only then does the loop look
  at the real clock, and gives them `THREAD_GRACE_S` before it jumps.

The loop is asyncio's own `BaseEventLoop` without a selector: tasks, futures, timers and the debug mode are the real
ones. `VirtualEnvironment` gives this clock, a wall clock that a test may move, and seeded chance to what is tested.
"""

import asyncio
import gc
import random
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Executor
from contextlib import contextmanager
from contextvars import Context
from typing import Any, NoReturn, TypeVar, TypeVarTuple, Unpack, cast

from odradek.runtime.environment import NS_PER_MS, Environment
from odradek.runtime.stall_watch import StallListener
from odradek.runtime.tasks import running_tasks

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

START_S = 1_000.0
"""Where the clock begins: not at 0, which code might take for "never"."""
SECONDS_MAX = 3_600.0
ITERATIONS_PER_SECOND_MAX = 100_000
THREAD_GRACE_S = 0.02
"""How long an idle loop waits for a real thread before it goes on with the next timer."""
THREAD_WAIT_S = 30.0
"""How long it waits when there is no timer to go on with."""
CANCELS_MAX = 20
"""A task that is still there after so many cancellations is left alone."""
WALL_CLOCK_MS = 1_700_000_000_000
_WINDOW_S = 1.0


class Stuck(Exception):
    """The loop cannot go on in a way that a test could want."""


class Deadlock(Stuck):
    """Nothing is ready and no timer is set: in real time, this would hang for ever."""


class BusyLoop(Stuck):
    """The loop goes round and round without time passing: in real time, this would take a whole processor."""


class NeverEnds(Stuck):
    """More virtual time has passed than the test can need: something repeats itself for ever."""


class Leftovers(Exception):
    """Tasks, timers or unhandled errors are left behind."""


class _Idle:
    """Stands where a loop has its selector: it has no events to report, and lets the loop look at its clock."""

    def __init__(self, idle: Callable[[float | None], None]) -> None:
        self.select = idle


class VirtualTimeLoop(asyncio.BaseEventLoop):
    """See the module. `iterations` counts how often the loop went round, `errors` what its handler was told."""

    # What this class uses of BaseEventLoop's inside: the ready handles, and the heap of timers.
    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]

    def __init__(
        self,
        *,
        blocking_ms: float = 0.0,
        whole_ms: bool = False,
        iterations_per_second_max: int = ITERATIONS_PER_SECOND_MAX,
        seconds_max: float = SECONDS_MAX,
    ) -> None:
        super().__init__()
        self.blocking_ms = blocking_ms
        self.whole_ms = whole_ms
        self.iterations_per_second_max = iterations_per_second_max
        self.iterations = 0
        self.errors: list[dict[str, Any]] = []
        self.is_stuck = False
        self._now_s = START_S
        self._end_s = START_S + seconds_max
        self._window_start_s = START_S
        self._window_iterations = 0
        self.threads = 0
        self._called_in = threading.Event()
        self._selector = _Idle(self._idle)
        self.set_exception_handler(self._keep_error)

    def time(self) -> float:
        return self._now_s

    def call_at(
        self, when: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        if self.whole_ms:
            when = round(self._now_s * 1000.0 + round((when - self._now_s) * 1000.0)) / 1000.0
        return super().call_at(when, callback, *args, context=context)

    # -- what the loop does between two rounds ---------------------------------------------------------------------

    def _idle(self, timeout: float | None) -> None:
        self.iterations += 1
        self._count()
        if timeout == 0:
            return
        if self.threads and self._wait_for_threads(timeout):
            return
        if timeout is None:
            self._fail(Deadlock, "nothing is ready and no timer is set, so the test hangs")
        # The loop has removed cancelled timers from the top of its heap: it looked there for the timeout.
        self._now_s = max(self._now_s, self._scheduled[0].when())
        if self._now_s > self._end_s:
            self._end_s = self._now_s + SECONDS_MAX  # the test's own clean-up may take its time
            self._fail(NeverEnds, f"{self._now_s - START_S:,.0f} s of virtual time have passed")

    def _count(self) -> None:
        if self._now_s - self._window_start_s >= _WINDOW_S:
            self._window_start_s = self._now_s
            self._window_iterations = 0
        self._window_iterations += 1
        if self._window_iterations > self.iterations_per_second_max:
            self._window_iterations = 0
            self._fail(BusyLoop, f"{self.iterations_per_second_max:,} rounds of the loop within {_WINDOW_S:g} s")

    def _wait_for_threads(self, timeout: float | None) -> bool:
        """Whether a thread called in, before the next timer's turn came."""
        called = self._called_in.wait(THREAD_WAIT_S if timeout is None else THREAD_GRACE_S)
        self._called_in.clear()
        return called or bool(self._ready)

    def _fail(self, error: type[Stuck], what: str) -> NoReturn:
        self.is_stuck = True
        tasks = "".join(f"\n- {_describe(task)}" for task in self.running_tasks()) or " none"
        raise error(f"{what}. Tasks:{tasks}")

    def _process_events(self, event_list: None) -> None:
        assert event_list is None

    def _write_to_self(self) -> None:
        self._called_in.set()

    def _keep_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.errors.append(context)
        loop.default_exception_handler(context)

    # -- threads ---------------------------------------------------------------------------------------------------

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        assert executor is None, "virtual time has no threads"
        future: asyncio.Future[T] = self.create_future()

        def run() -> None:
            try:
                result = func(*args)
            except Exception as error:  # noqa: BLE001 - handed to whoever awaits the future
                if not future.done():
                    future.set_exception(error)
            else:
                if not future.done():
                    future.set_result(result)

        self.call_later(self.blocking_ms / 1000.0, run)
        return future

    # -- what is refused: it would reach the real network, or block while its time stands still ---------------------

    async def getaddrinfo(self, *_: Any, **__: Any) -> NoReturn:
        _refuse("getaddrinfo")

    async def getnameinfo(self, *_: Any, **__: Any) -> NoReturn:
        _refuse("getnameinfo")

    async def create_connection(self, *_: Any, **__: Any) -> NoReturn:
        _refuse("create_connection")

    async def create_server(self, *_: Any, **__: Any) -> NoReturn:
        _refuse("create_server")

    async def create_datagram_endpoint(self, *_: Any, **__: Any) -> NoReturn:
        _refuse("create_datagram_endpoint")

    # -- for tests -------------------------------------------------------------------------------------------------

    def running_tasks(self) -> list[asyncio.Task[Any]]:
        """All tasks that have not ended, except the one that asks; by name."""
        current = asyncio.current_task(self) if self.is_running() else None
        running = [task for task in (*asyncio.all_tasks(self), *running_tasks(self)) if task is not current]
        return sorted(running, key=lambda task: task.get_name())

    def timers(self) -> list[asyncio.TimerHandle]:
        """The timers that are set, next first."""
        return sorted((timer for timer in self._scheduled if not timer.cancelled()), key=lambda timer: timer.when())

    def compute(self, time_ms: float) -> None:
        """What calls this has kept the loop for so long: time passes, and nothing else happens."""
        self._now_s += time_ms / 1000.0

    async def settle(self) -> None:
        """Lets everything run that does not wait for time."""
        while any(not handle.cancelled() for handle in self._ready):  # noqa: ASYNC110 - no event tells that
            await asyncio.sleep(0)

    async def end_tasks(self) -> None:
        """Cancels all other tasks until they give in, for when the loop got stuck."""
        for _ in range(CANCELS_MAX):
            tasks = self.running_tasks()
            for task in tasks:
                task.cancel()
            for _ in range(10 * len(tasks)):
                await asyncio.sleep(0)

    def check_leftovers(self) -> None:
        """Raises Leftovers for tasks that run, timers that are set, and errors that nobody handled."""
        left = [_describe(task) for task in self.running_tasks()]
        left += [f"timer in {timer.when() - self._now_s:.3f} s: {timer!r}" for timer in self.timers()]
        left += [f"error: {context['message']}: {context.get('exception')!r}" for context in self.errors]
        if left:
            raise Leftovers("".join(f"\n- {line}" for line in left))


def run_virtual(main: Coroutine[Any, Any, T], loop: VirtualTimeLoop | None = None, *, debug: bool = False) -> T:
    """Runs `main` to its end on virtual time and returns its result; nothing may be left behind then.

    Raises what `main` raises, Stuck, and Leftovers. The loop, a new one unless given, is closed in any case.
    """
    loop = VirtualTimeLoop() if loop is None else loop

    async def watched() -> T:
        result = await main
        await loop.settle()
        loop.check_leftovers()
        return result

    with asyncio.Runner(debug=debug, loop_factory=lambda: loop) as runner:
        try:
            return runner.run(watched())
        except Stuck:
            runner.run(loop.end_tasks())
            raise


@contextmanager
def threads_run() -> Generator[None]:
    """Real threads may call into the loop that runs (`call_soon_threadsafe`) until this ends."""
    loop = virtual_loop()
    loop.threads += 1
    try:
        yield
    finally:
        loop.threads -= 1


async def check_nothing_is_left() -> None:
    """What `run_virtual` checks at the end, if the loop is virtual, and errors that only the collector brings out."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, VirtualTimeLoop):
        return
    if loop.is_stuck:  # the test has said so, and could not clean up
        await loop.end_tasks()
        return
    await loop.settle()
    gc.collect()
    loop.check_leftovers()


def virtual_loop() -> VirtualTimeLoop:
    """The loop that runs, which must be a virtual one."""
    return cast(VirtualTimeLoop, asyncio.get_running_loop())


class VirtualEnvironment(Environment):
    """An environment on virtual time, with chance from a seed. `jump_ms` moves the wall clock, and only that."""

    __slots__ = ("_asleep_ms", "_wall_clock_offset_ms", "rng")

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None, *, seed: int = 0) -> None:
        super().__init__(loop)
        self.rng = random.Random(seed)
        self._wall_clock_offset_ms = WALL_CLOCK_MS - START_S * 1000.0
        self._asleep_ms = 0.0

    def now_ns(self) -> int:
        return int(self._wall_clock_offset_ms + self.monotonic_ms()) * NS_PER_MS

    def precise_s(self) -> float:
        return self.loop.time()

    def lease_clock_ms(self) -> float:
        return self.monotonic_ms() + self._asleep_ms

    def sleep_machine_ms(self, by_ms: float) -> None:
        """The machine was asleep for so long: of all clocks, only the one for leases has gone on."""
        self._asleep_ms += by_ms

    def boot_id(self) -> str | None:
        return "virtual-boot"

    def watch_stalls(self, listener: StallListener) -> Callable[[], None]:
        """Nothing blocks a loop whose clock stands still meanwhile."""
        return _nothing

    def jump_ms(self, by_ms: float) -> None:
        """Sets the wall clock forward, or back. Clocks that only measure time do not notice."""
        self._wall_clock_offset_ms += by_ms

    def random_bytes(self, size: int) -> bytes:
        return self.rng.randbytes(size)


def _refuse(what: str) -> NoReturn:
    raise RuntimeError(f"{what}: virtual time has no real network; use tests.client.memory_network")


def _describe(task: asyncio.Task[Any]) -> str:
    """The task, and the chain of awaits down to where it waits."""
    places: list[str] = []
    awaited: Any = task.get_coro()
    while awaited is not None:
        frame = _first(awaited, "cr_frame", "gi_frame", "ag_frame")
        if frame is not None:
            code = frame.f_code
            places.append(f"{code.co_name} ({code.co_filename.rpartition('/')[2]}:{frame.f_lineno})")
        awaited = _first(awaited, "cr_await", "gi_yieldfrom", "ag_await")
    return f"task {task.get_name()} in {' > '.join(places)}"


def _first(value: object, *names: str) -> Any:
    """The first of these attributes that the value has: coroutines and generators name the same thing differently."""
    return next((found for name in names if (found := getattr(value, name, None)) is not None), None)


def _nothing() -> None: ...
