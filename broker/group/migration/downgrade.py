"""A consumer group of which only classic members are left as a classic group: its record (ClassicGroup
.fromConsumerGroup). Pure.

The generation is the epoch of the target assignment, which members have that are not behind: their heartbeats and
commits are good until they have joined again. Each member is assigned what the target gives to it. The group rebalances
at once: who leads is to assign without the member that is gone.
"""

from collections.abc import Mapping
from typing import NamedTuple

from odradek.broker.group.classic.protocol_vote import ProtocolSupport, chosen_protocol
from odradek.broker.group.classic.requests import OfferedProtocol
from odradek.broker.group.classic.stored_group import UNKNOWN_TIMESTAMP
from odradek.broker.group.consumer.group import ConsumerGroup
from odradek.broker.group.consumer.group_values import ClassicMember, Member, Target
from odradek.broker.group.group_host import GroupOptions
from odradek.broker.group.migration.embedded import assignment_for
from odradek.broker.group.topics_view import TopicsView
from odradek.protocol.consumer_protocol import PROTOCOL_TYPE
from odradek.protocol.stored.group_metadata import GroupMetadataValue, MemberMetadata

DOWNGRADES = ("downgrade", "bidirectional")
"""Those of `group.consumer.migration.policy`."""
NO_TARGET = Target({})

Offers = Mapping[str, tuple[OfferedProtocol, ...]]


class Downgraded(NamedTuple):
    """A classic group: its record, and what the record does not hold."""

    value: GroupMetadataValue
    offers: Offers
    """What each member offers; the record has the chosen protocol alone."""


def may_downgrade(group: ConsumerGroup, options: GroupOptions) -> bool:
    """Whether only classic members are left, and the group is to become theirs."""
    return (
        group.is_all_classic
        and options.group_consumer_migration_policy in DOWNGRADES
        and group.member_count <= options.group_max_size
    )


def downgraded(group: ConsumerGroup, topics: TopicsView) -> Downgraded | None:
    """None where the members have no protocol in common, which who joins is asked for; a log of another's may lack it.
    There are members, and all are classic."""
    state = group.state
    offers = {member_id: offered(member) for member_id, member in state.members.items()}
    support = ProtocolSupport()
    for protocols in offers.values():
        support.add(protocols)
    if not (candidates := support.common(len(offers))):
        return None
    name = chosen_protocol(offers.values(), candidates)
    members = [
        _stored(member_id, member, offers[member_id], name, state.targets.get(member_id, NO_TARGET), topics)
        for member_id, member in state.members.items()
    ]
    value = GroupMetadataValue(
        protocol_type=PROTOCOL_TYPE,
        generation=state.assignment_epoch,
        protocol=name,
        leader=members[0].member_id,
        current_state_timestamp=UNKNOWN_TIMESTAMP,
        members=members,
    )
    return Downgraded(value, offers)


def offered(member: Member) -> tuple[OfferedProtocol, ...]:
    """By a classic member."""
    return tuple(OfferedProtocol(name, metadata) for name, metadata in _classic(member).protocols)


def _classic(member: Member) -> ClassicMember:
    assert member.classic is not None, "only classic members are left"
    return member.classic


def _stored(
    member_id: str,
    member: Member,
    protocols: tuple[OfferedProtocol, ...],
    name: str,
    target: Target,
    topics: TopicsView,
) -> MemberMetadata:
    metadata = next(each.metadata for each in protocols if each.name == name)
    return MemberMetadata(
        member_id=member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=_classic(member).session_timeout_ms,
        subscription=metadata,
        assignment=assignment_for(target.partitions, metadata, topics),
    )
