"""FindCoordinator (key 10): which broker coordinates a group, a transactional id or a share group.

There are no coordinators yet: every key of every type gets COORDINATOR_NOT_AVAILABLE, with node -1. That is retriable
and the truth, so a client that insists on a group waits or gives up in its own time.

Versions: 0 one group. 1 key type (KIP-98). 3 flexible. 4 several keys at once, each with its own error (KIP-699).
5 TRANSACTION_ABORTABLE may be answered (KIP-890). 6 share groups (KIP-932). The minimum of 0 matters: old librdkafka
switches lz4 on by it.
"""

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_group, of_transactional_id
from odradek.broker.handling.context import Call, Context
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

BATCHED_SINCE = 4
NO_NODE = -1
TRANSACTION = 1
"""The key type; others are groups."""


async def handle(context: Context, call: Call, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    if call.version < BATCHED_SINCE:
        error = _why_nobody(context, call, request.key_type, request.key)
        call.failed(error)
        return FindCoordinatorResponse(
            error_code=error.code, error_message=error.message, node_id=NO_NODE, host="", port=-1
        )
    coordinators: list[Coordinator] = []
    for key in request.coordinator_keys:
        error = _why_nobody(context, call, request.key_type, key)
        coordinators.append(_nobody(key, call.failed(error), error.message))
    return FindCoordinatorResponse(coordinators=coordinators)


def _why_nobody(context: Context, call: Call, key_type: int, key: str) -> KafkaError:
    try:
        resource = of_transactional_id(key) if key_type == TRANSACTION else of_group(key)
        context.access.require(call, Operation.DESCRIBE, resource)
    except KafkaError as error:
        return error
    return KafkaError(
        ErrorCode.COORDINATOR_NOT_AVAILABLE, "this broker has no coordinators: groups and transactions are not served"
    )


def _nobody(key: str, code: ErrorCode, message: str) -> Coordinator:
    return Coordinator(key=key, node_id=NO_NODE, host="", port=-1, error_code=code, error_message=message)


def fail(request: FindCoordinatorRequest, code: ErrorCode) -> FindCoordinatorResponse:
    """Both shapes at once: a version carries one of them."""
    return FindCoordinatorResponse(
        error_code=code,
        error_message=code.text,
        node_id=NO_NODE,
        host="",
        port=-1,
        coordinators=[_nobody(key, code, code.text) for key in request.coordinator_keys],
    )
