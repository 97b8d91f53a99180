"""Joining a classic group (JoinGroup 0–9; classicGroupJoin… of Kafka's GroupMetadataManager). Pure.

no member id, dynamic    it is given one; with `requires_known_member_id` it has to join again with it (KIP-394)
no member id, static     it is given one; a member with the same instance id is replaced (`static_members`)
known, preparing         held until all have joined
known, completing        unchanged: the current generation again; changed: another rebalance
known, stable            an unchanged follower: the current generation again; the leader, or changed: a rebalance
"""

from collections.abc import Callable
from typing import Final

from odradek.broker.coordinator.machine import Now, Waiting
from odradek.broker.group.classic.group_state import GroupState
from odradek.broker.group.classic.member import Member
from odradek.broker.group.classic.rebalancing import (
    Why,
    complete_if_joined,
    joined,
    leader_members,
    prepare_or_complete,
)
from odradek.broker.group.classic.requests import Join, Joined
from odradek.broker.group.classic.states import ClassicState
from odradek.broker.group.classic.static_members import replace
from odradek.broker.group.group_host import GroupOptions, TimerKind
from odradek.broker.group.rebalance import RebalanceCause, reason_given
from odradek.protocol.errors import ErrorCode, KafkaError

NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 5 * 60 * 1000
"""The session of a new member whose join is held, and which cannot send heartbeats: a client that goes away and joins
again as another new member leaves it behind (Kafka's classicGroupNewMemberJoinTimeoutMs)."""

OWNER_CHARACTERS_MAX: Final = 8_000
"""Of a client id or instance id in a member id: a string on the wire has at most 32,767 bytes."""


