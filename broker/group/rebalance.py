"""Why a group rebalanced: what operators are told of its last rebalances, in groups of both kinds. Pure.

The coordinator keeps it in memory alone: after a failover or a restart a group knows none. A group that becomes one of
the other kind keeps them.
"""

from enum import Enum
from typing import Final, NamedTuple

REBALANCES_KEPT: Final = 10
REASON_SIZE_MAX: Final = 500
"""In characters, as the next one. Clients choose their ids and reasons, and memory is the coordinator's."""
ID_SIZE_MAX: Final = 255
CUT: Final = "…"
"""Stands at the end of what was longer."""


class RebalanceCause(Enum):
    """Kinds of reasons, few enough to be counted by."""

    MEMBER_JOINED = "member joined"
    MEMBER_LEFT = "member left"
    SESSION_EXPIRED = "session expired"
    JOIN_EXPIRED = "no join in time"
    SYNC_EXPIRED = "no sync in time"
    REVOCATION_EXPIRED = "partitions not given up in time"
    SUBSCRIPTION_CHANGED = "subscription changed"
    REGEX_RESOLVED = "regular expression resolved to other topics"
    TOPICS_CHANGED = "topics changed"
    LEADER_REJOINED = "leader joined again"
    STATIC_MEMBER_REPLACED = "static member replaced"
    NOT_STORED = "assignment could not be stored"
    LEFT_TO_CLASSIC = "no member of KIP-848 left"
    OVER_CAPACITY = "more members than group.max.size"


class Rebalance(NamedTuple):
    """One rebalance, of which the first reason counts."""

    started_ms: int
    """Unix time."""
    generation: int
    """What it ended: a generation of a classic group, an epoch of a consumer group."""
    cause: RebalanceCause
    member_id: str
    """The first of the members that caused it; empty where no member did."""
    instance_id: str | None
    """That member's, where it has one."""
    reason: str
    """A sentence for people, with the client's own reason (KIP-800) where it gave one."""
    last_heard_ms: int | None
    """Unix time of the last request of that member before; None: not known, or it has just come."""

    def bounded(self) -> "Rebalance":
        """With texts that are not too long."""
        return self._replace(
            member_id=_cut(self.member_id, ID_SIZE_MAX),
            instance_id=None if self.instance_id is None else _cut(self.instance_id, ID_SIZE_MAX),
            reason=_cut(self.reason, REASON_SIZE_MAX),
        )


Rebalances = tuple[Rebalance, ...]
"""The last ones, oldest first."""


def remembered(rebalances: Rebalances, newest: Rebalance) -> Rebalances:
    """With the newest one, and no more than are kept."""
    return (*rebalances[1 - REBALANCES_KEPT :], newest)


def forgotten(rebalances: Rebalances, undone: Rebalance) -> Rebalances:
    """Without this very one, whose records were refused."""
    return tuple(each for each in rebalances if each is not undone)


def reason_given(sentence: str, client_reason: str | None) -> str:
    """A reason of ours with the client's behind it."""
    return f"{sentence}: {client_reason}" if client_reason else sentence


def named(members: list[str]) -> str:
    """`member a`, or `members a, b`."""
    return f"member{'s' if len(members) > 1 else ''} {', '.join(members)}"


def _cut(text: str, size_max: int) -> str:
    return text if len(text) <= size_max else text[: size_max - len(CUT)] + CUT
