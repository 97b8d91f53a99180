"""The states of a member of a KIP-848 group, and the moves between them."""

from collections.abc import Mapping
from enum import Enum
from typing import Final

__all__ = ["MOVES", "State"]


class State(Enum):
    """Of ConsumerMembership. (Source: MemberState.java; acknowledging is no state here, but something that is due.)"""

    IDLE = "idle"
    """Not in the group, and not to join: no topics are subscribed to, or the member is away.
    → JOINING when there are topics and the member is polled; → CLOSED."""
    JOINING = "joining"
    """Heartbeats with epoch 0. → RECONCILING with the first answer; → LEAVING."""
    RECONCILING = "reconciling"
    """What is owned is not what is assigned: something is being given up, or waits to be taken or named.
    → STABLE; → REVOKING to leave; → LOSING."""
    STABLE = "stable"
    """Owns what is assigned. → RECONCILING with another assignment; → REVOKING; → LOSING."""
    REVOKING = "revoking"
    """Gives everything up in order to leave; heartbeats go on. → LEAVING; → RECONCILING if it is to stay after all;
    → LOSING."""
    LOSING = "losing"
    """Fenced, or away: no member any more; waits until what it lost is given up.
    → JOINING; → IDLE when away or unsubscribed; → CLOSED."""
    LEAVING = "leaving"
    """The heartbeat that leaves is under way; whatever the answer, → IDLE or CLOSED."""
    CLOSED = "closed"
    """It has left for good."""
    FAILED = "failed"
    """A fatal error was answered."""


_IN_GROUP: Final = (State.REVOKING, State.LOSING, State.LEAVING, State.IDLE, State.CLOSED, State.FAILED)

MOVES: Final[Mapping[State, frozenset[State]]] = {
    State.IDLE: frozenset((State.JOINING, State.CLOSED, State.FAILED)),
    State.JOINING: frozenset((State.RECONCILING, State.LEAVING, State.IDLE, State.CLOSED, State.FAILED)),
    State.RECONCILING: frozenset((State.STABLE, State.JOINING, *_IN_GROUP)),
    State.STABLE: frozenset((State.RECONCILING, State.JOINING, *_IN_GROUP)),
    State.REVOKING: frozenset((State.RECONCILING, State.JOINING, *_IN_GROUP)),
    State.LOSING: frozenset((State.JOINING, State.IDLE, State.CLOSED, State.FAILED)),
    State.LEAVING: frozenset((State.IDLE, State.CLOSED, State.FAILED)),
    State.CLOSED: frozenset(),
    State.FAILED: frozenset(),
}
