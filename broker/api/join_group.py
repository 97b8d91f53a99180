"""JoinGroup (key 11): a member enters a classic group, or takes part in its next rebalance. The answer waits until the
members of the next generation are known (broker/group/classic).

Versions: 1 rebalance time-out (KIP-62). 4 MEMBER_ID_REQUIRED for a new dynamic member (KIP-394). 5 static members
(KIP-345). 6 flexible. 7 protocol type in the answer (KIP-559). 8 reason (KIP-800). 9 a leader may be told to assign
nothing (KIP-814). 0 and 1 matter to old librdkafka, which takes them for a sign of groups (KAFKA-19444).
"""

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_group
from odradek.broker.group.classic.requests import Join, Joined, OfferedProtocol
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.group_requests import ask_group, client_host, require_group_id
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember

REBALANCE_TIMEOUT_SINCE = 1
MEMBER_ID_REQUIRED_SINCE = 4
NO_PROTOCOL_NAME_SINCE = 7
SKIP_ASSIGNMENT_SINCE = 9


async def handle(context: Context, call: Call, request: JoinGroupRequest) -> JoinGroupResponse:
    try:
        context.require(call, Operation.READ, of_group(request.group_id))
    except KafkaError as error:
        return _answer(call, Joined("", error_code=error.code))
    try:
        joined = await _joined(context, call, request)
    except KafkaError as error:
        joined = Joined(request.member_id, error_code=error.code)
    return _answer(call, joined)


async def _joined(context: Context, call: Call, request: JoinGroupRequest) -> Joined:
    """Raises KafkaError."""
    require_group_id(request.group_id)
    join = _join(call, request)
    return await ask_group(
        context,
        call,
        request.group_id,
        lambda machine, waiting, now: machine.join(request.group_id, join, waiting, now),
    )


def _join(call: Call, request: JoinGroupRequest) -> Join:
    has_rebalance_timeout = call.version >= REBALANCE_TIMEOUT_SINCE
    return Join(
        member_id=request.member_id,
        client_id=call.client_id or "",
        client_host=client_host(call),
        protocol_type=request.protocol_type,
        protocols=tuple(OfferedProtocol(each.name, bytes(each.metadata)) for each in request.protocols),
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms if has_rebalance_timeout else request.session_timeout_ms,
        instance_id=request.group_instance_id,
        reason=request.reason,
        requires_known_member_id=call.version >= MEMBER_ID_REQUIRED_SINCE and request.group_instance_id is None,
        supports_skip_assignment=call.version >= SKIP_ASSIGNMENT_SINCE,
    )


def _answer(call: Call, joined: Joined) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=ErrorCode.NONE if not joined.error_code else call.failed(KafkaError(joined.error_code)),
        generation_id=joined.generation,
        protocol_type=joined.protocol_type,
        protocol_name=joined.protocol_name or (None if call.version >= NO_PROTOCOL_NAME_SINCE else ""),
        leader=joined.leader_id,
        skip_assignment=joined.skip_assignment,
        member_id=joined.member_id,
        members=[
            JoinGroupResponseMember(
                member_id=member.member_id, group_instance_id=member.instance_id, metadata=member.metadata
            )
            for member in joined.members
        ],
    )


def fail(request: JoinGroupRequest, code: ErrorCode) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, member_id=request.member_id, protocol_name="", members=[])
