"""FindCoordinator (key 10): which broker coordinates a group, a transactional id or a share group.

A group's coordinator leads the partition of `__consumer_offsets` that its name belongs to, that of a transactional id
the one of `__transaction_state`; the first question creates the topic (handling/coordinator_topics.py). There are no
coordinators of share groups yet: their keys get COORDINATOR_NOT_AVAILABLE, with node -1. That is retriable and the
truth, so a client waits or gives up in its own time.

Versions: 0 one group. 1 key type (KIP-98). 3 flexible. 4 several keys at once, each with its own error (KIP-699).
5 TRANSACTION_ABORTABLE may be answered (KIP-890). 6 share groups (KIP-932). The minimum of 0 matters: old librdkafka
switches lz4 on by it.
"""

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import CLUSTER, of_group, of_transactional_id
from odradek.broker.coordinator.key_partition import partition_of
from odradek.broker.handling.client_view import leader_for
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.coordinator_topics import OF_GROUPS, OF_TRANSACTIONS, EnsuredTopics
from odradek.broker.handling.large_requests import Steps
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

BATCHED_SINCE = 4
SHARE_SINCE = 6
NO_NODE = -1
NO_ERROR = "NONE"
"""What Kafka says where nothing is wrong, before version 4; then it says nothing."""
GROUP = 0
TRANSACTION = 1
SHARE = 2
"""Key types."""


async def handle(context: Context, call: Call, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    topics = EnsuredTopics(context)
    if call.version < BATCHED_SINCE:
        found = await _find_or_say_why(context, call, topics, request.key_type, request.key)
        return FindCoordinatorResponse(
            error_code=found.error_code,
            error_message=found.error_message or NO_ERROR,
            node_id=found.node_id,
            host=found.host,
            port=found.port,
        )
    coordinators: list[Coordinator] = []
    steps = Steps(call)
    for key in request.coordinator_keys:
        await steps.step()
        coordinators.append(await _find_or_say_why(context, call, topics, request.key_type, key))
    return FindCoordinatorResponse(coordinators=coordinators)


async def _find_or_say_why(context: Context, call: Call, topics: EnsuredTopics, key_type: int, key: str) -> Coordinator:
    try:
        return await _find(context, call, topics, key_type, key)
    except KafkaError as error:
        return _nobody(key, call.failed(error), error.message)


async def _find(context: Context, call: Call, topics: EnsuredTopics, key_type: int, key: str) -> Coordinator:
    """Raises KafkaError: INVALID_REQUEST, COORDINATOR_NOT_AVAILABLE, and what access says."""
    if key_type == GROUP:
        context.require(call, Operation.DESCRIBE, of_group(key))
    elif key_type == TRANSACTION:
        context.require(call, Operation.DESCRIBE, of_transactional_id(key))
    if key_type not in (GROUP, TRANSACTION, SHARE) or (key_type == SHARE and call.version < SHARE_SINCE):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"there are no coordinators of type {key_type}")
    if key_type == SHARE:
        context.require(call, Operation.CLUSTER_ACTION, CLUSTER)
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "share groups are not served by this broker")
    topic = await topics.ensure(OF_GROUPS if key_type == GROUP else OF_TRANSACTIONS)
    image = context.metadata.image
    index = partition_of(key, len(topic.partitions))
    state = image.partition(topic.name, index) or topic.partitions[index]
    leader_id, error = leader_for(image, state, call.caller.listener)
    endpoint = image.endpoint(leader_id, call.caller.listener)
    if endpoint is None:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{topic.name}-{index} has no leader now: {error.name}")
    host, port = endpoint
    return Coordinator(key=key, node_id=leader_id, host=host, port=port, error_code=0, error_message="")


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
