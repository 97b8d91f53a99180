"""Backoff grows as Kafka's does, stays within its bounds whatever the number of failures, and is never nothing.

By a table with chance fixed, and as a property.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.client.network.backoff import Backoff


@pytest.mark.parametrize(
    ("chance", "expected"),
    [
        (0.0, [80.0, 160.0, 320.0, 640.0, 800.0, 800.0]),
        (0.5, [100.0, 200.0, 400.0, 800.0, 1000.0, 1000.0]),
        (0.999999, [120.0, 240.0, 480.0, 960.0, 1000.0, 1000.0]),
    ],
)
def test_doubles_with_a_fifth_of_chance_up_to_the_maximum(chance: float, expected: list[float]) -> None:
    backoff = Backoff(100, 1000, lambda: chance)
    assert [backoff.after_ms(failures) for failures in range(6)] == pytest.approx(expected, abs=0.01)


def test_no_chance_where_first_and_maximum_are_the_same() -> None:
    backoff = Backoff(70, 70, lambda: 0.1)
    assert [backoff.after_ms(failures) for failures in (0, 1, 50)] == [70, 70, 70]


def test_a_maximum_under_the_first_wait_is_the_wait() -> None:
    assert Backoff(500, 200, lambda: 0.9).after_ms(0) == 200


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.integers(0, 10**9), st.floats(0, 1, exclude_max=True), st.booleans())
def test_stays_within_bounds(first_ms: float, max_ms: float, failures: int, chance: float, is_whole: bool) -> None:
    if is_whole:
        first_ms, max_ms = int(first_ms), int(max_ms)
    wait_ms = Backoff(first_ms, max_ms, lambda: chance).after_ms(failures)
    assert 1 <= wait_ms <= max(max_ms, 1)
    assert wait_ms >= min(0.8 * first_ms, max_ms) * 0.999999
