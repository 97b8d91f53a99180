"""The world's events, in the order of virtual time: nothing else decides what happens next.

    scheduler.after(0.5, network_arrives, packet)
    scheduler.run(until_s=60.0)

Two events of one moment come in the order in which they were set. Times are seconds since the world began, which is
`START_S`, not 0: code might take that for "never". Nobody's clock shows them (clock.py).

What only the garbage collector ends would end at another moment in each run, for it counts what other tests made. So it
is switched off while a world runs, and called every `COLLECT_STEPS` events.
"""

import asyncio
import gc
import sys
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Final

START_S: Final = 1_000.0
COLLECT_STEPS: Final = 100_000


class Timer(list[Any]):
    """An event that was set and may be taken back: its time, its number, what is called, and with what.

    (A list is compared in C, where the order of events is kept; half of a history's events are never looked at again.)
    """

    __slots__ = ()

    def cancel(self) -> None:
        self[2] = None
        self[3] = ()


class Scheduler:
    """See the module. `steps` counts the events so far."""

    __slots__ = ("_collect_at_step", "_count", "_events", "_is_stopped", "_until_s", "now_s", "steps")

    def __init__(self) -> None:
        self.now_s = START_S
        self.steps = 0
        self._collect_at_step = COLLECT_STEPS
        self._count = 0
        self._events: list[Timer] = []
        self._is_stopped = False
        self._until_s = START_S

    def at(self, at_s: float, callback: Callable[..., object], *args: Any) -> Timer:
        """Sets an event; one in the past comes next."""
        self._count = count = self._count + 1
        now_s = self.now_s
        timer = Timer((at_s if at_s > now_s else now_s, count, callback, args))
        heappush(self._events, timer)
        return timer

    def after(self, delay_s: float, callback: Callable[..., object], *args: Any) -> Timer:
        return self.at(self.now_s + delay_s, callback, *args)

    def stop(self) -> None:
        """Has `run` return after the present event."""
        self._is_stopped = True

    def goes_on_to(self, at_s: float) -> bool:
        """Whether nothing is to happen up to and with this moment. Then it has come, as if an event had been set to it.

        For who has something to do again and again: it saves the event.
        """
        events = self._events
        while events and events[0][2] is None:
            heappop(events)
        if at_s > self._until_s or self._is_stopped or (events and events[0][0] <= at_s):
            return False
        self.now_s = at_s
        self.steps += 1
        return True

    def run(self, until_s: float) -> None:
        """Lets time pass: up to and with `until_s`, or until `stop`. Raises what an event raises."""
        self._is_stopped = False
        was_enabled, outside, hooks = gc.isenabled(), asyncio._get_running_loop(), sys.get_asyncgen_hooks()
        gc.disable()
        asyncio._set_running_loop(None)  # each process has its own (process_loop.py)
        try:
            self._run(until_s)
        finally:
            asyncio._set_running_loop(outside)
            sys.set_asyncgen_hooks(*hooks)
            if was_enabled:
                gc.enable()
        if not self._is_stopped:
            self.now_s = max(self.now_s, until_s)

    def _run(self, until_s: float) -> None:
        events = self._events
        self._until_s = until_s
        while events and events[0][0] <= until_s and not self._is_stopped:
            at_s, _, callback, args = heappop(events)
            if callback is None:
                continue
            self.now_s = at_s
            self.steps += 1
            if self.steps >= self._collect_at_step:
                self._collect()
            callback(*args)

    def _collect(self) -> None:
        self._collect_at_step = self.steps + COLLECT_STEPS
        gc.collect()
