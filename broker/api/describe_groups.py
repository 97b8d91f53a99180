"""DescribeGroups (key 15): state, protocol and members of classic groups. Each is answered for itself.

A group that there is not is `Dead`, without an error, up to version 5.

Versions: 3 authorized operations (KIP-430). 4 instance ids (KIP-345). 5 flexible; why the group rebalanced last, in a
tagged field of our own. 6 GROUP_ID_NOT_FOUND instead of Dead (KIP-1043).
"""

from odradek.broker.access.operations import NOT_ASKED, Operation
from odradek.broker.access.resource import of_group
from odradek.broker.group.classic.description import GroupDescription
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.group_requests import ask_group, permitted_operations, told_rebalances
from odradek.broker.handling.large_requests import Steps
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

NOT_FOUND_SINCE = 6


async def handle(context: Context, call: Call, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    groups: list[DescribedGroup] = []
    steps = Steps(call)
    for group_id in request.groups:
        await steps.step()
        try:
            context.require(call, Operation.DESCRIBE, of_group(group_id))
            described = _described(await _ask(context, call, group_id))
        except KafkaError as error:
            described = _failed(call, group_id, error)
        if request.include_authorized_operations and ErrorCode(described.error_code) is ErrorCode.NONE:
            described.authorized_operations = permitted_operations(context, call, group_id)
        groups.append(described)
    return DescribeGroupsResponse(groups=groups)


async def _ask(context: Context, call: Call, group_id: str) -> GroupDescription:
    return await ask_group(
        context, call, group_id, lambda machine, waiting, now: machine.describe(group_id, waiting, now)
    )


def _described(group: GroupDescription) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol_name,
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata,
                member_assignment=member.assignment,
            )
            for member in group.members
        ],
        rebalances=told_rebalances(group.rebalances),
    )


def _failed(call: Call, group_id: str, error: KafkaError) -> DescribedGroup:
    if error.code is ErrorCode.GROUP_ID_NOT_FOUND and call.version < NOT_FOUND_SINCE:
        return DescribedGroup(group_id=group_id, group_state="Dead")
    state = "Dead" if error.code is ErrorCode.GROUP_ID_NOT_FOUND else ""
    return DescribedGroup(
        group_id=group_id, group_state=state, error_code=call.failed(error), error_message=error.message
    )


def fail(request: DescribeGroupsRequest, code: ErrorCode) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(
        groups=[
            DescribedGroup(group_id=group_id, error_code=code, error_message=code.text, authorized_operations=NOT_ASKED)
            for group_id in request.groups
        ]
    )
