"""Asking for assignments (SyncGroup 0–5; classicGroupSync… of Kafka's GroupMetadataManager). Pure.

The leader's sync brings everybody's assignments: they are stored, and the group is stable. Syncs before are held, later
ones answered at once; all of them leave when the record is committed. A refused record ends the generation: nobody was
told an assignment of it, and all have to join again.
"""

from odradek.broker.coordinator.machine import Now, Waiting
from odradek.broker.group.classic.group_state import GroupState
from odradek.broker.group.classic.member import Member
from odradek.broker.group.classic.rebalancing import Why, prepare
from odradek.broker.group.classic.requests import Sync, Synced
from odradek.broker.group.classic.states import ClassicState
from odradek.broker.group.classic.storing import store
from odradek.broker.group.group_host import TimerKind
from odradek.broker.group.rebalance import RebalanceCause
from odradek.protocol.errors import ErrorCode, KafkaError


def sync(group: GroupState, request: Sync, waiting: Waiting[Synced], now: Now) -> Synced | None:
    """The answer, or None where the sync is held, or was answered with others'.

    Raises KafkaError: COORDINATOR_NOT_AVAILABLE, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL, REBALANCE_IN_PROGRESS.
    """
    member = _check(group, request)
    member.last_heard_ms = now.unix_ms
    if group.state is ClassicState.PREPARING_REBALANCE:
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
    _expect_no_longer(group, member)
    if group.state is ClassicState.STABLE:
        return _synced(group, member)
    assert group.state is ClassicState.COMPLETING_REBALANCE, "a group with members is neither empty nor dead"
    if member.held_sync is not None:
        # The client has given that request up, or it would not have sent this one. Kafka never answers it.
        group.reply(member.held_sync, KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, "the member has synced again"))
    member.held_sync = waiting
    if group.roster.leader_id == member.member_id:
        _assign(group, request, now)
    return None


def _check(group: GroupState, request: Sync) -> Member:
    group.refuse_dead()
    member = group.roster.known(request.member_id, request.instance_id)
    group.check_generation(request.generation)
    for given, actual in (
        (request.protocol_type, group.protocol_type),
        (request.protocol_name, group.protocol_name),
    ):
        if given is not None and given != actual:
            text = f"the group uses {actual!r}, not {given!r}"
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, text)
    return member


def _expect_no_longer(group: GroupState, member: Member) -> None:
    pending_syncs = group.roster.pending_syncs
    pending_syncs.pop(member.member_id, None)
    if not pending_syncs:
        group.cancel_timer(TimerKind.SYNC)


def _assign(group: GroupState, request: Sync, now: Now) -> None:
    """Whom the leader forgot is assigned nothing; whom it invented is passed over."""
    assignments = dict(request.assignments)
    members = group.roster.members.values()
    for member in members:
        member.assignment = assignments.get(member.member_id, b"")
    group.move(ClassicState.STABLE, now)
    generation = group.generation
    store(group, lambda: _take_back(group, generation, request.member_id, now))
    for member in members:
        if member.held_sync is not None:
            held_sync, member.held_sync = member.held_sync, None
            group.reply(held_sync, _synced(group, member))
            group.keep_alive(member, now)


def _take_back(group: GroupState, generation: int, leader_id: str, now: Now) -> None:
    """The assignments of that generation could not be stored. A later generation has its own."""
    if group.generation != generation:
        return
    for member in group.roster.members.values():
        member.assignment = b""
    if group.state is ClassicState.STABLE:
        leader = group.roster.members.get(leader_id)
        reason = f"the assignments of generation {generation} could not be stored"
        prepare(group, Why(RebalanceCause.NOT_STORED, reason, leader), now)


def _synced(group: GroupState, member: Member) -> Synced:
    return Synced(group.protocol_type, group.protocol_name, member.assignment)
