"""A member of a classic group (Kafka's ClassicGroupMember). Pure.

The record of the group holds its ids, client, time-outs, assignment, and its metadata for the chosen protocol. The
other protocols that it offers, when it was last heard of, and its held requests are in no record.
"""

from odradek.broker.coordinator.machine import Waiting
from odradek.broker.group.classic.requests import Joined, OfferedProtocol, Synced
from odradek.broker.group.group_host import TimerKey


class Member:
    """One member, dynamic or static."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "held_join",
        "held_sync",
        "instance_id",
        "is_new",
        "last_heard_ms",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_key",
        "session_timeout_ms",
    )

    def __init__(
        self,
        member_id: str,
        session_key: TimerKey,
        *,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: tuple[OfferedProtocol, ...],
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.session_key = session_key
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.held_join: Waiting[Joined] | None = None
        self.held_sync: Waiting[Synced] | None = None
        self.is_new = False
        """It has not been told its member id yet, and so cannot send heartbeats."""
        self.last_heard_ms: int | None = None
        """Unix time of its last request; None: it has not been heard of since the group was loaded."""

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def needs_no_heartbeat(self) -> bool:
        """A member that waits for an answer of ours cannot be expected to speak; a new one may have gone away."""
        return not self.is_new and (self.held_join is not None or self.held_sync is not None)

    def metadata(self, protocol_name: str) -> bytes:
        """Its subscription for a protocol that it offers."""
        return next(protocol.metadata for protocol in self.protocols if protocol.name == protocol_name)
