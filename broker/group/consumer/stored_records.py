"""The values of a consumer group as records of `__consumer_offsets`, and back. Pure.

The formats are declared in `odradek.protocol.stored`.

Partitions and names are written in order, so that equal values are equal bytes.
"""

from collections.abc import Iterable
from typing import assert_never

from odradek.broker.coordinator.machine import StoredRecord
from odradek.broker.group.assignors.spec import Partitions
from odradek.broker.group.consumer.group_values import (
    AssignedPartitions,
    ClassicMember,
    Current,
    GroupEpoch,
    Key,
    Kind,
    Member,
    MemberState,
    Obsolete,
    ResolvedRegex,
    Target,
    TargetEpoch,
    Value,
)
from odradek.protocol.codec.schema import Message
from odradek.protocol.stored.consumer_group import (
    ClassicMemberMetadata,
    ClassicProtocol,
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
    TopicPartition,
    TopicPartitions,
)
from odradek.protocol.stored.group_records import encode_key, encode_value

VALUE_VERSION = 0
"""Of all values of consumer groups; what came later is in tagged fields."""

ConsumerGroupKey = (
    ConsumerGroupMetadataKey
    | ConsumerGroupTargetAssignmentMetadataKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupRegularExpressionKey
    | ConsumerGroupPartitionMetadataKey
)


def stored_record(group_id: str, key: Key, value: Value | None) -> StoredRecord:
    """The record that says so; a tombstone for None."""
    encoded = encode_key(_stored_key(group_id, key))
    return StoredRecord(encoded, None if value is None else encode_value(_stored_value(value), VALUE_VERSION))


def key_of(stored: ConsumerGroupKey) -> Key:
    match stored:
        case ConsumerGroupMetadataKey():
            return Key(Kind.GROUP)
        case ConsumerGroupTargetAssignmentMetadataKey():
            return Key(Kind.TARGET_EPOCH)
        case ConsumerGroupMemberMetadataKey():
            return Key(Kind.MEMBER, stored.member_id)
        case ConsumerGroupTargetAssignmentMemberKey():
            return Key(Kind.TARGET, stored.member_id)
        case ConsumerGroupCurrentMemberAssignmentKey():
            return Key(Kind.CURRENT, stored.member_id)
        case ConsumerGroupRegularExpressionKey():
            return Key(Kind.REGEX, stored.regular_expression)
        case ConsumerGroupPartitionMetadataKey():
            return Key(Kind.PARTITION_METADATA)
        case _:
            assert_never(stored)


def value_of(stored: Message) -> Value:
    """Of a record's value. `stored` belongs to a `ConsumerGroupKey`."""
    match stored:
        case ConsumerGroupMetadataValue():
            return GroupEpoch(stored.epoch, stored.metadata_hash)
        case ConsumerGroupTargetAssignmentMetadataValue():
            return TargetEpoch(stored.assignment_epoch, stored.assignment_timestamp)
        case ConsumerGroupMemberMetadataValue():
            return _member_of(stored)
        case ConsumerGroupTargetAssignmentMemberValue():
            return Target(
                {one.topic_id: frozenset(one.partitions) for one in stored.topic_partitions if one.partitions}
            )
        case ConsumerGroupCurrentMemberAssignmentValue():
            return _current_of(stored)
        case ConsumerGroupRegularExpressionValue():
            return ResolvedRegex(frozenset(stored.topics), stored.version, stored.timestamp)
        case ConsumerGroupPartitionMetadataValue():
            return Obsolete()
        case _:
            raise AssertionError(f"{type(stored).__name__} is no value of a consumer group")


def _stored_key(group_id: str, key: Key) -> ConsumerGroupKey:
    match key.kind:
        case Kind.GROUP:
            return ConsumerGroupMetadataKey(group_id=group_id)
        case Kind.TARGET_EPOCH:
            return ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id)
        case Kind.MEMBER:
            return ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=key.name)
        case Kind.TARGET:
            return ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=key.name)
        case Kind.CURRENT:
            return ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=key.name)
        case Kind.REGEX:
            return ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=key.name)
        case Kind.PARTITION_METADATA:
            return ConsumerGroupPartitionMetadataKey(group_id=group_id)
        case _:
            assert_never(key.kind)


