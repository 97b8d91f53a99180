"""What is remembered of rebalances is bounded, in number and in length, and one that was refused is forgotten."""

import pytest

from odradek.broker.group.rebalance import (
    ID_SIZE_MAX,
    REASON_SIZE_MAX,
    REBALANCES_KEPT,
    Rebalance,
    RebalanceCause,
    Rebalances,
    forgotten,
    named,
    reason_given,
    remembered,
)


def rebalance(generation: int = 1, member_id: str = "a", instance_id: str | None = None, reason: str = "") -> Rebalance:
    return Rebalance(1_000, generation, RebalanceCause.MEMBER_LEFT, member_id, instance_id, reason, None)


def test_the_last_ones_are_kept() -> None:
    rebalances: Rebalances = ()
    for generation in range(REBALANCES_KEPT + 3):
        rebalances = remembered(rebalances, rebalance(generation))
    assert [each.generation for each in rebalances] == list(range(3, REBALANCES_KEPT + 3))


def test_the_one_that_was_refused_is_forgotten_and_none_that_equals_it() -> None:
    first, equal, last = rebalance(), rebalance(), rebalance(2)
    (left, other) = forgotten((first, equal, last), equal)
    assert left is first
    assert other is last
    assert forgotten((first,), last) == (first,), "it has been pushed out since"


@pytest.mark.parametrize(("size", "kept"), [(1, 1), (ID_SIZE_MAX, ID_SIZE_MAX), (40_000, ID_SIZE_MAX)])
def test_ids_are_bounded(size: int, kept: int) -> None:
    found = rebalance(1, "m" * size, "i" * size).bounded()
    assert (len(found.member_id), len(found.instance_id or "")) == (kept, kept)
    assert found.member_id.endswith("…") == (size > kept)


def test_reasons_are_bounded() -> None:
    assert rebalance(reason="r" * REASON_SIZE_MAX).bounded().reason == "r" * REASON_SIZE_MAX
    assert rebalance(reason="r" * 40_000).bounded().reason == "r" * (REASON_SIZE_MAX - 1) + "…"
    assert rebalance().bounded() == rebalance()


def test_who_and_why_in_words() -> None:
    assert named(["a"]) == "member a"
    assert named(["a", "b"]) == "members a, b"
    assert reason_given("member a left", "closing") == "member a left: closing"
    assert reason_given("member a left", None) == "member a left"
