"""The states of a classic group, and which may follow which (Kafka's ClassicGroupState). Pure.

    EMPTY -> PREPARING_REBALANCE -> COMPLETING_REBALANCE -> STABLE
                 |     ^                     |                |
                 v     +---------------------+----------------+
               EMPTY        a member comes, goes, is silent, or changes what it offers

Every state may become DEAD.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final


class ClassicState(Enum):
    """The values are the names that Kafka's clients know."""

    EMPTY = "Empty"
    """No members. The group lives on as long as its offsets.

    A join of a new member begins the initial rebalance. Anything else of a member: UNKNOWN_MEMBER_ID.
    Commits without a member are accepted.
    """
    PREPARING_REBALANCE = "PreparingRebalance"
    """Joins are held until all known members have joined, or time is up.

    Heartbeats and syncs: REBALANCE_IN_PROGRESS. Commits of the generation that ends are accepted.
    Members have joined -> COMPLETING_REBALANCE. Nobody is left -> EMPTY.
    """
    COMPLETING_REBALANCE = "CompletingRebalance"
    """Members know the new generation; syncs are held until the leader's brings the assignments.

    Heartbeats are answered without an error, commits with REBALANCE_IN_PROGRESS.
    The leader syncs -> STABLE. A member comes, goes or changes what it offers -> PREPARING_REBALANCE.
    """
    STABLE = "Stable"
    """Every sync is answered with the assignment of the member.

    A member comes, goes or changes what it offers, or the leader joins again -> PREPARING_REBALANCE.
    """
    DEAD = "Dead"
    """The group is no longer this broker's, or has become a group of another kind: COORDINATOR_NOT_AVAILABLE."""


MOVES: Final[Mapping[ClassicState, frozenset[ClassicState]]] = {
    ClassicState.EMPTY: frozenset({ClassicState.PREPARING_REBALANCE, ClassicState.DEAD}),
    ClassicState.PREPARING_REBALANCE: frozenset(
        {ClassicState.COMPLETING_REBALANCE, ClassicState.EMPTY, ClassicState.DEAD}
    ),
    ClassicState.COMPLETING_REBALANCE: frozenset(
        {ClassicState.STABLE, ClassicState.PREPARING_REBALANCE, ClassicState.DEAD}
    ),
    ClassicState.STABLE: frozenset({ClassicState.PREPARING_REBALANCE, ClassicState.DEAD}),
    ClassicState.DEAD: frozenset(),
}
"""Which state may follow which. Any other move is a mistake of ours."""
