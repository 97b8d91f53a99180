"""What members ask of a classic group and what they are answered, whatever the version of the API. Pure values.

Handlers convert Kafka's messages to and from these. What is missing in an old version has the default that is named.
Errors are `KafkaError`s, but for MEMBER_ID_REQUIRED, whose answer bears the member id, and the errors of single members
of a leave.
"""

from typing import NamedTuple

from odradek.protocol.errors import ErrorCode


class OfferedProtocol(NamedTuple):
    """An assignor that a member supports, with the member's subscription as that assignor reads it."""

    name: str
    metadata: bytes


class Join(NamedTuple):
    """JoinGroup. Who has no member id yet leaves it empty."""

    member_id: str
    client_id: str
    client_host: str
    protocol_type: str
    protocols: tuple[OfferedProtocol, ...]
    """The ones that the member likes best come first."""
    session_timeout_ms: int
    rebalance_timeout_ms: int
    """Before version 1 the session time-out."""
    instance_id: str | None = None
    """Of a static member (KIP-345)."""
    reason: str | None = None
    """Why the client joins (KIP-800)."""
    requires_known_member_id: bool = False
    """Since version 4 (KIP-394): a new dynamic member is given its id first, and joins again with it."""
    supports_skip_assignment: bool = False
    """Since version 9 (KIP-814): a leader can be told to assign nothing."""


class JoinedMember(NamedTuple):
    """What the leader is told of a member, to assign by."""

    member_id: str
    instance_id: str | None
    metadata: bytes
    """As the member sent it for the protocol that was chosen."""


class Joined(NamedTuple):
    """The answer to a join."""

    member_id: str
    generation: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str = ""
    members: tuple[JoinedMember, ...] = ()
    """Empty but for the leader."""
    skip_assignment: bool = False
    error_code: ErrorCode = ErrorCode.NONE
    """NONE or MEMBER_ID_REQUIRED."""


class AssignedMember(NamedTuple):
    """What a leader assigns to a member."""

    member_id: str
    assignment: bytes


class Sync(NamedTuple):
    """SyncGroup. `assignments` is empty but for the leader's."""

    member_id: str
    generation: int
    instance_id: str | None = None
    protocol_type: str | None = None
    """Since version 5; None is not compared."""
    protocol_name: str | None = None
    """Since version 5; None is not compared."""
    assignments: tuple[AssignedMember, ...] = ()


class Synced(NamedTuple):
    """The answer to a sync."""

    protocol_type: str | None
    protocol_name: str | None
    assignment: bytes


class Heartbeat(NamedTuple):
    """Heartbeat; the answer is None or an error."""

    member_id: str
    generation: int
    instance_id: str | None = None


class Leaving(NamedTuple):
    """Who leaves: a member by its id, or a static one by its instance id alone (what an administrator knows)."""

    member_id: str
    instance_id: str | None = None
    reason: str | None = None
    """Since version 5 (KIP-800)."""


class Leave(NamedTuple):
    """LeaveGroup; before version 3 of one member."""

    members: tuple[Leaving, ...]


class LeftMember(NamedTuple):
    """What became of one of them."""

    member_id: str
    instance_id: str | None
    error_code: ErrorCode = ErrorCode.NONE


class Left(NamedTuple):
    """The answer to a leave, in the order of the request."""

    members: tuple[LeftMember, ...]
