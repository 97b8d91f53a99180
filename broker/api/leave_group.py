"""LeaveGroup (key 13): members leave a classic group, or are removed from it.

Versions: 3 several members at once, static ones by their instance id (KIP-345); the error of a single member is the
answer's before. 4 flexible. 5 reason (KIP-800).
"""

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_group
from odradek.broker.group.classic.requests import Leave, Leaving, Left, LeftMember
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.group_requests import ask_group, require_group_id
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse

SEVERAL_SINCE = 3


async def handle(context: Context, call: Call, request: LeaveGroupRequest) -> LeaveGroupResponse:
    context.require(call, Operation.READ, of_group(request.group_id))
    require_group_id(request.group_id)
    if call.version < SEVERAL_SINCE:
        leaving: tuple[Leaving, ...] = (Leaving(request.member_id),)
    else:
        leaving = tuple(Leaving(each.member_id, each.group_instance_id, each.reason) for each in request.members)
    left = await _leave(context, call, request.group_id, Leave(leaving))
    if call.version < SEVERAL_SINCE:
        return LeaveGroupResponse(error_code=_code(call, left.members[0]))
    return LeaveGroupResponse(
        members=[
            MemberResponse(member_id=each.member_id, group_instance_id=each.instance_id, error_code=_code(call, each))
            for each in left.members
        ]
    )


async def _leave(context: Context, call: Call, group_id: str, leave: Leave) -> Left:
    """A group that there is not has none of these members, which is said of each of them, as in Kafka."""
    try:
        return await ask_group(
            context, call, group_id, lambda machine, waiting, now: machine.leave(group_id, leave, waiting, now)
        )
    except KafkaError as error:
        if error.code is not ErrorCode.UNKNOWN_MEMBER_ID:
            raise
        return Left(tuple(LeftMember(each.member_id, each.instance_id, error.code) for each in leave.members))


def _code(call: Call, left: LeftMember) -> ErrorCode:
    return left.error_code if left.error_code is ErrorCode.NONE else call.failed(KafkaError(left.error_code))


def fail(request: LeaveGroupRequest, code: ErrorCode) -> LeaveGroupResponse:
    del request
    return LeaveGroupResponse(error_code=code)
