"""ConsumerGroupDescribe (key 69): state, epochs and members of consumer groups (KIP-848). Each is answered for itself.
Topics of a member that the caller may not see take the group along (TOPIC_AUTHORIZATION_FAILED), as in Kafka.

Versions: 0 why the group rebalanced last, in a tagged field of our own. 1 the kind of each member (KIP-1099).
"""

from collections.abc import Sequence

from odradek.broker.access.operations import NOT_ASKED, Operation
from odradek.broker.access.resource import of_group, of_topic
from odradek.broker.group.consumer.requests import DescribedGroup as GroupDescription
from odradek.broker.group.consumer.requests import DescribedMember, DescribedPartitions
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.group_requests import (
    ask_group,
    permitted_operations,
    require_consumer_groups,
    require_group_id,
    told_rebalances,
)
from odradek.broker.handling.large_requests import Steps
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)


async def handle(context: Context, call: Call, request: ConsumerGroupDescribeRequest) -> ConsumerGroupDescribeResponse:
    groups: list[DescribedGroup] = []
    steps = Steps(call)
    for group_id in request.group_ids:
        await steps.step()
        try:
            require_consumer_groups(context)
            context.require(call, Operation.DESCRIBE, of_group(group_id))
            require_group_id(group_id)
            described = _described(await _ask(context, call, group_id))
            _require_topics(context, call, described)
        except KafkaError as error:
            described = DescribedGroup(group_id=group_id, error_code=call.failed(error), error_message=error.message)
        if request.include_authorized_operations and ErrorCode(described.error_code) is ErrorCode.NONE:
            described.authorized_operations = permitted_operations(context, call, group_id)
        groups.append(described)
    return ConsumerGroupDescribeResponse(groups=groups)


async def _ask(context: Context, call: Call, group_id: str) -> GroupDescription:
    return await ask_group(
        context, call, group_id, lambda machine, waiting, now: machine.describe_consumer(group_id, waiting, now)
    )


def _require_topics(context: Context, call: Call, group: DescribedGroup) -> None:
    assignments = (each for member in group.members for each in (member.assignment, member.target_assignment))
    names = {topic.topic_name for assignment in assignments for topic in assignment.topic_partitions}
    for name in sorted(names):
        context.require(call, Operation.DESCRIBE, of_topic(name))


def _described(group: GroupDescription) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor,
        members=[_member(member) for member in group.members],
        rebalances=told_rebalances(group.rebalances),
    )


def _member(member: DescribedMember) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        assignment=_assignment(member.assigned),
        target_assignment=_assignment(member.target),
        member_type=member.member_type,
    )


def _assignment(partitions: Sequence[DescribedPartitions]) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=each.topic_id, topic_name=each.topic_name, partitions=list(each.partitions))
            for each in partitions
        ]
    )


def fail(request: ConsumerGroupDescribeRequest, code: ErrorCode) -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse(
        groups=[
            DescribedGroup(group_id=group_id, error_code=code, error_message=code.text, authorized_operations=NOT_ASKED)
            for group_id in request.group_ids
        ]
    )
