"""What classic members ask of a consumer group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup (GroupMetadataManager,
`classicGroup…ToConsumerGroup`). Pure.

A generation is the member's own epoch. A join is answered at once: what the member says that it owns takes it one step
towards the target, as a heartbeat of KIP-848 does; nobody leads. A sync is answered with what the member has. A
heartbeat says REBALANCE_IN_PROGRESS when there is a newer target, something to give up, or something that has become
free: then the member has its rebalance time-out to join again, and as long again to sync.
"""

from odradek.broker.coordinator.machine import Now
from odradek.broker.group.classic.joining import check_session_timeout, new_member_id
from odradek.broker.group.classic.requests import (
    Heartbeat,
    Join,
    Joined,
    Leave,
    Leaving,
    Left,
    LeftMember,
    Sync,
    Synced,
)
from odradek.broker.group.consumer.group import ConsumerGroup
from odradek.broker.group.consumer.group_values import ClassicMember, Member, MemberState
from odradek.broker.group.consumer.member_checks import fenced_instance, unknown_instance, unknown_member
from odradek.broker.group.consumer.requests import JOIN_EPOCH, ConsumerHeartbeat
from odradek.broker.group.group_host import GroupHost
from odradek.broker.group.migration.embedded import assignment_for
from odradek.broker.group.rebalance import RebalanceCause, reason_given
from odradek.broker.group.topics_view import TopicsView
from odradek.protocol.consumer_protocol import PROTOCOL_TYPE, Subscription, decode_subscription
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage


