"""ConsumerGroupHeartbeat (key 68): a member of a consumer group joins, says what it owns, learns its assignment, and
leaves (KIP-848, broker/group/consumer).
It has to be allowed to describe each topic that it subscribes to by name; a regular expression matches those alone that
it may describe.

Served in full while the feature `group.version` is finalized at 1 (cluster/features.py); before, UNSUPPORTED_VERSION.

Versions: 1 regular expressions, and the member makes its own id (KIP-1082).
"""

from functools import partial

from odradek.broker.access.access import Access
from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_group, of_topic
from odradek.broker.group.consumer.requests import ALL_TOPICS, ConsumerHeartbeat, ConsumerHeartbeatAnswer, Sight
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.group_requests import ask_group, client_host, require_consumer_groups, require_group_id
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

OWN_MEMBER_ID_SINCE = 1


async def handle(
    context: Context, call: Call, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    try:
        return await _handle(context, call, request)
    except KafkaError as error:
        return ConsumerGroupHeartbeatResponse(error_code=call.failed(error), error_message=error.message)


async def _handle(
    context: Context, call: Call, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    require_consumer_groups(context)
    context.require(call, Operation.READ, of_group(request.group_id))
    for topic in request.subscribed_topic_names or ():
        context.require(call, Operation.DESCRIBE, of_topic(topic))
    require_group_id(request.group_id)
    heartbeat = _heartbeat(context, call, request)
    answer: ConsumerHeartbeatAnswer = await ask_group(
        context,
        call,
        request.group_id,
        lambda machine, waiting, now: machine.consumer_heartbeat(request.group_id, heartbeat, waiting, now),
    )
    return _answer(answer)


def _heartbeat(context: Context, call: Call, request: ConsumerGroupHeartbeatRequest) -> ConsumerHeartbeat:
    access = context.access
    names, owned = request.subscribed_topic_names, request.topic_partitions
    return ConsumerHeartbeat(
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topic_names=None if names is None else frozenset(names),
        topic_regex=request.subscribed_topic_regex,
        server_assignor=request.server_assignor,
        owned=None if owned is None else {each.topic_id: frozenset(each.partitions) for each in owned},
        client_id=call.client_id or "",
        client_host=client_host(call),
        member_id_required=call.version >= OWN_MEMBER_ID_SINCE,
        sight=Sight(access.generation, partial(_may_see, access, call)) if access.is_enforced else ALL_TOPICS,
    )


def _may_see(access: Access, call: Call, topic: str) -> bool:
    return access.permits(call, Operation.DESCRIBE, of_topic(topic), logs_refusal=False)


def _answer(answer: ConsumerHeartbeatAnswer) -> ConsumerGroupHeartbeatResponse:
    assigned = answer.assigned
    return ConsumerGroupHeartbeatResponse(
        member_id=answer.member_id,
        member_epoch=answer.member_epoch,
        heartbeat_interval_ms=answer.heartbeat_interval_ms,
        assignment=None
        if assigned is None
        else Assignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic_id, partitions=list(indexes)) for topic_id, indexes in assigned.items()
            ]
        ),
    )


def fail(request: ConsumerGroupHeartbeatRequest, code: ErrorCode) -> ConsumerGroupHeartbeatResponse:
    del request
    return ConsumerGroupHeartbeatResponse(error_code=code, error_message=code.text)
