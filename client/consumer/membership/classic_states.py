"""The states of a member of a classic group, and the moves between them."""

from collections.abc import Mapping
from enum import Enum
from typing import Final

__all__ = ["MOVES", "State"]


class State(Enum):
    """Of ClassicMembership. *Member* means: in a generation that the coordinator has not declared void."""

    IDLE = "idle"
    """Not in the group, and not to join: no topics are subscribed to, or the member is away.
    → UNJOINED when there are topics and the member is polled; → CLOSED."""
    UNJOINED = "unjoined"
    """Is to join, and waits for the coordinator or the backoff. A cooperative member may own partitions.
    → JOINING; → LOSING when what it owns is lost; → REVOKING, LEAVING, IDLE, CLOSED when it is to leave."""
    JOINING = "joining"
    """JoinGroup is under way, and is held until the group has gathered.
    → ASSIGNING as leader, → SYNCING; → UNJOINED after an error."""
    ASSIGNING = "assigning"
    """The leader waits for the layout of the topics; heartbeats go on.
    → SYNCING; → UNJOINED when another rebalance began meanwhile."""
    SYNCING = "syncing"
    """SyncGroup is under way, and is held until the leader has assigned.
    → STABLE; → REVOKING when something owned was not assigned again; → UNJOINED after an error."""
    STABLE = "stable"
    """Member with its assignment; heartbeats go on.
    → UNJOINED or REVOKING when the group rebalances; → LOSING."""
    REVOKING = "revoking"
    """Member that waits until partitions are given up; heartbeats go on.
    → UNJOINED to join again; → STABLE to take the rest of an assignment; → LEAVING; → LOSING."""
    LOSING = "losing"
    """No member any more; waits until what it lost is given up.
    → UNJOINED; → IDLE when away or unsubscribed; → LEAVING, CLOSED."""
    LEAVING = "leaving"
    """LeaveGroup is under way; whatever the answer, → IDLE or CLOSED."""
    CLOSED = "closed"
    """It has left for good."""
    FAILED = "failed"
    """A fatal error was answered."""


MOVES: Final[Mapping[State, frozenset[State]]] = {
    State.IDLE: frozenset((State.UNJOINED, State.CLOSED, State.LEAVING, State.FAILED)),
    State.UNJOINED: frozenset(
        (State.JOINING, State.LOSING, State.REVOKING, State.LEAVING, State.IDLE, State.CLOSED, State.FAILED)
    ),
    State.JOINING: frozenset(
        (
            State.ASSIGNING,
            State.SYNCING,
            State.UNJOINED,
            State.REVOKING,
            State.LOSING,
            State.LEAVING,
            State.IDLE,
            State.CLOSED,
            State.FAILED,
        )
    ),
    State.ASSIGNING: frozenset(
        (
            State.SYNCING,
            State.UNJOINED,
            State.REVOKING,
            State.LOSING,
            State.LEAVING,
            State.IDLE,
            State.CLOSED,
            State.FAILED,
        )
    ),
    State.SYNCING: frozenset(
        (
            State.STABLE,
            State.UNJOINED,
            State.REVOKING,
            State.LOSING,
            State.LEAVING,
            State.IDLE,
            State.CLOSED,
            State.FAILED,
        )
    ),
    State.STABLE: frozenset(
        (State.UNJOINED, State.REVOKING, State.LOSING, State.LEAVING, State.IDLE, State.CLOSED, State.FAILED)
    ),
    State.REVOKING: frozenset(
        (State.UNJOINED, State.STABLE, State.LOSING, State.LEAVING, State.IDLE, State.CLOSED, State.FAILED)
    ),
    State.LOSING: frozenset((State.UNJOINED, State.LEAVING, State.IDLE, State.CLOSED, State.FAILED)),
    State.LEAVING: frozenset((State.IDLE, State.CLOSED, State.FAILED)),
    State.CLOSED: frozenset(),
    State.FAILED: frozenset(),
}
