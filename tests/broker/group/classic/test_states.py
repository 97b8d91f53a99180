"""The table of moves, against Kafka's valid previous states (ClassicGroupState.java)."""

from odradek.broker.group.classic.states import MOVES, ClassicState

PREVIOUS_IN_KAFKA = {
    "Empty": {"PreparingRebalance"},
    "PreparingRebalance": {"Stable", "CompletingRebalance", "Empty"},
    "CompletingRebalance": {"PreparingRebalance"},
    "Stable": {"CompletingRebalance"},
    "Dead": {"Stable", "PreparingRebalance", "CompletingRebalance", "Empty"},
}


def test_the_moves_are_those_of_kafka() -> None:
    previous = {to.value: {state.value for state, nexts in MOVES.items() if to in nexts} for to in ClassicState}
    assert previous == PREVIOUS_IN_KAFKA
