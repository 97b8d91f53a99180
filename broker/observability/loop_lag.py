"""How late the event loop is: a timer asks every 10 ms by how much it rang too late.

What it shows is how long anybody may have had to wait for the one thread that does everything: a slow handler, a write
that the kernel held up, the interpreter's lock. Measured only where somebody may look, with `--metrics`.
"""

from odradek.broker.observability.histogram import Histogram
from odradek.runtime.environment import Environment

INTERVAL_MS = 10.0


class LoopLag:
    """Samples until it is stopped."""

    def __init__(self, environment: Environment, lag_s: Histogram) -> None:
        self._environment = environment
        self._lag_s = lag_s
        self._due_ms = environment.monotonic_ms() + INTERVAL_MS
        self._timer = environment.loop.call_later(INTERVAL_MS / 1000, self._sample)

    def stop(self) -> None:
        self._timer.cancel()

    def _sample(self) -> None:
        now_ms = self._environment.monotonic_ms()
        self._lag_s.observe(max(0.0, now_ms - self._due_ms) / 1000)
        self._due_ms = now_ms + INTERVAL_MS
        self._timer = self._environment.loop.call_later(INTERVAL_MS / 1000, self._sample)
