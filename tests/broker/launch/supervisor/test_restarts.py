"""Who dies is started again, later each time, and after five deaths within a minute no more."""

from odradek.broker.launch.supervisor.restarts import Restarts


def test_each_start_waits_twice_as_long_and_the_fifth_death_is_the_last() -> None:
    restarts = Restarts()
    assert [restarts.died(now_ms) for now_ms in (0.0, 10_000.0, 20_000.0, 30_000.0, 60_000.0)] == [
        100.0,
        200.0,
        400.0,
        800.0,
        None,
    ]


def test_deaths_of_more_than_a_minute_ago_are_forgotten() -> None:
    restarts = Restarts()
    assert [restarts.died(20_000.0 * number) for number in range(100)][4:] == [800.0] * 96
    assert restarts.died(10_000_000.0) == 100.0
