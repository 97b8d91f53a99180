"""A quota by its sums: over a long time no more than the rate passes, whatever the sizes and moments."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.config.option import LONG_MAX
from odradek.broker.replica.quota import SECONDS_SAVED, WAIT_MS_MAX, ReplicationQuota, is_throttled


def test_there_is_room_until_a_second_is_used_up() -> None:
    quota = ReplicationQuota(1000, 0.0)
    quota.record(999, 0.0)
    assert quota.wait_ms(0.0) == 0.0
    quota.record(501, 0.0)
    assert quota.wait_ms(0.0) == pytest.approx(501.0)
    assert quota.wait_ms(499.0) == pytest.approx(2.0)
    assert quota.wait_ms(502.0) == 0.0


def test_what_was_not_used_is_saved_for_a_second_only() -> None:
    quota = ReplicationQuota(1000, 0.0)
    quota.record(1100, 1_000_000.0)
    assert quota.wait_ms(1_000_000.0) == pytest.approx(101.0)


def test_without_a_limit_nothing_waits() -> None:
    quota = ReplicationQuota(LONG_MAX, 0.0)
    for number in range(1000):
        quota.record(1 << 30, number * 1.0)
        assert quota.wait_ms(number * 1.0) == 0.0


def test_a_new_rate_counts_at_once_and_a_debt_stays() -> None:
    quota = ReplicationQuota(LONG_MAX, 0.0)
    quota.configure(1000, 10.0)
    quota.record(1500, 10.0)
    assert quota.wait_ms(10.0) == pytest.approx(501.0)
    quota.configure(10_000, 10.0)
    assert quota.wait_ms(10.0) == pytest.approx(50.1)


def test_a_rate_of_nothing_waits_again_and_again() -> None:
    quota = ReplicationQuota(0, 0.0)
    assert quota.wait_ms(0.0) == quota.wait_ms(9e9) == WAIT_MS_MAX


@given(
    rate=st.integers(1, 10_000_000),
    events=st.lists(st.tuples(st.floats(0, 5000), st.integers(1, 20_000_000)), min_size=1, max_size=60),
)
def test_no_more_than_the_rate_passes(rate: int, events: list[tuple[float, int]]) -> None:
    """Whoever asks before each piece, and waits as long as told, is over by the last piece at most."""
    quota, now_ms, passed_bytes, last_bytes = ReplicationQuota(rate, 0.0), 0.0, 0, 0
    for pause_ms, size_bytes in events:
        now_ms += pause_ms
        while wait_ms := quota.wait_ms(now_ms):
            now_ms += max(wait_ms, 1.0) * (1.0 + passed_bytes // rate if wait_ms == WAIT_MS_MAX else 1.0)
        allowed_bytes = rate * (now_ms / 1000.0 + SECONDS_SAVED)
        assert passed_bytes <= allowed_bytes + 1.0
        quota.record(size_bytes, now_ms)
        passed_bytes, last_bytes = passed_bytes + size_bytes, size_bytes
    assert last_bytes


@pytest.mark.parametrize(
    ("values", "expected"),
    [((), False), (("*",), True), (("0:1", "3:2"), True), (("2:3",), False), (("3: 2",), True), (("3:22",), False)],
)
def test_which_replicas_are_throttled(values: tuple[str, ...], expected: bool) -> None:
    assert is_throttled(values, 3, 2) is expected
