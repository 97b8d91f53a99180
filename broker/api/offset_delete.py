"""OffsetDelete (key 47): removes offsets of a group, but for topics that its members are subscribed to (KIP-496).

Each partition is answered for itself. A group with members of another type than `consumer` is NON_EMPTY_GROUP: what
they read is not known.

Versions: 0 the API (KIP-496).
"""

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_group, of_topic
from odradek.broker.group.offset_requests import DeleteOffsets
from odradek.broker.group.offsets import Position
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.group_requests import ask_group, require_group_id
from odradek.broker.handling.large_requests import Steps
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


async def handle(context: Context, call: Call, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    context.require(call, Operation.DELETE, of_group(request.group_id))
    require_group_id(request.group_id)
    response = OffsetDeleteResponse(topics=[])
    positions: list[Position] = []
    answers: list[OffsetDeleteResponsePartition] = []
    """Of `positions`, in the same order."""
    steps = Steps(call)
    for topic in request.topics:
        await steps.step()
        partitions: list[OffsetDeleteResponsePartition] = []
        for partition in topic.partitions:
            answer = OffsetDeleteResponsePartition(partition_index=partition.partition_index)
            partitions.append(answer)
            try:
                context.require(call, Operation.READ, of_topic(topic.name))
                if context.metadata.image.partition(topic.name, partition.partition_index) is None:
                    raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            except KafkaError as error:
                answer.error_code = call.failed(error)
            else:
                positions.append((topic.name, partition.partition_index))
                answers.append(answer)
        response.topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=partitions))
    deletion = DeleteOffsets(request.group_id, positions)
    errors: list[ErrorCode] = await ask_group(
        context, call, request.group_id, lambda machine, waiting, now: machine.delete_offsets(deletion, waiting, now)
    )
    for answer, code in zip(answers, errors, strict=True):
        if code is not ErrorCode.NONE:
            answer.error_code = call.failed(KafkaError(code))
    return response


def fail(request: OffsetDeleteRequest, code: ErrorCode) -> OffsetDeleteResponse:
    del request
    return OffsetDeleteResponse(error_code=code)
