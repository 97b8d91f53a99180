"""What a membership asks for, and the answers that it takes. They hold what Kafka's messages hold, without versions.

Who sends them chooses the version, and leaves out what that version does not have. Every request is answered once:
with its own kind of answer, with `Refused`, or with `NoAnswer`. Requests of one membership may be answered in any
order, and late: it knows which one it still waits for.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from odradek.client.consumer.assignment.assignor import TopicLayout
from odradek.protocol.errors import ErrorCode

__all__ = [
    "Answer",
    "AssignmentByTopicId",
    "ConsumerHeartbeat",
    "ConsumerHeartbeatAnswer",
    "CoordinatorFound",
    "DescribeTopics",
    "FindCoordinator",
    "Heartbeat",
    "HeartbeatTaken",
    "Join",
    "Joined",
    "JoinedMember",
    "Leave",
    "Left",
    "NoAnswer",
    "Refused",
    "Request",
    "Sync",
    "Synced",
    "TopicsDescribed",
]

AssignmentByTopicId: TypeAlias = Mapping[bytes, frozenset[int]]


# -------------------------------------------------------------------------------------------------------- for any node
@dataclass(frozen=True, slots=True, eq=False)
class FindCoordinator:
    """FindCoordinator (key type 0), to any broker."""

    group_id: str


@dataclass(frozen=True, slots=True)
class CoordinatorFound:
    node_id: int


@dataclass(frozen=True, slots=True, eq=False)
class DescribeTopics:
    """Fresh metadata of these topics, by name or by id, from any broker."""

    names: frozenset[str] = frozenset()
    topic_ids: frozenset[bytes] = frozenset()


@dataclass(frozen=True, slots=True)
class TopicsDescribed:
    """Topics that do not exist are left out."""

    topics: Mapping[str, TopicLayout]


# --------------------------------------------------------------------------------- for the coordinator, classic groups
@dataclass(frozen=True, slots=True, eq=False)
class Join:
    """JoinGroup. `timeout_ms`: how long the answer may take; the broker holds it until the group has gathered."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    """Names of assignors with the metadata for each, best first."""
    reason: str
    """Of joining (KIP-800), for the broker's log."""
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class JoinedMember:
    member_id: str
    group_instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class Joined:
    member_id: str
    generation: int
    protocol_name: str
    leader: str
    members: tuple[JoinedMember, ...] = ()
    """Empty but for the leader."""
    protocol_type: str | None = None
    skip_assignment: bool = False
    """The leader is a static member that came back: the assignment stays (KIP-814)."""


@dataclass(frozen=True, slots=True, eq=False)
class Sync:
    """SyncGroup. `timeout_ms`: the broker holds the answer until the leader has assigned."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    generation: int
    protocol_type: str
    protocol_name: str
    assignments: tuple[tuple[str, bytes], ...]
    """By member id; empty but for the leader."""
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class Synced:
    assignment: bytes
    protocol_type: str | None = None
    protocol_name: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Heartbeat:
    """Heartbeat."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    generation: int


@dataclass(frozen=True, slots=True)
class HeartbeatTaken:
    pass


@dataclass(frozen=True, slots=True, eq=False)
class Leave:
    """LeaveGroup. It is sent once: a member whose leaving is lost is missed after its session.

    While a Join of the same member is held by the broker, its connection answers nothing else: then it is to be closed,
    or another one used.
    """

    group_id: str
    member_id: str
    group_instance_id: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Left:
    pass


# ---------------------------------------------------------------------------------------- for the coordinator, KIP-848
@dataclass(frozen=True, slots=True, eq=False)
class ConsumerHeartbeat:
    """ConsumerGroupHeartbeat. None, and -1 for the time-out: unchanged since the last one."""

    group_id: str
    member_id: str
    member_epoch: int
    """0: joins. -1: leaves. -2: leaves for a while, as a static member."""
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int
    subscribed_topics: tuple[str, ...] | None
    server_assignor: str | None
    owned: AssignmentByTopicId | None


@dataclass(frozen=True, slots=True)
class ConsumerHeartbeatAnswer:
    member_epoch: int
    heartbeat_interval_ms: int
    member_id: str | None = None
    assignment: AssignmentByTopicId | None = None
    """None: unchanged."""


# ------------------------------------------------------------------------------------------------------------ failures
@dataclass(frozen=True, slots=True)
class Refused:
    """The broker answered with an error."""

    code: ErrorCode
    message: str = ""
    member_id: str = ""
    """What JoinGroup gives with MEMBER_ID_REQUIRED."""


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """There is none: the connection was lost or never made, or time ran out."""

    reason: str = ""


Request: TypeAlias = FindCoordinator | DescribeTopics | Join | Sync | Heartbeat | Leave | ConsumerHeartbeat
Answer: TypeAlias = (
    CoordinatorFound
    | TopicsDescribed
    | Joined
    | Synced
    | HeartbeatTaken
    | Left
    | ConsumerHeartbeatAnswer
    | Refused
    | NoAnswer
)
