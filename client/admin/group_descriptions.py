"""Groups in detail: DescribeGroups of classic groups, ConsumerGroupDescribe of those of KIP-848. Pure.

A group that there is not is answered with the state `Dead` up to version 5 of DescribeGroups, with GROUP_ID_NOT_FOUND
since (KIP-1043); it is GROUP_ID_NOT_FOUND here, for a consumer group is `Dead` to DescribeGroups, too.
"""

from collections.abc import Iterable
from typing import Final

from odradek.client.admin.group_errors import NOT_FOUND, group_error
from odradek.client.admin.groups import CLASSIC, CONSUMER, GroupDescription, GroupRebalance, MemberDescription
from odradek.client.errors.base import ClientError
from odradek.client.topic_partition import TopicPartition
from odradek.protocol import consumer_protocol
from odradek.protocol.errors import ErrorCode, MalformedMessage
from odradek.protocol.messages import consumer_group_describe, group_rebalances
from odradek.protocol.messages.consumer_group_describe import ConsumerGroupDescribeResponse
from odradek.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember, DescribeGroupsResponse

__all__ = ["described_consumer_groups", "described_groups"]

DEAD: Final = "Dead"


# -------------------------------------------------------------------------------------------------------------- classic
def described_groups(response: DescribeGroupsResponse, node_id: int) -> dict[str, GroupDescription | ClientError]:
    """What the coordinator `node_id` answered, by group."""
    return {each.group_id: _group(each, node_id) for each in response.groups}


def _group(group: DescribedGroup, node_id: int) -> GroupDescription | ClientError:
    what = f"DescribeGroups of {group.group_id}"
    if group.error_code:
        return group_error(group.error_code, group.error_message, what)
    if group.group_state == DEAD:
        return group_error(NOT_FOUND, "", what)
    is_consumer = group.protocol_type == consumer_protocol.PROTOCOL_TYPE
    return GroupDescription(
        group.group_id,
        CLASSIC,
        group.group_state,
        group.protocol_type,
        group.protocol_data,
        node_id,
        tuple(_member(each, is_consumer=is_consumer) for each in group.members),
        rebalances=_rebalances(group.rebalances),
    )


def _member(member: DescribedGroupMember, *, is_consumer: bool) -> MemberDescription:
    return MemberDescription(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        _host(member.client_host),
        bytes(member.member_metadata),
        bytes(member.member_assignment),
        _subscribed_topics(member.member_metadata) if is_consumer else None,
        _partitions(member.member_assignment) if is_consumer else None,
    )


def _subscribed_topics(metadata: bytes) -> tuple[str, ...] | None:
    """None where the bytes are not Kafka's: any program can call its protocol type `consumer`."""
    if not metadata:
        return None  # not told
    try:
        return tuple(consumer_protocol.decode_subscription(metadata).topics)
    except MalformedMessage:
        return None


def _partitions(assignment: bytes) -> tuple[TopicPartition, ...] | None:
    if not assignment:
        return ()
    try:
        found = consumer_protocol.decode_assignment(assignment).partitions
    except MalformedMessage:
        return None
    return tuple(sorted(TopicPartition(topic, number) for topic, numbers in found.items() for number in numbers))


# ------------------------------------------------------------------------------------------------------------- KIP-848
def described_consumer_groups(
    response: ConsumerGroupDescribeResponse, node_id: int
) -> dict[str, GroupDescription | ClientError]:
    """Without those that are no consumer groups of this coordinator, or that it knows nothing of."""
    absent = (NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)
    return {each.group_id: _consumer_group(each, node_id) for each in response.groups if each.error_code not in absent}


def _consumer_group(group: consumer_group_describe.DescribedGroup, node_id: int) -> GroupDescription | ClientError:
    if group.error_code:
        return group_error(group.error_code, group.error_message, f"ConsumerGroupDescribe of {group.group_id}")
    return GroupDescription(
        group.group_id,
        CONSUMER,
        group.group_state,
        consumer_protocol.PROTOCOL_TYPE,
        group.assignor_name,
        node_id,
        tuple(map(_consumer_member, group.members)),
        group.group_epoch,
        group.assignment_epoch,
        _rebalances(group.rebalances),
    )


def _consumer_member(member: consumer_group_describe.Member) -> MemberDescription:
    return MemberDescription(
        member.member_id,
        member.instance_id,
        member.client_id,
        _host(member.client_host),
        subscribed_topics=tuple(member.subscribed_topic_names),
        partitions=_assigned(member.assignment.topic_partitions),
        target_partitions=_assigned(member.target_assignment.topic_partitions),
        subscribed_regex=member.subscribed_topic_regex,
        rack=member.rack_id,
        member_epoch=member.member_epoch,
    )


def _assigned(topics: Iterable[consumer_group_describe.TopicPartitions]) -> tuple[TopicPartition, ...]:
    return tuple(sorted(TopicPartition(topic.topic_name, number) for topic in topics for number in topic.partitions))


def _rebalances(rebalances: Iterable[group_rebalances.GroupRebalance]) -> tuple[GroupRebalance, ...]:
    return tuple(
        GroupRebalance(
            each.started_ms,
            each.generation,
            each.cause,
            each.reason,
            each.member_id,
            each.instance_id,
            each.last_heard_ms if each.last_heard_ms >= 0 else None,
        )
        for each in rebalances
    )


def _host(written: str) -> str:
    """Java writes an address that has no name as `/192.0.2.1`."""
    return written.removeprefix("/")
