"""A machine's clocks: each counts what it is for, and none of them goes back but the time of day."""

import pytest

from odradek.runtime.environment import NS_PER_MS
from odradek.testing.sim.world.clock import Clock
from odradek.testing.sim.world.scheduler import START_S, Scheduler


def test_a_clock_begins_at_its_uptime_and_runs_at_its_rate() -> None:
    scheduler = Scheduler()
    clock = Clock(scheduler, uptime_s=50.0, rate=1.5)
    scheduler.run(START_S + 10.0)
    assert clock.monotonic_s() == pytest.approx(65.0)
    assert clock.boottime_s() == pytest.approx(65.0)
    assert clock.world_s(80.0) == pytest.approx(START_S + 20.0)


def test_a_machine_that_sleeps_counts_only_its_boottime() -> None:
    scheduler = Scheduler()
    clock = Clock(scheduler, uptime_s=50.0)
    scheduler.run(START_S + 1.0)
    clock.sleep()
    scheduler.run(START_S + 11.0)
    assert clock.monotonic_s() == pytest.approx(51.0)
    assert clock.boottime_s() == pytest.approx(61.0)
    clock.wake()
    scheduler.run(START_S + 12.0)
    assert clock.monotonic_s() == pytest.approx(52.0)
    assert clock.boottime_s() == pytest.approx(62.0)
    assert clock.world_s(53.0) == pytest.approx(START_S + 13.0)


def test_the_time_of_day_jumps_and_nothing_else() -> None:
    scheduler = Scheduler()
    clock = Clock(scheduler, uptime_s=50.0)
    before_ns, before_s = clock.wall_ns(), clock.monotonic_s()
    clock.jump(-3600.0)
    assert clock.wall_ns() - before_ns == -3_600_000 * NS_PER_MS
    assert clock.monotonic_s() == before_s
    assert clock.wall_offset_s == -3600.0
