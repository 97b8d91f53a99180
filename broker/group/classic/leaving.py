"""Leaving a classic group (LeaveGroup 0–5; classicGroupLeave… of Kafka's GroupMetadataManager). Pure.

Several may leave at once (KIP-345), and the group rebalances once. An instance id alone removes a static member.
"""

from odradek.broker.coordinator.machine import Now
from odradek.broker.group.classic.group_state import GroupState
from odradek.broker.group.classic.rebalancing import Why, prepare_or_complete
from odradek.broker.group.classic.requests import Leave, Leaving, Left, LeftMember
from odradek.broker.group.classic.states import ClassicState
from odradek.broker.group.rebalance import RebalanceCause, reason_given
from odradek.protocol.errors import KafkaError


def leave(group: GroupState, request: Leave, now: Now) -> Left:
    """What became of each of them. Raises KafkaError: COORDINATOR_NOT_AVAILABLE."""
    group.refuse_dead()
    answers: list[LeftMember] = []
    first: Why | None = None
    for leaving in request.members:
        try:
            why = _remove(group, leaving)
        except KafkaError as error:
            answers.append(LeftMember(leaving.member_id, leaving.instance_id, error.code))
        else:
            answers.append(LeftMember(leaving.member_id, leaving.instance_id))
            first = first or why
    if first is not None:
        _rebalance(group, first, now)
    return Left(tuple(answers))


def _remove(group: GroupState, leaving: Leaving) -> Why:
    """Raises KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""
    member_id = leaving.member_id
    if not member_id and leaving.instance_id is not None:
        member_id = group.roster.static_ids.get(leaving.instance_id, "")
    is_expected = member_id in group.roster.pending_joins
    member = None if is_expected else group.roster.known(member_id, leaving.instance_id)
    reason = reason_given(f"member {member_id} left", leaving.reason)
    why = Why(RebalanceCause.MEMBER_LEFT, reason, member)
    group.dismiss(member_id)
    return why


def _rebalance(group: GroupState, why: Why, now: Now) -> None:
    """An empty group, from which one left that was expected to join, stays empty."""
    if group.state is not ClassicState.EMPTY:
        prepare_or_complete(group, why, now)
