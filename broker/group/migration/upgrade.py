"""A classic group of consumers as a consumer group: the values that it begins with (ConsumerGroup.fromClassicGroup).
Pure.

Each member goes on with what the leader of the last generation assigned to it, in an epoch of that number. Partitions
of topics that do not exist any more are left out.
"""

from odradek.broker.group.classic.group import ClassicGroup
from odradek.broker.group.classic.member import Member as OfClassicGroup
from odradek.broker.group.consumer.group_state import INITIAL_EPOCH
from odradek.broker.group.consumer.group_values import (
    ClassicMember,
    Current,
    GroupEpoch,
    Key,
    Kind,
    Member,
    MemberState,
    Target,
    TargetEpoch,
    Value,
)
from odradek.broker.group.group_host import GroupOptions
from odradek.broker.group.topics_view import TopicsView
from odradek.protocol.consumer_protocol import NO_PARTITIONS, PROTOCOL_TYPE, decode_assignment, decode_subscription
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage

UPGRADES = ("upgrade", "bidirectional")
"""Those of `group.consumer.migration.policy`."""


def check_upgrade(group: ClassicGroup, instance_id: str | None, options: GroupOptions) -> None:
    """Whether the group, which has members, may become a consumer group for one more member, of this instance id.

    Raises KafkaError: GROUP_ID_NOT_FOUND, GROUP_MAX_SIZE_REACHED.
    """
    if options.group_consumer_migration_policy not in UPGRADES:
        raise _refused(group, "group.consumer.migration.policy does not let it become a consumer group")
    if group.protocol_type != PROTOCOL_TYPE:
        raise _refused(group, f"its members are no consumers, but of the type {group.protocol_type!r}")
    members, count_max = group.members, options.group_consumer_max_size
    is_replacing = instance_id is not None and any(member.instance_id == instance_id for member in members)
    if len(members) + (not is_replacing) > count_max:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED, f"Group {group.group_id} has {len(members)} members of {count_max}."
        )


def upgraded(group: ClassicGroup, topics: TopicsView) -> list[tuple[Key, Value]]:
    """Raises KafkaError GROUP_ID_NOT_FOUND where a subscription or an assignment does not parse."""
    epoch = max(group.generation, INITIAL_EPOCH)
    values: list[tuple[Key, Value]] = []
    for member in group.members:
        try:
            values += _of_member(member, group.protocol_name, epoch, topics)
        except MalformedMessage as error:
            raise _refused(group, f"what member {member.member_id} has said or got does not parse: {error}") from None
    return [*values, (Key(Kind.GROUP), GroupEpoch(epoch, 0)), (Key(Kind.TARGET_EPOCH), TargetEpoch(epoch, 0))]


def _of_member(
    member: OfClassicGroup, protocol_name: str | None, epoch: int, topics: TopicsView
) -> list[tuple[Key, Value]]:
    """Raises MalformedMessage."""
    chosen = next((each for each in member.protocols if each.name == protocol_name), member.protocols[0])
    subscription = decode_subscription(chosen.metadata)
    given = decode_assignment(member.assignment).partitions if member.assignment else NO_PARTITIONS
    partitions = {
        topic.topic_id: frozenset(indexes)
        for name, indexes in given.items()
        if indexes and (topic := topics.by_name(name)) is not None
    }
    assigned = {topic_id: dict.fromkeys(sorted(indexes), epoch) for topic_id, indexes in partitions.items()}
    protocols = tuple((each.name, each.metadata) for each in member.protocols)
    value = Member(
        instance_id=member.instance_id,
        rack_id=subscription.rack,
        client_id=member.client_id,
        client_host=member.client_host,
        topic_names=frozenset(subscription.topics),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicMember(member.session_timeout_ms, protocols),
    )
    return [
        (Key(Kind.MEMBER, member.member_id), value),
        (Key(Kind.TARGET, member.member_id), Target(partitions)),
        (Key(Kind.CURRENT, member.member_id), Current(epoch, epoch, MemberState.STABLE, assigned)),
    ]


def _refused(group: ClassicGroup, why: str) -> KafkaError:
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group.group_id} is a classic group with members: {why}.")
