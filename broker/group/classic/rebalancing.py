"""How a classic group comes to its next generation: prepare, wait for joins, complete (GroupMetadataManager). Pure.

prepare       held syncs are answered REBALANCE_IN_PROGRESS; joins are held from now on
wait          for all known members, at most the longest rebalance time-out of a member; an empty group instead waits
              `group.initial.rebalance.delay.ms`, extended while members come, at most that time-out in all (KIP-134)
complete      dynamic members that have not joined are left behind, the next generation begins, held joins are
              answered; members that do not sync within the rebalance time-out are removed
"""

from collections.abc import Sequence

from odradek.broker.coordinator.machine import Now
from odradek.broker.group.classic.group_state import GroupState, InitialDelay
from odradek.broker.group.classic.member import Member
from odradek.broker.group.classic.requests import Joined, JoinedMember
from odradek.broker.group.classic.states import ClassicState
from odradek.broker.group.classic.storing import store
from odradek.broker.group.group_host import TimerKind
from odradek.broker.group.rebalance import Rebalance, RebalanceCause, named
from odradek.protocol.errors import ErrorCode, KafkaError

SETTLED = frozenset({ClassicState.COMPLETING_REBALANCE, ClassicState.STABLE})
"""The states in which a generation has begun, and whoever comes or goes ends it."""
CAN_PREPARE = SETTLED | {ClassicState.EMPTY}


class Why:
    """What makes a group rebalance, looked at before it does."""

    __slots__ = ("cause", "instance_id", "last_heard_ms", "member_id", "reason")

    def __init__(self, cause: RebalanceCause, reason: str, member: Member | None = None) -> None:
        self.cause = cause
        self.reason = reason
        self.member_id = "" if member is None else member.member_id
        self.instance_id = None if member is None else member.instance_id
        self.last_heard_ms = None if member is None else member.last_heard_ms


def prepare_or_complete(group: GroupState, why: Why, now: Now) -> None:
    """Begins a rebalance; where one is under way already, looks whether all have joined."""
    if group.state in CAN_PREPARE:
        prepare(group, why, now)
    else:
        complete_if_joined(group, now)


def prepare(group: GroupState, why: Why, now: Now) -> None:
    """Ends the generation; joins are held from now on. At once the next one begins if all members have joined."""
    _drop_syncs(group, now)
    ids = why.member_id, why.instance_id
    group.remember(Rebalance(now.unix_ms, group.generation, why.cause, *ids, why.reason, why.last_heard_ms))
    is_initial = group.state is ClassicState.EMPTY
    group.move(ClassicState.PREPARING_REBALANCE, now)
    if is_initial:
        delay_ms = group.host.options.group_initial_rebalance_delay_ms
        group.initial_delay = InitialDelay(delay_ms, max(group.roster.rebalance_timeout_ms - delay_ms, 0))
        group.set_timer(TimerKind.JOIN, delay_ms, now)
    elif group.roster.has_all_joined:
        complete(group, now)
    else:
        group.set_timer(TimerKind.JOIN, group.roster.rebalance_timeout_ms, now)


def _drop_syncs(group: GroupState, now: Now) -> None:
    """Nobody is given an assignment of the generation that ends."""
    if group.state is ClassicState.COMPLETING_REBALANCE:
        error = KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        for member in group.roster.members.values():
            member.assignment = b""
            if member.held_sync is not None:
                held_sync, member.held_sync = member.held_sync, None
                group.reply(held_sync, error)
                group.keep_alive(member, now)
    group.roster.pending_syncs.clear()
    group.cancel_timer(TimerKind.SYNC)


def complete_if_joined(group: GroupState, now: Now) -> None:
    """An initial rebalance is completed by its timer alone."""
    is_preparing = group.state is ClassicState.PREPARING_REBALANCE
    if is_preparing and not group.is_initial_rebalance and group.roster.has_all_joined:
        complete(group, now)


