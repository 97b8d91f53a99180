"""What takes minutes is what some process begins with, and nothing is left out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cluster.spread import piece_begins, spread


@pytest.mark.parametrize("minutes", range(5))
@pytest.mark.parametrize("others", [4, 48, 49, 50, 51])
def test_each_begins_in_a_process_of_its_own(minutes: int, others: int) -> None:
    order = spread(["minutes"] * minutes, ["other"] * others, 4)
    firsts = [order[begin] for begin in piece_begins(len(order), 4)]
    assert firsts.count("minutes") == order.count("minutes") == minutes


def test_pieces_are_those_of_the_scheduler() -> None:
    """Fifty tests for four processes: 12, 12, 13 and 13, as a run that printed who runs what showed."""
    assert piece_begins(50, 4) == [0, 12, 24, 37]
    assert piece_begins(3, 1) == [0]
    assert piece_begins(1, 3) == [0, 0, 0]


@given(st.lists(st.integers()), st.lists(st.integers()), st.integers(1, 8))
def test_nothing_is_left_out_or_run_twice(minutes: list[int], others: list[int], processes: int) -> None:
    assert sorted(spread(minutes, others, processes)) == sorted(minutes + others)
