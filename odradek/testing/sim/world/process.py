"""One simulated process: its loop's rounds in virtual time, its helper threads, and how it is stopped and killed.

Everything from outside comes in by `post`: the network's bytes, a store's answer, the end of a helper thread's work. A
round takes the machine `Cpu.round_ms`, and what the process waits for in its loop's thread (a write, a slow disk) on
top, so a loop that goes round and round makes time pass; `Stuck` ends one that does so without end.

- `pause` is SIGSTOP: nothing of it runs, what is posted stays, its sockets stay open, and time goes on. After `resume`
  what came meanwhile is served before the timers that are due by then.
- `kill` is SIGKILL. First it is severed: `is_dead` is set, and who holds something of the world for it (disk, network,
  store) gives that up; from then on these raise `Killed` or never return, and have no effect. Only then its tasks are
  dropped. It may be killed from within, by its disk in the middle of a call: what it does then ends right there.

Helper threads are events: a function runs at one moment, some time after it was asked for, and what it waited for the
device comes on top before its result is told.
"""

import random
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from odradek.testing.killed import Killed
from odradek.testing.sim.world.clock import Clock
from odradek.testing.sim.world.process_loop import ProcessLoop
from odradek.testing.sim.world.scheduler import Scheduler, Timer
from odradek.testing.sim.world.trace import Trace

T = TypeVar("T")

ROUNDS_PER_S_MAX: Final = 40_000
HELPERS_MAX: Final = 6
"""Until `Environment.allow_helper_threads` says otherwise: four more than a small machine has processors."""


class Stuck(AssertionError):
    """A process goes round without end."""


@dataclass(slots=True)
class Cpu:
    """How fast a machine computes. It may be changed at any time."""

    round_ms: float = 0.02
    thread_ms: float = 0.05
    """From asking for a helper thread to its start, on average."""
    slowness: float = 1.0

    def begin(self) -> None:
        """A round begins."""

    def round_s(self, chance: float) -> float:
        """How long the round took that ends here, besides what it has waited for."""
        return self.round_ms * self.slowness * (0.5 + chance) / 1000.0


@dataclass(slots=True)
class _Work:
    """What a helper thread is to do."""

    function: Callable[[], Any]
    done: Callable[[Any, Exception | None], object]


