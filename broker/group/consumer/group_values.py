"""What the records of a consumer group say, key by key. Pure.

A group is the newest value of each key. A key without a value does not exist: its record is a tombstone.
"""

from collections.abc import Mapping
from enum import Enum, IntEnum
from typing import NamedTuple

from odradek.broker.group.assignors.spec import Partitions

AssignedPartitions = Mapping[bytes, Mapping[int, int]]
"""By topic id and partition index: the assignment epoch, in which the member was given the partition (KIP-1251)."""

NOTHING_ASSIGNED: AssignedPartitions = {}


class Kind(Enum):
    """The types of keys, by the names of Kafka's records (`ConsumerGroup…Key`)."""

    GROUP = "Metadata"
    TARGET_EPOCH = "TargetAssignmentMetadata"
    MEMBER = "MemberMetadata"
    TARGET = "TargetAssignmentMember"
    CURRENT = "CurrentMemberAssignment"
    REGEX = "RegularExpression"
    PARTITION_METADATA = "PartitionMetadata"
    """Of Kafka 4.0. Nobody reads it any more; it is deleted where a log still holds it."""


class Key(NamedTuple):
    kind: Kind
    name: str = ""
    """The member id or the expression; empty where there is one such value for the group."""


class GroupEpoch(NamedTuple):
    epoch: int
    metadata_hash: int
    """Of the topics that the group has subscribed to; 0 where none exists."""


class TargetEpoch(NamedTuple):
    epoch: int
    """The group epoch for which the target assignment was worked out."""
    unix_ms: int
    """When that was; 0 where it is not known."""


class ClassicMember(NamedTuple):
    """What a member that speaks the classic protocol has told, besides."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


class Member(NamedTuple):
    """What a member has told of itself."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    topic_regex: str | None = None
    server_assignor: str | None = None
    rebalance_timeout_ms: int = -1
    classic: ClassicMember | None = None


class Target(NamedTuple):
    """What a member is to have in the end."""

    partitions: Partitions


class MemberState(IntEnum):
    """Where a member stands on its way to the target assignment. The numbers are those of Kafka's records.

    STABLE -> any: a newer target assignment exists.
    UNREVOKED_PARTITIONS -> any: the member has given up what it was told to.
    UNRELEASED_PARTITIONS -> any: another member has given up something, or a newer target assignment exists.
    UNKNOWN -> any: the member has joined again with nothing.
    """

    STABLE = 0
    """The member has all that the target assignment of its epoch gives to it."""
    UNREVOKED_PARTITIONS = 1
    """The member has to give up partitions before it may have the newer epoch. The rebalance time-out runs."""
    UNRELEASED_PARTITIONS = 2
    """The member has the newest epoch and waits for partitions that others have not given up."""
    UNKNOWN = 127
    """A newer release wrote it. The member has to join again."""


class Current(NamedTuple):
    """What a member has."""

    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: AssignedPartitions = NOTHING_ASSIGNED
    revoking: AssignedPartitions = NOTHING_ASSIGNED
    """Pending revocation: still the member's, until it says that it has given them up."""

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == target_epoch


NEW = Current()


class ResolvedRegex(NamedTuple):
    """The topics that an expression matched."""

    topic_names: frozenset[str]
    version: int
    """Of Kafka's metadata image; 0 in what we write."""
    unix_ms: int


class Obsolete(NamedTuple):
    """The value of a key that has no meaning any more."""


Value = GroupEpoch | TargetEpoch | Member | Target | Current | ResolvedRegex | Obsolete
