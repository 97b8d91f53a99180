"""A machine's clocks, which nobody shares: each began at another moment, may run at another speed, and may jump.

`monotonic_s` is what the event loop counts: since the machine was started, and not while it sleeps. `boottime_s` counts
on meanwhile (Linux's CLOCK_BOOTTIME). `wall_ns` is the time of day; `jump` sets it, and only it.
"""

from typing import Final

from odradek.testing.sim.world.scheduler import START_S, Scheduler

WALL_S: Final = 1_790_000_000.0
"""The time of day at which every world begins."""


class Clock:
    """The clocks of one machine, from one start of it to the next."""

    __slots__ = ("_base_s", "_boot_base_s", "_monotonic_rate", "_rate", "_scheduler", "_wall_offset_s")

    def __init__(self, scheduler: Scheduler, uptime_s: float, wall_offset_s: float = 0.0, rate: float = 1.0) -> None:
        """`uptime_s`: since when it runs, by its own clock. `rate`: its seconds in a second of the world's."""
        self._scheduler = scheduler
        self._rate = self._monotonic_rate = rate
        # What they show is so much more than the world's time, times the rate.
        self._base_s = self._boot_base_s = uptime_s - scheduler.now_s * rate
        self._wall_offset_s = wall_offset_s

    def monotonic_s(self) -> float:
        return self._base_s + self._scheduler.now_s * self._monotonic_rate  # (asked for more often than anything else)

    def boottime_s(self) -> float:
        return self._boot_base_s + self._scheduler.now_s * self._rate

    def wall_ns(self) -> int:
        now_s = self._scheduler.now_s - START_S
        return int((WALL_S + now_s + self._wall_offset_s) * 1e6) * 1000

    @property
    def wall_offset_s(self) -> float:
        """How far the time of day is off."""
        return self._wall_offset_s

    def jump(self, by_s: float) -> None:
        """Sets the time of day forward, or back."""
        self._wall_offset_s += by_s

    def sleep(self) -> None:
        """The machine is suspended."""
        assert self._monotonic_rate, "it sleeps already"
        self._base_s, self._monotonic_rate = self.monotonic_s(), 0.0

    def wake(self) -> None:
        assert not self._monotonic_rate, "it does not sleep"
        self._monotonic_rate = self._rate
        self._base_s -= self._scheduler.now_s * self._rate

    def world_s(self, monotonic_s: float) -> float:
        """When, in the world's time, `monotonic_s` will be reached, if the machine stays awake."""
        return (monotonic_s - self._base_s) / self._rate
