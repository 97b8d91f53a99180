"""The tables of moves: complete, and every state can be reached from the first and ends in an end state."""

from collections.abc import Mapping
from enum import Enum

import pytest

from odradek.client.consumer.membership import classic_states, consumer_states


@pytest.mark.parametrize("moves", [classic_states.MOVES, consumer_states.MOVES])
def test_every_state_can_be_reached_and_left_but_for_the_last(moves: Mapping[Enum, frozenset[Enum]]) -> None:
    first = next(iter(moves))
    assert set(moves) == set(type(first))
    reached, last = {first}, set[Enum]()
    while reached != last:
        last = set(reached)
        reached |= frozenset[Enum]().union(*(moves[state] for state in last))
    assert reached == set(moves)
    assert [state.name for state, to in moves.items() if not to] == ["CLOSED", "FAILED"]