def join(group: ConsumerGroup, request: Join, host: GroupHost, topics: TopicsView, now: Now) -> Joined:
    """Raises KafkaError: INVALID_SESSION_TIMEOUT, INCONSISTENT_GROUP_PROTOCOL, GROUP_MAX_SIZE_REACHED,
    UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""
    check_session_timeout(host.options, request.session_timeout_ms)
    _check_protocols(group, request)
    subscription = _subscription(request)
    if not request.member_id:
        member_id = new_member_id(host.random_uuid, request)
        if request.requires_known_member_id and request.instance_id is None:
            return Joined(member_id, error_code=ErrorCode.MEMBER_ID_REQUIRED)
    else:
        member_id = request.member_id
        if request.instance_id is not None:
            _check_instance(group, member_id, request.instance_id)
    told = ConsumerHeartbeat(
        member_id,
        JOIN_EPOCH,
        instance_id=request.instance_id,
        rack_id=subscription.rack,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topic_names=frozenset(subscription.topics),
        owned={
            topic.topic_id: frozenset(indexes)
            for name, indexes in subscription.owned_partitions.items()
            if (topic := topics.by_name(name)) is not None
        },
        client_id=request.client_id,
        client_host=request.client_host,
    )
    protocols = tuple((each.name, each.metadata) for each in request.protocols)
    epoch = group.join_classic(told, ClassicMember(request.session_timeout_ms, protocols), now)
    return Joined(member_id, epoch, PROTOCOL_TYPE, request.protocols[0].name)


def _check_protocols(group: ConsumerGroup, request: Join) -> None:
    """It offers a protocol that all classic members offer."""
    offered = {each.name for each in request.protocols}
    common = offered.intersection(
        *({name for name, _ in member.classic.protocols} for member in group.state.members.values() if member.classic)
    )
    if request.protocol_type != PROTOCOL_TYPE or not common:
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"The classic members of group {group.group_id} do not all support one of the protocols "
            f"{', '.join(sorted(offered))!r} of type {request.protocol_type!r}.",
        )


def _subscription(request: Join) -> Subscription:
    try:
        return decode_subscription(request.protocols[0].metadata)
    except MalformedMessage as error:
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"The subscription does not parse, and the group assigns by it: {error}.",
        ) from None


def sync(group: ConsumerGroup, request: Sync, topics: TopicsView, now: Now) -> Synced:
    """Raises KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, INCONSISTENT_GROUP_PROTOCOL,
    REBALANCE_IN_PROGRESS."""
    classic = _known(group, request.member_id, request.instance_id, request.generation)
    current = group.state.current(request.member_id)
    name, metadata = classic.protocols[0]
    for given, actual in ((request.protocol_type, PROTOCOL_TYPE), (request.protocol_name, name)):
        if given is not None and given != actual:
            raise KafkaError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"The member was told {actual!r} at its join, not {given!r}."
            )
    is_behind = group.state.assignment_epoch > current.member_epoch
    if is_behind and current.state is not MemberState.UNREVOKED_PARTITIONS:
        group.timers.expect_join(request.member_id, now.monotonic_ms)
        raise _rebalancing(group)
    group.timers.synced(request.member_id, now.monotonic_ms)
    return Synced(request.protocol_type, request.protocol_name, assignment_for(current.assigned, metadata, topics))


def heartbeat(group: ConsumerGroup, request: Heartbeat, now: Now) -> None:
    """Raises KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS (the member
    has to join again)."""
    member_id = request.member_id
    _known(group, member_id, request.instance_id, request.generation)
    group.timers.heard(member_id, now.monotonic_ms)
    group.look_at_topics(member_id, now)
    current = group.state.current(member_id)
    if (
        current.member_epoch < group.state.assignment_epoch
        or current.state is MemberState.UNREVOKED_PARTITIONS
        or (current.state is MemberState.UNRELEASED_PARTITIONS and not _waits(group, member_id))
    ):
        group.timers.expect_join(member_id, now.monotonic_ms)
        raise _rebalancing(group)


def _waits(group: ConsumerGroup, member_id: str) -> bool:
    """Whether another member still has something that the target gives to this one."""
    state = group.state
    target, assigned = state.targets.get(member_id), state.current(member_id).assigned
    return target is not None and any(
        index not in assigned.get(topic_id, ()) and not state.is_free_for(member_id, topic_id, index)
        for topic_id, indexes in target.partitions.items()
        for index in indexes
    )


def leave(group: ConsumerGroup, request: Leave, now: Now) -> Left:
    """What became of each of them; one raise of the group epoch for all."""
    answers: list[LeftMember] = []
    gone: list[str] = []
    reason: str | None = None
    for leaving in request.members:
        try:
            member_id = _leaving(group, leaving)
            if member_id in gone:
                raise unknown_member(group.group_id, member_id)
        except KafkaError as error:
            answers.append(LeftMember(leaving.member_id, leaving.instance_id, error.code))
        else:
            gone.append(member_id)
            reason = reason or leaving.reason
            answers.append(LeftMember(member_id, leaving.instance_id))
    if gone:
        group.expel(gone, RebalanceCause.MEMBER_LEFT, reason_given("left", reason), now)
    return Left(tuple(answers))


def _leaving(group: ConsumerGroup, leaving: Leaving) -> str:
    """Its member id; a static member may be named by its instance id alone. Raises KafkaError: UNKNOWN_MEMBER_ID,
    FENCED_INSTANCE_ID."""
    member_id = leaving.member_id
    if leaving.instance_id is not None:
        member_id = _check_instance(group, member_id, leaving.instance_id)
    _classic(group, member_id)
    return member_id


# -- who speaks --------------------------------------------------------------------------------------------------------


def _known(group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int) -> ClassicMember:
    """Raises KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION."""
    if instance_id is not None and _check_instance(group, member_id, instance_id) != member_id:
        raise unknown_member(group.group_id, member_id)
    classic = _classic(group, member_id)
    epoch = group.state.current(member_id).member_epoch
    if generation != epoch:
        raise KafkaError(
            ErrorCode.ILLEGAL_GENERATION, f"Generation {generation} is not the member's, which is {epoch}."
        )
    return classic


def _classic(group: ConsumerGroup, member_id: str) -> ClassicMember:
    """Raises KafkaError: UNKNOWN_MEMBER_ID, also for a member of the consumer protocol."""
    member: Member | None = group.state.members.get(member_id)
    if member is None or member.classic is None:
        raise unknown_member(group.group_id, member_id)
    return member.classic


def _check_instance(group: ConsumerGroup, member_id: str, instance_id: str) -> str:
    """The member that has the instance id. Without a member id, any will do. Raises KafkaError: UNKNOWN_MEMBER_ID,
    FENCED_INSTANCE_ID."""
    owner_id = group.state.static_ids.get(instance_id)
    if owner_id is None:
        raise unknown_instance(group.group_id, instance_id)
    if member_id and owner_id != member_id:
        raise fenced_instance(instance_id, member_id, owner_id)
    return owner_id


def _rebalancing(group: ConsumerGroup) -> KafkaError:
    return KafkaError(
        ErrorCode.REBALANCE_IN_PROGRESS, f"Group {group.group_id} has a newer assignment: the member has to join again."
    )
