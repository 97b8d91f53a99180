"""Rates over windows as Kafka measures them, and for how long a client has to be silent: by hand, and by what must hold
of any history."""

from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.quotas.rate import INT_MAX, Rate, Windows, as_int

WINDOWS = Windows.of_seconds(11, 1)


def test_who_has_just_begun_is_measured_over_all_windows_but_one() -> None:
    rate = Rate(WINDOWS, 5_000)
    rate.record(1_000, 5_000)
    assert rate.elapsed_ms(5_000) == 10_000
    assert rate.per_second(5_000) == 100
    assert rate.elapsed_ms(5_300) == 10_300, "and what of the present one has passed"
    assert rate.silence_ms(100, 5_000) == 0
    assert rate.silence_ms(50, 5_000) == 10_000, "(100 - 50) / 50 * 10 s"


def test_after_its_silence_a_client_is_at_its_limit() -> None:
    rate = Rate(WINDOWS, 0)
    rate.record(1_050, 0)
    silence_ms = rate.silence_ms(100, 0)
    assert silence_ms == 500
    assert rate.per_second(silence_ms) == 100
    assert rate.silence_ms(100, silence_ms) == 0


def test_windows_follow_one_another_and_the_oldest_goes() -> None:
    rate = Rate(WINDOWS, 0)
    for second in range(30):
        rate.record(100, second * 1000)
    assert rate.elapsed_ms(29_000) == 10_000, "the one of 18 s has just gone"
    assert rate.per_second(29_000) == 110
    assert rate.per_second(29_000 + 10_999) == 100_000 / 10_999, "the last one still counts"
    assert rate.per_second(29_000 + 11_000) == 0, "all is forgotten"


def test_what_is_taken_back_was_never_there() -> None:
    rate = Rate(WINDOWS, 0)
    rate.record(700, 0)
    rate.record(5_000, 10)
    rate.record(-5_000, 10)
    assert rate.per_second(10) == 700_000 / 10_010


def test_one_window_alone_counts_what_it_has() -> None:
    rate = Rate(Windows.of_seconds(1, 2), 0)
    rate.record(10, 0)
    assert rate.elapsed_ms(0) == 1, "a window without length would have no rate"
    assert rate.per_second(1_000) == 10
    assert rate.per_second(2_000) == 0


def test_a_limit_of_nothing_silences_for_as_long_as_can_be_said() -> None:
    rate = Rate(WINDOWS, 0)
    rate.record(1, 0)
    assert rate.silence_ms(0, 0) == INT_MAX
    assert rate.silence_ms(1e-12, 0) == INT_MAX


def test_durations_are_rounded_as_java_does() -> None:
    assert [as_int(each) for each in (0.49, 0.5, 1.5, 2.5, 1e300, float("inf"))] == [0, 1, 2, 3, INT_MAX, INT_MAX]


@given(
    st.lists(st.tuples(st.integers(0, 3_000), st.integers(0, 10_000)), min_size=1, max_size=60),
    st.integers(1, 5_000),
)
def test_who_is_silent_for_as_long_as_he_is_told_keeps_his_limit(requests: list[tuple[int, int]], limit: int) -> None:
    """However requests come: over the whole time the average is at most the limit, and what one may use at once."""
    rate, now_ms, total = Rate(WINDOWS, 0), 0, 0
    largest = max(size for _, size in requests)
    for pause_ms, size in requests:
        now_ms += pause_ms
        rate.record(size, now_ms)
        total += size
        now_ms += rate.silence_ms(limit, now_ms)
    assert total <= limit * (now_ms / 1000 + 11) + largest


@given(st.lists(st.tuples(st.integers(0, 2_500), st.integers(0, 1_000)), max_size=80))
def test_it_never_counts_more_than_was_recorded_in_the_span(records: list[tuple[int, int]]) -> None:
    rate, now_ms = Rate(WINDOWS, 0), 0
    times: list[tuple[int, int]] = []
    for pause_ms, value in records:
        now_ms += pause_ms
        rate.record(value, now_ms)
        times.append((now_ms, value))
        counted = rate.per_second(now_ms) * rate.elapsed_ms(now_ms) / 1000
        least = sum(each for at_ms, each in times if now_ms - at_ms < 10_000)
        most = sum(each for at_ms, each in times if now_ms - at_ms < 13_000)
        assert least - 0.01 <= counted <= most + 0.01
