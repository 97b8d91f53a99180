"""SyncGroup (key 14): the leader of a classic group hands in the assignment, and each member gets its own. The answer
waits for the leader's.

Versions: 3 static members (KIP-345). 4 flexible. 5 protocol type and name, which must be the group's (KIP-559).
"""

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_group
from odradek.broker.group.classic.requests import AssignedMember, Sync, Synced
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.group_requests import ask_group, require_group_id
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

PROTOCOLS_SINCE = 5


async def handle(context: Context, call: Call, request: SyncGroupRequest) -> SyncGroupResponse:
    if call.version >= PROTOCOLS_SINCE and not (request.protocol_type and request.protocol_name):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "protocol type and name must be given")
    context.require(call, Operation.READ, of_group(request.group_id))
    require_group_id(request.group_id)
    sync = Sync(
        member_id=request.member_id,
        generation=request.generation_id,
        instance_id=request.group_instance_id,
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignments=tuple(AssignedMember(each.member_id, bytes(each.assignment)) for each in request.assignments),
    )
    synced: Synced = await ask_group(
        context,
        call,
        request.group_id,
        lambda machine, waiting, now: machine.sync(request.group_id, sync, waiting, now),
    )
    return SyncGroupResponse(
        protocol_type=synced.protocol_type, protocol_name=synced.protocol_name, assignment=synced.assignment
    )


def fail(request: SyncGroupRequest, code: ErrorCode) -> SyncGroupResponse:
    del request
    return SyncGroupResponse(error_code=code)
