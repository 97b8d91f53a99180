"""The table of moves: which states lead where."""

from odradek.client.producer.transactions.states import MOVES, State


def test_every_state_has_its_moves_and_only_the_fatal_one_has_none() -> None:
    assert MOVES.keys() == set(State)
    assert [state for state, moves in MOVES.items() if not moves] == [State.FATAL_ERROR]


def test_every_other_state_may_become_fatal_and_none_stays_where_it_is() -> None:
    for state in set(State) - {State.FATAL_ERROR}:
        assert State.FATAL_ERROR in MOVES[state]
        assert state not in MOVES[state]


def test_a_transaction_that_can_only_be_aborted_is_never_committed() -> None:
    reached: set[State] = {State.ABORTABLE_ERROR}
    found: set[State] = set(reached)
    while found:
        found = {to for state in found for to in MOVES[state]} - reached - {State.READY, State.UNINITIALIZED}
        reached |= found
    assert State.COMMITTING not in reached
