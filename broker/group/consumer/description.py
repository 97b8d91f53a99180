"""A consumer group for people: what ConsumerGroupDescribe answers. Pure."""

from collections.abc import Collection, Mapping, Sequence

from odradek.broker.group.assignors.spec import NO_PARTITIONS
from odradek.broker.group.consumer.assigning import preferred_assignor
from odradek.broker.group.consumer.group_state import GroupState
from odradek.broker.group.consumer.requests import (
    DescribedGroup,
    DescribedMember,
    DescribedPartitions,
    MemberType,
)
from odradek.broker.group.rebalance import Rebalances
from odradek.broker.group.topics_view import TopicsView


def describe(
    group_id: str, state: GroupState, topics: TopicsView, offered: Sequence[str], rebalances: Rebalances
) -> DescribedGroup:
    """`offered`: the assignors of the broker. Topics that do not exist any more are left out, as Kafka does."""
    return DescribedGroup(
        group_id=group_id,
        state=state.phase.value,
        group_epoch=state.group_epoch,
        assignment_epoch=state.assignment_epoch,
        assignor=preferred_assignor(state, offered),
        members=tuple(_described(member_id, state, topics) for member_id in state.members),
        rebalances=rebalances,
    )


def _described(member_id: str, state: GroupState, topics: TopicsView) -> DescribedMember:
    member, current, target = state.members[member_id], state.current(member_id), state.targets.get(member_id)
    return DescribedMember(
        member_id=member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=current.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        topic_names=tuple(sorted(member.topic_names)),
        topic_regex=member.topic_regex,
        assigned=_partitions(current.assigned, topics),
        target=_partitions(target.partitions if target is not None else NO_PARTITIONS, topics),
        member_type=MemberType.CONSUMER if member.classic is None else MemberType.CLASSIC,
    )


def _partitions(partitions: Mapping[bytes, Collection[int]], topics: TopicsView) -> tuple[DescribedPartitions, ...]:
    found = (
        DescribedPartitions(topic_id, topic.name, tuple(sorted(indexes)))
        for topic_id, indexes in partitions.items()
        if (topic := topics.by_id(topic_id)) is not None
    )
    return tuple(sorted(found, key=lambda one: one.topic_name))
