"""How late the event loop is: a timer asks every 10 ms by how much it rang too late.

What it shows is how long anybody may have had to wait for the one thread that does everything: a slow handler, a write
that the kernel held up, the interpreter's lock. Measured only where somebody may look, with `--metrics`.
"""

from bisect import bisect_left

from odradek.broker.observability.request_metrics import LOOP_LAG_BOUNDS_MS, RequestMetrics
from odradek.runtime.environment import Environment

INTERVAL_MS = 10.0


class LoopLag:
    """Samples until it is stopped."""

    def __init__(self, environment: Environment, metrics: RequestMetrics) -> None:
        self._environment = environment
        self._metrics = metrics
        self._due_ms = environment.monotonic_ms() + INTERVAL_MS
        self._timer = environment.loop.call_later(INTERVAL_MS / 1000, self._sample)

    def stop(self) -> None:
        self._timer.cancel()

    def _sample(self) -> None:
        now_ms = self._environment.monotonic_ms()
        late_ms = max(0.0, now_ms - self._due_ms)
        self._metrics.loop_lag_counts[bisect_left(LOOP_LAG_BOUNDS_MS, late_ms)] += 1
        self._metrics.loop_lag_ms_sum += late_ms
        self._due_ms = now_ms + INTERVAL_MS
        self._timer = self._environment.loop.call_later(INTERVAL_MS / 1000, self._sample)
