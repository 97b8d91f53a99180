"""What operators are told of a classic group (DescribeGroups 0–6, and more than it holds). Pure values."""

from typing import NamedTuple

from odradek.broker.group.classic.group_state import GroupState
from odradek.broker.group.classic.member import Member
from odradek.broker.group.classic.states import ClassicState
from odradek.broker.group.rebalance import Rebalances


class MemberDescription(NamedTuple):
    """One member."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    """Its subscription for the chosen protocol; empty unless the group is stable, as in Kafka."""
    assignment: bytes
    last_heard_ms: int | None
    """Unix time of its last request; None: nothing was heard of it since the group was loaded."""


class GroupDescription(NamedTuple):
    """One group."""

    group_id: str
    state: ClassicState
    protocol_type: str
    """Empty: no member has ever joined."""
    protocol_name: str
    """Empty unless the group is stable, as in Kafka."""
    generation: int
    leader_id: str
    """Empty: there are no members."""
    members: tuple[MemberDescription, ...]
    rebalances: Rebalances
    """Since the group was loaded."""


def describe(group: GroupState) -> GroupDescription:
    name = (group.protocol_name or "") if group.state is ClassicState.STABLE else ""
    return GroupDescription(
        group.group_id,
        group.state,
        group.protocol_type or "",
        name,
        group.generation,
        group.roster.leader_id or "",
        tuple(_describe_member(member, name) for member in group.roster.members.values()),
        group.rebalances,
    )


def _describe_member(member: Member, protocol_name: str) -> MemberDescription:
    return MemberDescription(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.metadata(protocol_name) if protocol_name else b"",
        member.assignment,
        member.last_heard_ms,
    )
