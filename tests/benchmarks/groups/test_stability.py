"""A group is stable when all members are in one generation and own every partition once."""

import pytest

from benchmarks.groups.stability import Stability


def test_all_in_one_generation_with_every_partition_once() -> None:
    stability = Stability(members=2, partitions=3)
    stability.tell(0, 4, frozenset({0, 1}))
    assert not stability.is_reached, "one of two is there"
    stability.tell(1, 4, frozenset({2}))
    assert stability.is_reached


@pytest.mark.parametrize(
    ("generation", "owned"),
    [
        pytest.param(5, {2}, id="another generation"),
        pytest.param(4, {1, 2}, id="one partition twice"),
        pytest.param(4, set[int](), id="one partition owned by nobody"),
    ],
)
def test_anything_else_is_not_stable(generation: int, owned: set[int]) -> None:
    stability = Stability(members=2, partitions=3)
    stability.tell(0, 4, frozenset({0, 1}))
    stability.tell(1, generation, frozenset(owned))
    assert not stability.is_reached
