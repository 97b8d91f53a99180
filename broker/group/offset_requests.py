"""What is asked of a group's offsets, in whatever version of the protocol; topics by name. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from odradek.broker.group.offsets import Committed, Position
from odradek.broker.log.verifications import Proof
from odradek.protocol.errors import ErrorCode


class OffsetToCommit(NamedTuple):
    """For one partition."""

    position: Position
    topic_id: bytes
    offset: int
    leader_epoch: int
    metadata: str


class CommitOffsets(NamedTuple):
    """OffsetCommit."""

    group_id: str
    member_id: str
    instance_id: str | None
    generation: int
    """Or the member's epoch; -1 outside of the group's protocol."""
    retention_ms: int
    """-1: the broker's."""
    offsets: Sequence[OffsetToCommit]
    version: int
    """Of OffsetCommit."""


class CommitInTransaction(NamedTuple):
    """TxnOffsetCommit."""

    group_id: str
    member_id: str
    instance_id: str | None
    generation: int
    """Or the member's epoch; "", None and -1 where the producer does not know its consumer (before version 3)."""
    producer_id: int
    producer_epoch: int
    proof: Proof
    """That the transaction is under way and includes the group; a coordinator's."""
    offsets: Sequence[OffsetToCommit]
    version: int


class EndTransaction(NamedTuple):
    """WriteTxnMarkers, of one producer in one partition of the groups."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool
    transaction_version: int


class FetchOffsets(NamedTuple):
    """OffsetFetch, of one group."""

    group_id: str
    member_id: str | None
    member_epoch: int
    """None and -1 where the client does not say them (before version 9)."""
    positions: Sequence[Position] | None
    """None: all that the group has."""
    require_stable: bool


class FetchedOffset(NamedTuple):
    """What is known of one partition."""

    position: Position
    committed: Committed | None
    """None: nothing is."""
    error: ErrorCode


class DeleteOffsets(NamedTuple):
    """OffsetDelete."""

    group_id: str
    positions: Sequence[Position]