def join(group: GroupState, request: Join, waiting: Waiting[Joined], now: Now) -> Joined | None:
    """The answer, or None where the join is held, or was answered with others'.

    Raises KafkaError: INVALID_SESSION_TIMEOUT, COORDINATOR_NOT_AVAILABLE, GROUP_MAX_SIZE_REACHED,
    INCONSISTENT_GROUP_PROTOCOL, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    check_session_timeout(group.host.options, request.session_timeout_ms)
    group.refuse_dead()
    if not _has_room(group, request.member_id):
        group.dismiss(request.member_id)
        complete_if_joined(group, now)
        raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED)
    _check_protocols(group, request)
    if not request.member_id:
        return _join_without_id(group, request, waiting, now)
    if request.member_id in group.roster.pending_joins and request.instance_id is None:
        _add(group, request, request.member_id, waiting, now)
        return None
    return _join_again(group, request, waiting, now)


# -- who is let in -----------------------------------------------------------------------------------------------------


def check_session_timeout(options: GroupOptions, timeout_ms: int) -> None:
    """Raises KafkaError INVALID_SESSION_TIMEOUT."""
    shortest_ms, longest_ms = options.group_min_session_timeout_ms, options.group_max_session_timeout_ms
    if not shortest_ms <= timeout_ms <= longest_ms:
        text = f"a session of {timeout_ms} ms is not between {shortest_ms} and {longest_ms} ms"
        raise KafkaError(ErrorCode.INVALID_SESSION_TIMEOUT, text)


def _has_room(group: GroupState, member_id: str) -> bool:
    """During a rebalance those count that have joined: where the option was lowered, the last to join are left out."""
    count_max = group.host.options.group_max_size
    member = group.roster.members.get(member_id)
    match group.state:
        case ClassicState.EMPTY | ClassicState.DEAD:
            return True
        case ClassicState.PREPARING_REBALANCE:
            is_held = member is not None and member.held_join is not None
            return is_held or group.roster.held_join_count < count_max
        case ClassicState.COMPLETING_REBALANCE | ClassicState.STABLE:
            return member is not None or len(group.roster.members) < count_max


def _check_protocols(group: GroupState, request: Join) -> None:
    """An empty group takes whatever has a type and a protocol, the others what all their members offer."""
    if group.state is ClassicState.EMPTY:
        fits = bool(request.protocol_type and request.protocols)
    else:
        fits = request.protocol_type == group.protocol_type and group.roster.supports(request.protocols)
    if not fits:
        names = ", ".join(protocol.name for protocol in request.protocols)
        text = f"the members do not all support one of the protocols {names!r} of type {request.protocol_type!r}"
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, text)


# -- new members -------------------------------------------------------------------------------------------------------


def _join_without_id(group: GroupState, request: Join, waiting: Waiting[Joined], now: Now) -> Joined | None:
    member_id = new_member_id(group.host.random_uuid, request)
    if request.instance_id is not None and request.instance_id in group.roster.static_ids:
        return replace(group, request, member_id, waiting, now)
    if request.instance_id is None and request.requires_known_member_id:
        group.roster.pending_joins[member_id] = None
        key = group.key(TimerKind.SESSION, member_id)
        group.host.timers.set(key, now.monotonic_ms + request.session_timeout_ms)
        return Joined(member_id, error_code=ErrorCode.MEMBER_ID_REQUIRED)
    _add(group, request, member_id, waiting, now)
    return None


def new_member_id(random_uuid: Callable[[], bytes], request: Join) -> str:
    """As Kafka names them, so that operators see whose it is."""
    owner = request.client_id if request.instance_id is None else request.instance_id
    owner = owner[:OWNER_CHARACTERS_MAX]
    digits = random_uuid().hex()
    return f"{owner}-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _add(group: GroupState, request: Join, member_id: str, waiting: Waiting[Joined], now: Now) -> None:
    member = Member(
        member_id,
        group.key(TimerKind.SESSION, member_id),
        instance_id=request.instance_id,
        client_id=request.client_id,
        client_host=request.client_host,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        session_timeout_ms=request.session_timeout_ms,
        protocols=request.protocols,
    )
    why = Why(RebalanceCause.MEMBER_JOINED, reason_given(f"member {member_id} joined", request.reason), member)
    member.is_new = True
    member.last_heard_ms = now.unix_ms
    if not group.roster.members:
        group.protocol_type = request.protocol_type
    group.roster.add(member)
    group.roster.hold_join(member, waiting)
    group.keep_alive(member, now, NEW_MEMBER_JOIN_TIMEOUT_MS)
    if group.is_initial_rebalance and group.initial_delay is not None:
        group.initial_delay = group.initial_delay._replace(has_grown=True)
    prepare_or_complete(group, why, now)


# -- members that join again -------------------------------------------------------------------------------------------


def _join_again(group: GroupState, request: Join, waiting: Waiting[Joined], now: Now) -> Joined | None:
    member = group.roster.known(request.member_id, request.instance_id)
    why = _why_rebalance(group, member, request)
    member.last_heard_ms = now.unix_ms
    if why is None:
        is_completing = group.state is ClassicState.COMPLETING_REBALANCE
        return joined(group, member, leader_members(group, member) if is_completing else ())
    earlier = group.roster.take_join(member)
    if earlier is not None:
        # The client has given that request up, or it would not have sent this one. Kafka never answers it.
        group.reply(earlier, KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, "the member has joined again"))
    group.roster.update(member, request.protocols, request.rebalance_timeout_ms, request.session_timeout_ms)
    group.roster.hold_join(member, waiting)
    prepare_or_complete(group, why, now)
    return None


def _why_rebalance(group: GroupState, member: Member, request: Join) -> Why | None:
    """None: the member is told the current generation again, for it may not have received the answer."""
    is_preparing = group.state is ClassicState.PREPARING_REBALANCE
    if group.state is ClassicState.STABLE and group.roster.leader_id == member.member_id:
        # What it assigns may change though no subscription does, with the partitions of a topic.
        reason = reason_given(f"leader {member.member_id} joined again", request.reason)
        return Why(RebalanceCause.LEADER_REJOINED, reason, member)
    if is_preparing or member.protocols != request.protocols:
        reason = reason_given(f"member {member.member_id} changed its subscription", request.reason)
        return Why(RebalanceCause.SUBSCRIPTION_CHANGED, reason, member)
    return None