def complete_after_removal(group: GroupState, now: Now) -> None:
    """Somebody who was waited for was silent too long; an initial rebalance is completed, too, as in Kafka."""
    if group.state is ClassicState.PREPARING_REBALANCE and group.roster.has_all_joined:
        complete(group, now)


def complete(group: GroupState, now: Now) -> None:
    """Begins the next generation with those who have joined.

    Static members that have not joined stay; a group in which only such are left waits for their sessions to end.
    """
    group.cancel_timer(TimerKind.JOIN)
    for member in group.roster.not_joined:
        if not member.is_static:
            group.dismiss(member.member_id)
    if group.roster.members and not group.roster.elect_joined_leader():
        group.set_timer(TimerKind.JOIN, group.roster.rebalance_timeout_ms, now)
        return
    group.initial_delay = None
    group.begin_generation(now)
    if group.state is ClassicState.EMPTY:
        # A refusal changes nothing: until the next record, a broker that loads the group finds the members of an older
        # generation, which are silent and expire.
        store(group)
        if not group.has_anybody:
            group.forget_members()
        return
    for member in group.roster.members.values():
        held_join = group.roster.take_join(member)
        if held_join is not None:
            group.reply(held_join, joined(group, member, leader_members(group, member)))
        group.keep_alive(member, now)
        member.is_new = False
        group.roster.pending_syncs[member.member_id] = None
    group.set_timer(TimerKind.SYNC, group.roster.rebalance_timeout_ms, now)


def joined(
    group: GroupState, member: Member, members: Sequence[JoinedMember] = (), *, skip_assignment: bool = False
) -> Joined:
    """What a member is told of the generation."""
    return Joined(
        member.member_id,
        group.generation,
        group.protocol_type,
        group.protocol_name,
        group.roster.leader_id or "",
        tuple(members),
        skip_assignment,
    )


def leader_members(group: GroupState, member: Member) -> tuple[JoinedMember, ...]:
    """All members with their subscriptions, for the leader; nothing for the others."""
    if group.roster.leader_id != member.member_id:
        return ()
    assert group.protocol_name is not None, "a generation with members has a protocol"
    name = group.protocol_name
    return tuple(
        JoinedMember(each.member_id, each.instance_id, each.metadata(name)) for each in group.roster.members.values()
    )


# -- deadlines ---------------------------------------------------------------------------------------------------------


def join_timed_out(group: GroupState, now: Now) -> None:
    """Time is up for joins; an initial delay is extended if a member has come, and time remains."""
    if group.state is not ClassicState.PREPARING_REBALANCE:
        return
    delay = group.initial_delay
    if delay is not None and delay.has_grown and delay.remaining_ms:
        next_ms = min(group.host.options.group_initial_rebalance_delay_ms, delay.remaining_ms)
        group.initial_delay = InitialDelay(next_ms, max(delay.remaining_ms - delay.delay_ms, 0))
        group.set_timer(TimerKind.JOIN, next_ms, now)
    else:
        complete(group, now)


def sync_timed_out(group: GroupState, now: Now) -> None:
    """Members that have joined and not synced are removed."""
    silent = list(group.roster.pending_syncs)
    if group.state not in SETTLED or not silent:
        return
    first = group.roster.members[silent[0]]
    why = Why(RebalanceCause.SYNC_EXPIRED, f"{named(silent)} did not sync in time", first)
    for member_id in silent:
        group.dismiss(member_id)
    prepare(group, why, now)


def session_timed_out(group: GroupState, member_id: str, now: Now) -> None:
    """Removes a member that was silent, unless it waits for an answer of ours, or one that was expected to join."""
    if member_id in group.roster.pending_joins:
        group.roster.remove(member_id)
        complete_after_removal(group, now)
        return
    member = group.roster.members.get(member_id)
    if member is None or member.needs_no_heartbeat:
        return
    why = Why(RebalanceCause.SESSION_EXPIRED, f"member {member_id} was not heard of in time", member)
    group.dismiss(member_id)
    if group.state in SETTLED:
        prepare(group, why, now)
    else:
        complete_after_removal(group, now)
