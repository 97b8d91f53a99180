"""Keys and values of the records of `__consumer_offsets`, to bytes and back.

    key      int16 type of the record      then the fields of the key
    value    int16 version of the value    then its fields at this version

Types are those of Kafka's CoordinatorRecordType. A record without a value is a tombstone and does not come here. Bytes
that are left over are ignored, as Kafka does (CoordinatorRecordSerde). What a newer Kafka, or a group of another kind,
has written is told apart from what is damaged: UnknownKey and UnknownValue are answers, MalformedMessage is raised.
"""

from typing import Any, Final, NamedTuple, TypeVar

from odradek.protocol.codec.codec import decode_prefix, encode
from odradek.protocol.codec.schema import Buffer, Message
from odradek.protocol.stored.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from odradek.protocol.stored.group_metadata import GroupMetadataKey, GroupMetadataValue
from odradek.protocol.stored.offset_commit import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from odradek.protocol.stored.record_key import KEY_VERSION, PREFIX_SIZE, RecordKey, prefixed, read_type, read_version

V = TypeVar("V", bound=Message)

GroupKey = (
    LegacyOffsetCommitKey
    | OffsetCommitKey
    | GroupMetadataKey
    | ConsumerGroupMetadataKey
    | ConsumerGroupPartitionMetadataKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupTargetAssignmentMetadataKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupRegularExpressionKey
)

KEYS: Final[tuple[type[GroupKey], ...]] = (
    LegacyOffsetCommitKey,
    OffsetCommitKey,
    GroupMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupRegularExpressionKey,
)
VALUES: Final[tuple[type[Message], ...]] = (
    LegacyOffsetCommitValue,
    OffsetCommitValue,
    GroupMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupTargetAssignmentMetadataValue,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupRegularExpressionValue,
)
"""In the order of their keys."""

_KEYS: Final = {cls.api_key: cls for cls in KEYS}
_VALUES: Final[dict[int, Any]] = {cls.api_key: cls for cls in VALUES}

OTHER_TYPES: Final = {
    9: "ShareGroupPartitionMetadata",
    10: "ShareGroupMemberMetadata",
    11: "ShareGroupMetadata",
    12: "ShareGroupTargetAssignmentMetadata",
    13: "ShareGroupTargetAssignmentMember",
    14: "ShareGroupCurrentMemberAssignment",
    15: "ShareGroupStatePartitionMetadata",
    17: "StreamsGroupMetadata",
    18: "StreamsGroupPartitionMetadata",
    19: "StreamsGroupMemberMetadata",
    20: "StreamsGroupTargetAssignmentMetadata",
    21: "StreamsGroupTargetAssignmentMember",
    22: "StreamsGroupCurrentMemberAssignment",
    23: "StreamsGroupTopology",
}
"""Types of records that Kafka writes for groups of other kinds, by Kafka's names; 9 and 18 in earlier releases."""


class UnknownKey(NamedTuple):
    """A key of a type that is not declared here."""

    type: int

    @property
    def type_name(self) -> str:
        """For people."""
        return OTHER_TYPES.get(self.type, f"type {self.type}")


class UnknownValue(NamedTuple):
    """A value in a version that is not declared here, of a record of this type."""

    type: int
    version: int


def decode_key(data: Buffer) -> GroupKey | UnknownKey:
    """The key that `data` holds. Raises MalformedMessage."""
    type_ = read_type(data)
    cls = _KEYS.get(type_)
    return UnknownKey(type_) if cls is None else decode_prefix(cls, KEY_VERSION, data, PREFIX_SIZE)


def decode_value(key: RecordKey[V], data: Buffer) -> V | UnknownValue:
    """The value that `data` holds behind this key. Raises MalformedMessage."""
    cls: type[V] = _VALUES[key.api_key]
    version = read_version(data)
    if not cls.min_version <= version <= cls.max_version:
        return UnknownValue(key.api_key, version)
    return decode_prefix(cls, version, data, PREFIX_SIZE)


def encode_key(key: GroupKey) -> bytes:
    """Raises ValueError for fields that have no form on the wire: strings over 32,767 bytes."""
    return prefixed(key.api_key, encode(key, KEY_VERSION))


def encode_value(value: Message, version: int) -> bytes:
    """Without the fields that this version does not carry. Raises ValueError for a version that is not declared, and
    for fields that have no form on the wire."""
    return prefixed(version, encode(value, version))
