"""Heartbeat (key 12): a member of a classic group says that it is there, and hears of rebalances.

While the group is being loaded a heartbeat is answered without an error, as in Kafka: sessions start when the load is
over, and Java's clients take COORDINATOR_LOAD_IN_PROGRESS here for an error that nobody foresaw.

Versions: 3 static members (KIP-345). 4 flexible.
"""

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_group
from odradek.broker.group.classic.requests import Heartbeat
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.group_requests import require_group_id, tell_group
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


async def handle(context: Context, call: Call, request: HeartbeatRequest) -> HeartbeatResponse:
    context.require(call, Operation.READ, of_group(request.group_id))
    require_group_id(request.group_id)
    heartbeat = Heartbeat(request.member_id, request.generation_id, request.group_instance_id)
    try:
        await tell_group(
            context,
            call,
            request.group_id,
            lambda machine, waiting, now: machine.heartbeat(request.group_id, heartbeat, waiting, now),
        )
    except KafkaError as error:
        if error.code is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            raise
    return HeartbeatResponse()


def fail(request: HeartbeatRequest, code: ErrorCode) -> HeartbeatResponse:
    del request
    return HeartbeatResponse(error_code=code)
