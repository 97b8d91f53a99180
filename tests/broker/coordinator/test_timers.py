"""Deadlines that are set, put off and cancelled at random come due as a plain dictionary says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.coordinator.timers import CANCELLED_MAX, Timers

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.sampled_from("abcd"), st.integers(0, 30)),
        st.tuples(st.just("cancel"), st.sampled_from("abcd"), st.just(0)),
        st.tuples(st.just("wait"), st.just(""), st.integers(0, 10)),
    ),
    max_size=60,
)


@pytest.mark.parametrize("cancelled_max", [0, CANCELLED_MAX])
@given(steps=STEPS)
def test_what_is_due_comes_once_and_in_its_order(cancelled_max: int, steps: list[tuple[str, str, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("odradek.broker.coordinator.timers.CANCELLED_MAX", cancelled_max)
        due_as_expected(steps)


def due_as_expected(steps: list[tuple[str, str, int]]) -> None:
    timers, expected, now_ms = Timers[str](), dict[str, int](), 0
    for step, key, number in steps:
        if step == "set":
            timers.set(key, now_ms + number)
            expected[key] = now_ms + number
        elif step == "cancel":
            timers.cancel(key)
            expected.pop(key, None)
        else:
            now_ms += number
            due: list[str] = []
            while (found := timers.pop_due(now_ms)) is not None:
                due.append(found)
            assert sorted(due) == sorted(key for key, deadline_ms in expected.items() if deadline_ms <= now_ms)
            assert [expected[key] for key in due] == sorted(expected[key] for key in due)
            expected = {key: deadline_ms for key, deadline_ms in expected.items() if deadline_ms > now_ms}
        assert timers.next_deadline_ms == min(expected.values(), default=None)
        assert len(timers) == len(expected)
        assert all(
            (key in timers) == (key in expected) and timers.deadline_ms(key) == expected.get(key) for key in "abcd"
        )


def test_a_deadline_that_is_put_off_a_thousand_times_stands_in_the_heap_once() -> None:
    timers = Timers[str]()
    for deadline_ms in range(1_000):
        timers.set("member", 5_000 + deadline_ms)
    assert timers.pop_due(5_000) is None, "it was put off"
    assert len(timers._heap) <= 2  # pyright: ignore[reportPrivateUsage]
    assert timers.pop_due(5_999) == "member"


@pytest.mark.parametrize("staying", [0, 10, 1000])
def test_those_who_come_and_go_leave_nothing_behind(staying: int) -> None:
    """A session of half an hour, a thousand times a second: the heap would hold 1.8 million."""
    timers = Timers[str]()
    for number in range(staying):
        timers.set(f"stays {number}", 1_000 + number)
    for number in range(20_000):
        timers.set(f"goes {number}", 1_800_000 + number)
        timers.cancel(f"goes {number}")
    assert len(timers) == staying
    limit = 2 * staying + CANCELLED_MAX + 1
    assert len(timers._heap) <= limit  # pyright: ignore[reportPrivateUsage]
    assert len(timers._queued) <= limit  # pyright: ignore[reportPrivateUsage]
    assert timers.next_deadline_ms == (1_000 if staying else None)


def test_what_is_left_when_the_heap_is_rebuilt_comes_in_its_order() -> None:
    timers = Timers[int]()
    for key in range(1_000):
        timers.set(key, 10_000 - key)
    for key in range(0, 1_000, 2):
        timers.set(key, 20_000 - key)
    for key in range(1_000):
        if key % 10:
            timers.cancel(key)
    assert [timers.pop_due(30_000) for _ in range(100)] == [*range(990, -1, -10)]
    assert timers.pop_due(30_000) is None