class Process:
    """See the module. `errors` takes what its loop's exception handler is told, and what tasks end with."""

    def __init__(
        self,
        name: str,
        scheduler: Scheduler,
        trace: Trace,
        clock: Clock,
        rng: random.Random,
        cpu: Cpu | None = None,
        errors: list[str] | None = None,
    ) -> None:
        self.name = name
        self.scheduler = scheduler
        self.trace = trace
        self.clock = clock
        self.rng = rng
        self.cpu = Cpu() if cpu is None else cpu
        self.loop = ProcessLoop(clock, self._report)
        self.is_dead = False
        self.is_paused = False
        self.helpers_max = HELPERS_MAX
        self.rounds = 0
        self.errors: list[str] = [] if errors is None else errors
        self._unstarted: dict[Coroutine[Any, Any, object], None] = {}
        self._severs: list[Callable[[], object]] = []
        self._is_inside = False  # some of its code is running
        self._is_going_round = False
        self._spent_s = 0.0  # by the code that is running, waiting in a call
        self._free_at_s = scheduler.now_s
        self._round: Timer | None = None
        self._round_at_s = 0.0
        self._alarm: Timer | None = None  # for the loop's next timer, or an earlier one that was cancelled since
        self._alarm_due_s = 0.0  # by the loop's clock
        self._counted_s = scheduler.now_s  # when `rounds` was looked at last,
        self._counted_next = ROUNDS_PER_S_MAX  # and where it is looked at again
        self._waiting: deque[_Work] = deque()
        self._helpers = 0
        self._stopped_helpers: list[_Work] = []

    def __repr__(self) -> str:
        return f"<process {self.name}>"

    # -- from outside ----------------------------------------------------------------------------------------------

    def post(self, callback: Callable[..., object], *args: Any) -> None:
        """Has the loop call it in its next round. Nothing happens when the process is dead."""
        if not self.is_dead:
            self.loop.call_soon(callback, *args)
            self._wake(self.scheduler.now_s)

    def start(self, coroutine: Coroutine[Any, Any, object], name: str) -> None:
        """Begins a task in the process."""
        self._unstarted[coroutine] = None
        self.post(self._start, coroutine, name)

    def _start(self, coroutine: Coroutine[Any, Any, object], name: str) -> None:
        del self._unstarted[coroutine]
        task = self.loop.create_task(coroutine, name=name)
        task.add_done_callback(self._ended)

    def _ended(self, task: Any) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._report({"message": f"task {task.get_name()} ended with an error", "exception": error})

    def _report(self, context: dict[str, Any]) -> None:
        if self.is_dead:
            return
        error = context.get("exception")
        what = f"{context.get('message')}: {type(error).__name__}: {error}"
        self.errors.append(f"{self.name}: {what}")
        self.trace.note(self.name, "error", what)

    # -- rounds ----------------------------------------------------------------------------------------------------

    def _wake(self, at_s: float) -> None:
        """Sets the next round to this moment, or leaves it where it is earlier."""
        if self.is_paused or self.is_dead or self._is_going_round:
            return  # after a round it is looked for what is ready
        if at_s < self._free_at_s:
            at_s = self._free_at_s
        if self._round is None or at_s < self._round_at_s:
            if self._round is not None:
                self._round.cancel()
            self._round_at_s = at_s
            self._round = self.scheduler.at(at_s, self._go_round)

    def _go_round(self) -> None:
        """Goes round once, and again as long as nothing else in the world comes in between."""
        self._round = None
        scheduler, loop, cpu, chance = self.scheduler, self.loop, self.cpu, self.rng.random
        ready, go_round, goes_on_to = loop.ready, loop.go_round, scheduler.goes_on_to
        self._is_inside = self._is_going_round = True
        loop.enter()
        cpu.begin()
        try:
            while True:
                self.rounds = rounds = self.rounds + 1
                if rounds >= self._counted_next:
                    self._look_at_rounds()
                self._spent_s = 0.0
                go_round()
                took_s = self._spent_s + cpu.round_s(chance())
                self._free_at_s = free_at_s = scheduler.now_s + took_s
                if not ready or self.is_dead or self.is_paused or not goes_on_to(free_at_s):
                    break
        except Killed:
            assert self.is_dead, "nothing else ends a process like that"
        finally:
            loop.leave()
            self._is_inside = self._is_going_round = False
        if self.is_dead:
            self._bury()
        elif ready:
            self._wake(self._free_at_s)
        else:
            self._set_alarm()

    def _set_alarm(self) -> None:
        """Has it go round when its next timer is due. An earlier alarm is left to ring for nothing: most timers are
        cancelled, and the next one is at about the same distance."""
        timers = self.loop.timers
        if timers and (self._alarm is None or timers[0][0] < self._alarm_due_s):
            if self._alarm is not None:
                self._alarm.cancel()
            self._alarm_due_s = due_s = timers[0][0]
            self._alarm = self.scheduler.at(self.clock.world_s(due_s), self._rang)

    def _rang(self) -> None:
        self._alarm = None
        if self.is_paused or self.is_dead:
            return  # who goes on goes round
        due_s = self.loop.next_timer_s
        if due_s is not None and self.clock.world_s(due_s) > self.scheduler.now_s:
            self._set_alarm()
        elif self._round is None and self._free_at_s <= self.scheduler.now_s:
            self._go_round()
        else:
            self._wake(self.scheduler.now_s)

    def _help_out(self, code: Callable[[], object]) -> float:
        """Runs code of the process in a helper thread; how long it waited in calls, in seconds."""
        self._spent_s = 0.0
        self._is_inside = True
        try:
            code()
        except Killed:
            assert self.is_dead, "nothing else ends a process like that"
        finally:
            self._is_inside = False
        if self.is_dead:
            self._bury()
        return self._spent_s

    def spend(self, seconds: float) -> None:
        """The code that is running waits so long in a call: for a device, which is no slower on a slow machine."""
        self._spent_s += seconds

    def _look_at_rounds(self) -> None:
        """Raises Stuck if so many have come in less than a second."""
        now_s = self.scheduler.now_s
        if now_s - self._counted_s < 1.0:
            names = [task.get_name() for task in self.loop.running_tasks()]
            raise Stuck(f"{self.name} goes round more than {ROUNDS_PER_S_MAX:,} times in a second; tasks: {names}")
        self._counted_s, self._counted_next = now_s, self.rounds + ROUNDS_PER_S_MAX

    # -- helper threads --------------------------------------------------------------------------------------------

    async def run_in_helper(self, function: Callable[[], T]) -> T:
        """What `Environment.run_blocking` is here. When it is cancelled the function runs all the same."""
        future = self.loop.create_future()

        def done(result: Any, error: Exception | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        self._waiting.append(_Work(function, done))
        self._start_helpers()
        result: T = await future
        return result

    def _start_helpers(self) -> None:
        while self._waiting and self._helpers < self.helpers_max:
            self._helpers += 1
            delay_ms = self.cpu.thread_ms * self.cpu.slowness * self.rng.expovariate(1.0)
            self.scheduler.after(delay_ms / 1000.0, self._help, self._waiting.popleft())

    def _help(self, work: _Work) -> None:
        if self.is_paused:
            self._stopped_helpers.append(work)
            return
        if self.is_dead:
            return
        result: Any = None
        failed: Exception | None = None

        def run() -> None:
            nonlocal result, failed
            try:
                result = work.function()
            except Exception as error:  # noqa: BLE001 - handed to whoever awaits it
                failed = error

        took_s = self._help_out(run)
        self.scheduler.after(took_s, self._helped, work, result, failed)

    def _helped(self, work: _Work, result: Any, failed: Exception | None) -> None:
        if self.is_dead:
            return
        self._helpers -= 1
        self.post(work.done, result, failed)
        self._start_helpers()

    # -- stopped, killed -------------------------------------------------------------------------------------------

    def pause(self) -> None:
        self.is_paused = True
        if self._round is not None:
            self._round.cancel()
            self._round = None

    def resume(self) -> None:
        self.is_paused = False
        stopped, self._stopped_helpers = self._stopped_helpers, []
        for work in stopped:
            self.scheduler.after(0.0, self._help, work)
        self._wake(self.scheduler.now_s)

    def check(self) -> None:
        """For all who do something on behalf of the process. Raises Killed."""
        if self.is_dead:
            raise Killed

    def when_killed(self, sever: Callable[[], object]) -> None:
        """Has it called when the process is killed, before anything of it is dropped."""
        self._severs.append(sever)

    def kill(self) -> None:
        """Ends it. Where its own code is running, the caller raises Killed at once."""
        if self.is_dead:
            return
        self.is_dead = True
        self.trace.note(self.name, "dead")
        for sever in self._severs:
            sever()
        self._severs.clear()
        if self._round is not None:
            self._round.cancel()
            self._round = None
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if not self._is_inside:
            self._bury()

    def _bury(self) -> None:
        self._waiting.clear()
        self._stopped_helpers.clear()
        self.loop.kill()
        for coroutine in self._unstarted:
            coroutine.close()
        self._unstarted.clear()
