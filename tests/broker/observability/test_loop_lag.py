"""The loop's lateness, on a loop whose clock is set by hand."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from odradek.broker.observability.histogram import Histogram
from odradek.broker.observability.loop_lag import INTERVAL_MS, LoopLag
from odradek.broker.observability.request_metrics import LOOP_LAG_BOUNDS_S
from odradek.runtime.environment import Environment


class Timer:
    def __init__(self) -> None:
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Loop:
    """One timer, which rings when the test says so."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.timer = Timer()
        self.callback: Callable[[], None] = _nothing
        self.delay_s = 0.0

    def time(self) -> float:
        return self.now_s

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        self.delay_s, self.callback = delay_s, callback
        return self.timer

    def ring(self, late_ms: float) -> None:
        self.now_s += self.delay_s + late_ms / 1000
        self.callback()


def _nothing() -> None:
    raise AssertionError("nothing was set")


@pytest.mark.parametrize(
    ("late_ms", "bucket"), [(0.0, 0), (0.9, 0), (1.5, 1), (49.0, 5), (51.0, 6), (499.0, 8), (501.0, 9), (60_000.0, 9)]
)
def test_each_sample_falls_into_its_bucket(late_ms: float, bucket: int) -> None:
    loop, lag_s = Loop(), Histogram(LOOP_LAG_BOUNDS_S)
    LoopLag(Environment(cast(Any, loop)), lag_s)
    loop.ring(late_ms)
    assert lag_s.counts[bucket] == 1
    assert sum(lag_s.counts) == 1
    assert lag_s.sum == pytest.approx(late_ms / 1000, abs=1e-9)
    assert len(lag_s.counts) == len(LOOP_LAG_BOUNDS_S) + 1


def test_a_late_sample_does_not_make_the_next_one_late() -> None:
    loop, lag_s = Loop(), Histogram(LOOP_LAG_BOUNDS_S)
    LoopLag(Environment(cast(Any, loop)), lag_s)
    loop.ring(300.0)
    loop.ring(0.0)
    assert loop.delay_s == INTERVAL_MS / 1000
    assert (lag_s.counts[0], lag_s.counts[8]) == (1, 1)


def test_it_ends_with_stop() -> None:
    loop = Loop()
    LoopLag(Environment(cast(Any, loop)), Histogram(LOOP_LAG_BOUNDS_S)).stop()
    assert loop.timer.is_cancelled
