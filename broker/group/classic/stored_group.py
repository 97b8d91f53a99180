"""A classic group as its record has it: GroupMetadataKey and GroupMetadataValue, in Kafka's version. Pure."""

from sys import intern
from typing import Final

from odradek.broker.coordinator.machine import StoredRecord
from odradek.broker.group.classic.group_state import GroupState
from odradek.broker.group.classic.member import Member
from odradek.broker.group.classic.requests import OfferedProtocol
from odradek.broker.group.classic.states import ClassicState
from odradek.broker.group.group_host import TimerKind
from odradek.protocol.stored.group_metadata import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from odradek.protocol.stored.group_records import encode_key, encode_value

VALUE_VERSION: Final = 3
"""With instance ids (KIP-345); version 4 is flexible, and Kafka only reads it."""
UNKNOWN_TIMESTAMP: Final = -1


def record(group_id: str, value: GroupMetadataValue | None) -> StoredRecord:
    """The record of a group; without a value a tombstone, by which it is gone."""
    key = encode_key(GroupMetadataKey(group=group_id))
    return StoredRecord(key, None if value is None else encode_value(value, VALUE_VERSION))


def value_of(group: GroupState) -> GroupMetadataValue:
    """The group as it is now; without its members where they have no assignments yet, as Kafka stores a new group."""
    has_generation = group.state in (ClassicState.STABLE, ClassicState.EMPTY)
    members = list(group.roster.members.values()) if has_generation else []
    timestamp_ms = group.state_timestamp_ms
    return GroupMetadataValue(
        protocol_type=(group.protocol_type or "") if has_generation else "",
        generation=group.generation,
        protocol=group.protocol_name if has_generation else None,
        leader=group.roster.leader_id if has_generation else None,
        current_state_timestamp=UNKNOWN_TIMESTAMP if timestamp_ms is None else timestamp_ms,
        members=[_stored(member, group.protocol_name or "") for member in members],
    )


def _stored(member: Member, protocol_name: str) -> MemberMetadata:
    return MemberMetadata(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=member.session_timeout_ms,
        subscription=member.metadata(protocol_name),
        assignment=member.assignment,
    )


def restore(group: GroupState, value: GroupMetadataValue) -> None:
    """Makes `group`, which has not been used yet or only been restored, what the record says."""
    group.state = ClassicState.STABLE if value.members else ClassicState.EMPTY
    group.previous_state = ClassicState.DEAD
    is_known = value.current_state_timestamp != UNKNOWN_TIMESTAMP
    group.state_timestamp_ms = value.current_state_timestamp if is_known else None
    group.generation = value.generation
    group.protocol_type = intern(value.protocol_type) or None
    group.protocol_name = value.protocol
    group.forget_members()
    for stored in value.members:
        group.roster.add(_restored(group, stored, value.protocol or ""))
    if value.members and value.leader in group.roster.members:
        group.roster.leader_id = value.leader
    group.learn_topics()


def _restored(group: GroupState, stored: MemberMetadata, protocol_name: str) -> Member:
    has_rebalance_timeout = stored.rebalance_timeout != -1
    return Member(
        stored.member_id,
        group.key(TimerKind.SESSION, stored.member_id),
        instance_id=stored.group_instance_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        rebalance_timeout_ms=stored.rebalance_timeout if has_rebalance_timeout else stored.session_timeout,
        session_timeout_ms=stored.session_timeout,
        protocols=(OfferedProtocol(protocol_name, bytes(stored.subscription)),),
        assignment=bytes(stored.assignment),
    )