def _stored_value(value: Value) -> Message:
    match value:
        case GroupEpoch():
            return ConsumerGroupMetadataValue(epoch=value.epoch, metadata_hash=value.metadata_hash)
        case TargetEpoch():
            return ConsumerGroupTargetAssignmentMetadataValue(
                assignment_epoch=value.epoch, assignment_timestamp=value.unix_ms
            )
        case Member():
            return _stored_member(value)
        case Target():
            return ConsumerGroupTargetAssignmentMemberValue(topic_partitions=_stored_target(value.partitions))
        case Current():
            return ConsumerGroupCurrentMemberAssignmentValue(
                member_epoch=value.member_epoch,
                previous_member_epoch=value.previous_member_epoch,
                state=int(value.state),
                assigned_partitions=_stored_assigned(value.assigned),
                partitions_pending_revocation=_stored_assigned(value.revoking),
            )
        case ResolvedRegex():
            return ConsumerGroupRegularExpressionValue(
                topics=sorted(value.topic_names), version=value.version, timestamp=value.unix_ms
            )
        case Obsolete():
            raise AssertionError("nobody writes a key that has no meaning")
        case _:
            assert_never(value)


def _stored_member(member: Member) -> ConsumerGroupMemberMetadataValue:
    classic = member.classic
    return ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=None
        if classic is None
        else ClassicMemberMetadata(
            session_timeout_ms=classic.session_timeout_ms,
            supported_protocols=[ClassicProtocol(name=name, metadata=data) for name, data in classic.protocols],
        ),
    )


def _member_of(stored: ConsumerGroupMemberMetadataValue) -> Member:
    classic = stored.classic_member_metadata
    return Member(
        instance_id=stored.instance_id,
        rack_id=stored.rack_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        topic_names=frozenset(stored.subscribed_topic_names),
        topic_regex=stored.subscribed_topic_regex,
        server_assignor=stored.server_assignor,
        rebalance_timeout_ms=stored.rebalance_timeout_ms,
        classic=None
        if classic is None
        else ClassicMember(
            classic.session_timeout_ms, tuple((one.name, bytes(one.metadata)) for one in classic.supported_protocols)
        ),
    )


def _stored_target(partitions: Partitions) -> list[TopicPartition]:
    return [
        TopicPartition(topic_id=topic_id, partitions=sorted(partitions[topic_id])) for topic_id in sorted(partitions)
    ]


def _stored_assigned(partitions: AssignedPartitions) -> list[TopicPartitions]:
    return [
        TopicPartitions(topic_id=topic_id, partitions=indexes, assignment_epochs=[epochs[index] for index in indexes])
        for topic_id, epochs in sorted(partitions.items(), key=lambda one: one[0])
        for indexes in (sorted(epochs),)
    ]


def _current_of(stored: ConsumerGroupCurrentMemberAssignmentValue) -> Current:
    known = stored.state in MemberState.__members__.values()
    return Current(
        member_epoch=stored.member_epoch,
        previous_member_epoch=stored.previous_member_epoch,
        state=MemberState(stored.state) if known else MemberState.UNKNOWN,
        assigned=_assigned_of(stored.assigned_partitions, stored.member_epoch),
        revoking=_assigned_of(stored.partitions_pending_revocation, stored.member_epoch),
    )


def _assigned_of(stored: Iterable[TopicPartitions], member_epoch: int) -> AssignedPartitions:
    """Before Kafka 4.3 there were no assignment epochs: then the member's epoch counts, as if it had just got all."""
    return {
        one.topic_id: dict(zip(one.partitions, one.assignment_epochs, strict=False))
        if one.assignment_epochs is not None
        else dict.fromkeys(one.partitions, max(member_epoch, 0))
        for one in stored
        if one.partitions
    }
