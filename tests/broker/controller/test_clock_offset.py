"""Clocks that are apart are told of once, and once more when they agree again; a slow answer proves nothing."""

import logging

import pytest

from odradek.broker.controller.clock_offset import ClockOffset

NOW_MS = 1_700_000_000_000


def test_the_offset_is_from_the_middle_of_the_round_trip() -> None:
    clock = ClockOffset()
    clock.compared(1, NOW_MS, 40.0, NOW_MS + 20)
    assert clock.offset_ms == 0.0
    clock.compared(1, NOW_MS, 40.0, NOW_MS - 480)
    assert clock.offset_ms == 500.0


@pytest.mark.parametrize(("told_ms", "words"), [(NOW_MS - 1500, "1.5 s ahead of"), (NOW_MS + 2500, "2.5 s behind")])
def test_clocks_apart_are_told_of_once_and_when_they_agree_again(
    told_ms: int, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    clock = ClockOffset()
    for _ in range(3):
        clock.compared(1, NOW_MS, 0.0, told_ms)
    (warning,) = caplog.records
    assert warning.levelno == logging.WARNING
    assert f"the clock of this machine is {words} that of the controller, broker 1" in warning.getMessage()
    for _ in range(2):
        clock.compared(1, NOW_MS, 0.0, NOW_MS)
    (_, news) = caplog.records
    assert "agrees with that of the controller" in news.getMessage()


def test_a_second_is_nothing_and_a_slow_answer_proves_nothing(caplog: pytest.LogCaptureFixture) -> None:
    clock = ClockOffset()
    clock.compared(1, NOW_MS, 0.0, NOW_MS + 1000)
    clock.compared(1, NOW_MS, 4000.0, NOW_MS + 4900)
    assert clock.offset_ms == -2900.0
    assert not caplog.records


def test_alone_there_is_nobody_to_compare_with() -> None:
    clock = ClockOffset()
    clock.compared(1, NOW_MS, 0.0, NOW_MS - 5000)
    clock.alone()
    assert clock.offset_ms == 0.0
