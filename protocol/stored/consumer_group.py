"""What `__consumer_offsets` holds of a consumer group (KIP-848; types 3 to 8, and 16). All values have version 0.

Tagged fields came later: metadata_hash in 4.1 (KIP-1101), which replaces ConsumerGroupPartitionMetadata;
assignment_timestamp (KIP-1263) and assignment_epochs (KIP-1251) in 4.3.
"""

from typing import Final

from odradek.protocol.codec.schema import Message, Struct, field, i8, i32, i64, message, struct, uuid
from odradek.protocol.stored.record_key import RecordKey

WRITTEN_VERSION: Final = 0
"""Of all these values."""


@message(key=3, versions=(0, 0), flexible=0)
class ConsumerGroupMetadataValue(Message):
    """metadata_hash: of the topics that the group is subscribed to; 0 where it was never computed."""

    epoch: i32
    metadata_hash: i64 = field(tag=0, default=0)


@message(key=3, versions=(0, 0), flexible=None)
class ConsumerGroupMetadataKey(RecordKey[ConsumerGroupMetadataValue]):
    """Of one group."""

    group_id: str


@struct
class PartitionMetadata(Struct):
    """The racks of a partition's replicas; unused since 4.0."""

    partition: i32
    racks: list[str]


@struct
class TopicMetadata(Struct):
    """A topic that a group is subscribed to."""

    topic_id: uuid
    topic_name: str
    num_partitions: i32
    partition_metadata: list[PartitionMetadata]


@message(key=4, versions=(0, 0), flexible=0)
class ConsumerGroupPartitionMetadataValue(Message):
    """What brokers before 4.1 wrote in the place of the metadata hash; later ones write tombstones."""

    topics: list[TopicMetadata]


@message(key=4, versions=(0, 0), flexible=None)
class ConsumerGroupPartitionMetadataKey(RecordKey[ConsumerGroupPartitionMetadataValue]):
    """Of one group."""

    group_id: str


@struct
class ClassicProtocol(Struct):
    """A protocol that a member supports, as in JoinGroup."""

    name: str
    metadata: bytes


@struct
class ClassicMemberMetadata(Struct):
    """What is known of a member that speaks the classic protocol."""

    session_timeout_ms: i32
    supported_protocols: list[ClassicProtocol]


@message(key=5, versions=(0, 0), flexible=0)
class ConsumerGroupMemberMetadataValue(Message):
    """classic_member_metadata is None for members that speak the consumer protocol."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: list[str]
    subscribed_topic_regex: str | None
    rebalance_timeout_ms: i32 = -1
    server_assignor: str | None
    # Null has to be sent: where it is absent, Kafka reads a struct full of defaults, so a classic member.
    classic_member_metadata: ClassicMemberMetadata | None = field(tag=0, nullable_since=0, default=None)


@message(key=5, versions=(0, 0), flexible=None)
class ConsumerGroupMemberMetadataKey(RecordKey[ConsumerGroupMemberMetadataValue]):
    """Of one member."""

    group_id: str
    member_id: str


@message(key=6, versions=(0, 0), flexible=0)
class ConsumerGroupTargetAssignmentMetadataValue(Message):
    """assignment_timestamp: when the assignment was worked out, in ms since 1970; 0: unknown."""

    assignment_epoch: i32
    assignment_timestamp: i64 = field(tag=0, default=0)


@message(key=6, versions=(0, 0), flexible=None)
class ConsumerGroupTargetAssignmentMetadataKey(RecordKey[ConsumerGroupTargetAssignmentMetadataValue]):
    """Of one group."""

    group_id: str


@struct
class TopicPartition(Struct):
    """Partitions of one topic."""

    topic_id: uuid
    partitions: list[i32]


@message(key=7, versions=(0, 0), flexible=0)
class ConsumerGroupTargetAssignmentMemberValue(Message):
    """What a member is to have in the end."""

    topic_partitions: list[TopicPartition]


@message(key=7, versions=(0, 0), flexible=None)
class ConsumerGroupTargetAssignmentMemberKey(RecordKey[ConsumerGroupTargetAssignmentMemberValue]):
    """Of one member."""

    group_id: str
    member_id: str


@struct
class TopicPartitions(Struct):
    """Partitions of one topic. assignment_epochs: at which member epoch each was assigned; none, or not as many, where
    an older broker has written: then Kafka takes the member's epoch."""

    topic_id: uuid
    partitions: list[i32]
    assignment_epochs: list[i32] | None = field(tag=0, default_factory=list[i32])


@message(key=8, versions=(0, 0), flexible=0)
class ConsumerGroupCurrentMemberAssignmentValue(Message):
    """What a member has. `state` is the number of a MemberState: 0 stable, 1 unrevoked partitions, 2 unreleased
    partitions, 127 unknown."""

    member_epoch: i32
    previous_member_epoch: i32
    state: i8
    assigned_partitions: list[TopicPartitions]
    partitions_pending_revocation: list[TopicPartitions]


@message(key=8, versions=(0, 0), flexible=None)
class ConsumerGroupCurrentMemberAssignmentKey(RecordKey[ConsumerGroupCurrentMemberAssignmentValue]):
    """Of one member."""

    group_id: str
    member_id: str


@message(key=16, versions=(0, 0), flexible=0)
class ConsumerGroupRegularExpressionValue(Message):
    """The topics that matched, at which version of the metadata image, and when (ms since 1970)."""

    topics: list[str]
    version: i64
    timestamp: i64


@message(key=16, versions=(0, 0), flexible=None)
class ConsumerGroupRegularExpressionKey(RecordKey[ConsumerGroupRegularExpressionValue]):
    """Of one expression of one group."""

    group_id: str
    regular_expression: str
