"""`Pace`: even, no more than N in any second whatever pauses there were, and no fewer where nothing pauses."""

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.client.commands.pace import Pace

START_MS = 1_000_000.0


def sent(per_second: float, count: int, late_ms: list[float], pauses: dict[int, float]) -> list[float]:
    """When so many records go: timers ring late by these in turn, and before some records there is a pause."""
    now_ms = START_MS
    pace = Pace(per_second, now_ms)
    found: list[float] = []
    for number in range(count):
        now_ms += pauses.get(number, 0.0)
        for _ in range(100):
            wait_ms = pace.wait_ms(now_ms)
            if wait_ms <= 0:
                break
            now_ms += wait_ms + late_ms[number % len(late_ms)]
        else:
            raise AssertionError("it waits for ever")
        found.append(now_ms)
        pace.sent(now_ms)
    return found


def most_in_a_second(times_ms: list[float]) -> int:
    return max(sum(start <= each < start + 1000.0 for each in times_ms[index:]) for index, start in enumerate(times_ms))


@given(
    per_second=st.one_of(st.floats(0.5, 20), st.sampled_from([1.0, 10.0, 100.0, 300.0])),
    count=st.integers(2, 400),
    late_ms=st.lists(st.floats(0, 12), min_size=1, max_size=5),
    pauses=st.dictionaries(st.integers(0, 400), st.floats(0, 20_000), max_size=4),
)
def test_no_second_has_more_than_the_rate(
    per_second: float, count: int, late_ms: list[float], pauses: dict[int, float]
) -> None:
    assert most_in_a_second(sent(per_second, count, late_ms, pauses)) <= ceil(per_second)


def test_after_a_pause_it_goes_on_as_before() -> None:
    """`(echo x; sleep 5; seq 100) | odradek produce t --rate 10` sent 50 records at once."""
    times_ms = sent(10, 101, [0.0], {1: 5_000})
    assert [each - START_MS for each in times_ms[:4]] == [0, 5_000, 5_098, 5_198]
    assert times_ms[-1] - times_ms[1] >= 99 * 100 - 2


@pytest.mark.parametrize("per_second", [0.5, 10.0, 1_000.0, 50_000.0])
def test_without_a_pause_it_is_no_slower(per_second: float) -> None:
    count = max(3, int(per_second * 2))
    times_ms = sent(per_second, count, [0.0, 0.9], {})
    assert times_ms[-1] - times_ms[0] <= (count - 1) * 1000.0 / per_second * 1.002 + 5
