"""Tokens of changes (KIP-599): a burst, a debt, and how long it takes to pay it."""

from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.quotas.rate import Windows
from odradek.broker.quotas.token_bucket import TokenBucket

WINDOWS = Windows.of_seconds(11, 1)


def test_it_is_full_at_first_and_never_more_than_full() -> None:
    bucket = TokenBucket(WINDOWS, 0)
    assert bucket.tokens(5, 0) == 55
    bucket.record(50, 5, 0)
    assert bucket.tokens(5, 0) == 5
    assert bucket.tokens(5, 2_000) == 15
    assert bucket.tokens(5, 3_600_000) == 55


def test_it_may_be_overdrawn_and_the_debt_is_paid_at_the_rate() -> None:
    bucket = TokenBucket(WINDOWS, 0)
    bucket.record(100, 5, 0)
    assert bucket.tokens(5, 0) == -45
    assert bucket.silence_ms(5, 0) == 9_000
    assert bucket.silence_ms(5, 8_999) == 1
    assert bucket.silence_ms(5, 9_000) == 0


def test_another_limit_counts_from_now_on() -> None:
    bucket = TokenBucket(WINDOWS, 0)
    bucket.record(100, 5, 0)
    assert bucket.silence_ms(9, 0) == 5_000
    assert bucket.tokens(1, 60_000) == 11


@given(st.lists(st.tuples(st.integers(0, 5_000), st.integers(1, 500)), max_size=50), st.integers(1, 50))
def test_who_waits_until_nothing_is_owed_keeps_the_rate(changes: list[tuple[int, int]], limit: int) -> None:
    bucket, now_ms, total = TokenBucket(WINDOWS, 0), 0, 0
    for pause_ms, partitions in changes:
        now_ms += pause_ms + bucket.silence_ms(limit, now_ms + pause_ms)
        bucket.record(partitions, limit, now_ms)
        total += partitions
    assert total <= limit * (now_ms / 1000 + 11) + 500 + limit
