"""Staying in a classic group (Heartbeat 0–4; classicGroupHeartbeat of Kafka's GroupMetadataManager). Pure."""

from odradek.broker.coordinator.machine import Now
from odradek.broker.group.classic.group_state import GroupState
from odradek.broker.group.classic.requests import Heartbeat
from odradek.broker.group.classic.states import ClassicState
from odradek.protocol.errors import ErrorCode, KafkaError


def heartbeat(group: GroupState, request: Heartbeat, now: Now) -> None:
    """The member's session begins again, during a rebalance, too.

    Raises KafkaError: COORDINATOR_NOT_AVAILABLE, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION,
    REBALANCE_IN_PROGRESS (the member has to join again).
    """
    group.refuse_dead()
    member = group.roster.known(request.member_id, request.instance_id)
    group.check_generation(request.generation)
    member.last_heard_ms = now.unix_ms
    group.keep_alive(member, now)
    if group.state is ClassicState.PREPARING_REBALANCE:
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)


def refresh_session(group: GroupState, member_id: str, now: Now) -> None:
    """A commit that was accepted counts as a heartbeat, but for a group that waits for assignments, as in Kafka."""
    member = group.roster.members.get(member_id)
    if member is not None and group.state in (ClassicState.STABLE, ClassicState.PREPARING_REBALANCE):
        member.last_heard_ms = now.unix_ms
        group.keep_alive(member, now)
