"""How members come into a group, change, and leave it: the edits of each. Pure.

Rules: Kafka's GroupMetadataManager, `getOrMaybeSubscribe…ConsumerGroupMember`, `replaceMember`, `removeMember`.
"""

from odradek.broker.group.assignors.spec import NO_PARTITIONS
from odradek.broker.group.consumer.edits import Edits
from odradek.broker.group.consumer.group_state import GroupState
from odradek.broker.group.consumer.group_values import AssignedPartitions, Current, Key, Kind, Member, Target
from odradek.broker.group.consumer.member_checks import (
    check_epoch,
    fenced_instance,
    unknown_instance,
    unknown_member,
    unreleased_instance,
)
from odradek.broker.group.consumer.requests import NOT_GIVEN, STATIC_LEAVE_EPOCH, ConsumerHeartbeat
from odradek.protocol.errors import ErrorCode, KafkaError

UNSEEN = Member()
"""Of whom nothing is known yet."""


def admit(
    state: GroupState,
    group_id: str,
    member_id: str,
    request: ConsumerHeartbeat,
    edits: Edits,
    size: int,
    *,
    is_classic: bool = False,
) -> None:
    """A member joins: for the first time, again, or in the place of a static member that has left.

    `size` is how many members the group may have. Where one of the two speaks the classic protocol (`is_classic`: the
    new one), an instance id is taken over at once. Raises KafkaError: UNRELEASED_INSTANCE_ID, GROUP_MAX_SIZE_REACHED.
    A static member that joins again under its own member id is itself: Kafka 4.3 answers UNRELEASED_INSTANCE_ID to it.
    """
    instance_id = request.instance_id
    owner_id = state.static_ids.get(instance_id) if instance_id is not None else None
    if owner_id is not None and owner_id != member_id:
        assert instance_id is not None
        is_released = (
            is_classic
            or state.members[owner_id].classic is not None
            or state.current(owner_id).member_epoch == STATIC_LEAVE_EPOCH
        )
        if not is_released:
            raise unreleased_instance(instance_id, owner_id)
        _replace(state, owner_id, member_id, edits)
    elif member_id not in state.members and len(state.members) >= size:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED, f"Group {group_id} has {size} members, and may not have more."
        )
    elif state.current(member_id).member_epoch == STATIC_LEAVE_EPOCH:
        _replace(state, member_id, member_id, edits)


def check_member(state: GroupState, group_id: str, request: ConsumerHeartbeat) -> None:
    """A member says something. Raises KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, FENCED_MEMBER_EPOCH."""
    check_identity(state, group_id, request)
    check_epoch(state.current(request.member_id), request)


def check_identity(state: GroupState, group_id: str, request: ConsumerHeartbeat) -> None:
    """Raises KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""
    if request.instance_id is not None:
        owner_id = state.static_ids.get(request.instance_id)
        if owner_id is None:
            raise unknown_instance(group_id, request.instance_id)
        if owner_id != request.member_id:
            raise fenced_instance(request.instance_id, request.member_id, owner_id)
    elif request.member_id not in state.members:
        raise unknown_member(group_id, request.member_id)


def updated(member: Member, request: ConsumerHeartbeat) -> Member:
    """With all that the heartbeat tells. Who heartbeats does not speak the classic protocol any more."""
    return Member(
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        topic_names=member.topic_names if request.topic_names is None else request.topic_names,
        topic_regex=member.topic_regex if request.topic_regex is None else request.topic_regex,
        server_assignor=member.server_assignor if request.server_assignor is None else request.server_assignor,
        rebalance_timeout_ms=member.rebalance_timeout_ms
        if request.rebalance_timeout_ms == NOT_GIVEN
        else request.rebalance_timeout_ms,
    )


def remove(member_id: str, edits: Edits) -> None:
    """The order is Kafka's: what a member has goes before the member."""
    for kind in (Kind.CURRENT, Kind.TARGET, Kind.MEMBER):
        edits.put(Key(kind, member_id), None)


def put_static_leave(state: GroupState, member_id: str, edits: Edits) -> None:
    """A static member goes away for a while. It keeps what it had; what it was to give up, it has given up."""
    current = state.current(member_id)
    edits.put(
        Key(Kind.CURRENT, member_id),
        current._replace(member_epoch=STATIC_LEAVE_EPOCH, assigned=_in_epoch_zero(current.assigned), revoking={}),
    )


def _replace(state: GroupState, former_id: str, member_id: str, edits: Edits) -> None:
    """All that the former member had is the new one's, which has to begin with epoch 0."""
    member, current = state.members[former_id], state.current(former_id)
    target = state.targets.get(former_id) or Target(NO_PARTITIONS)
    remove(former_id, edits)
    edits.put(Key(Kind.MEMBER, member_id), member)
    edits.put(Key(Kind.TARGET, member_id), target)
    assigned = _in_epoch_zero(current.assigned)
    edits.put(Key(Kind.CURRENT, member_id), Current(0, 0, current.state, assigned, current.revoking))


def _in_epoch_zero(assigned: AssignedPartitions) -> AssignedPartitions:
    return {topic_id: dict.fromkeys(held, 0) for topic_id, held in assigned.items()}
