"""A sweep gets to every id once, some in each step, and comes again an interval later."""

from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.txn.sweep import LOOKED_AT_TOGETHER, Sweep


@given(st.integers(0, 4 * LOOKED_AT_TOGETHER), st.integers(0, 100))
def test_every_id_is_looked_at_once_in_bounded_steps(count: int, late_ms: int) -> None:
    sweep, ids = Sweep(), [f"{number}" for number in range(count)]
    sweep.start(0, 1_000)
    assert list(sweep.step(ids, 999, 1_000)) == []
    now_ms = 1_000 + late_ms
    looked_at: list[str] = []
    while (deadline_ms := sweep.next_deadline_ms) is not None and deadline_ms <= now_ms:
        step = sweep.step(ids, now_ms, 1_000)
        assert len(step) <= LOOKED_AT_TOGETHER
        looked_at += step
    assert sorted(looked_at) == sorted(ids)
    assert sweep.next_deadline_ms == now_ms + 1_000


def test_nothing_is_due_before_the_start() -> None:
    sweep = Sweep()
    assert sweep.next_deadline_ms is None
    assert list(sweep.step(["a"], 10_000, 1_000)) == []
