"""OffsetCommit (key 8): stores how far a group has come in its partitions.

Generation -1 without a member id is a commit from outside of the group's protocol: of an operator, or of a consumer
that was given its partitions by hand. Each partition is answered for itself. What is accepted of a request is one batch
of the log, or none of it: more than a batch may hold is refused.

Versions: 2 to 4 retention time. 6 leader epoch (KIP-320). 7 static members (KIP-345). 8 flexible. 9 member epochs, and
GROUP_ID_NOT_FOUND (KIP-848). 10 topic ids in the place of names.
"""

from collections.abc import Collection

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_group, of_topic
from odradek.broker.group.offset_requests import CommitOffsets, OffsetToCommit
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.group_requests import ask_group
from odradek.broker.handling.large_requests import Steps
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

TOPIC_IDS_SINCE = 10


async def handle(context: Context, call: Call, request: OffsetCommitRequest) -> OffsetCommitResponse:
    context.require(call, Operation.READ, of_group(request.group_id))
    response = OffsetCommitResponse(topics=[])
    offsets: list[OffsetToCommit] = []
    answers: list[OffsetCommitResponsePartition] = []
    """Of `offsets`, in the same order."""
    image, steps = context.metadata.image, Steps(call)
    for topic in request.topics:
        name = topic.name if call.version < TOPIC_IDS_SINCE else image.name_by_id(topic.topic_id)
        error = _refusal(context, call, name)
        found = image.topics.get(name)
        partitions: list[OffsetCommitResponsePartition] = []
        for partition in topic.partitions:
            answer = OffsetCommitResponsePartition(partition_index=partition.partition_index)
            partitions.append(answer)
            if steps.is_large:
                await steps.step()
            if error is not None:
                answer.error_code = call.failed(error)
            elif found is None or not 0 <= partition.partition_index < len(found.partitions):
                answer.error_code = call.failed(KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            else:
                answers.append(answer)
                offsets.append(
                    OffsetToCommit(
                        (name, partition.partition_index),
                        found.topic_id,
                        partition.committed_offset,
                        partition.committed_leader_epoch,
                        partition.committed_metadata or "",
                    )
                )
        response.topics.append(
            OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions)
        )
    if offsets:
        await _commit(context, call, request, offsets, answers)
    return response


async def _commit(
    context: Context,
    call: Call,
    request: OffsetCommitRequest,
    offsets: list[OffsetToCommit],
    answers: list[OffsetCommitResponsePartition],
) -> None:
    commit = CommitOffsets(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id_or_member_epoch,
        request.retention_time_ms,
        offsets,
        call.version,
    )
    try:
        errors: list[ErrorCode] = await ask_group(
            context, call, request.group_id, lambda machine, waiting, now: machine.commit(commit, waiting, now)
        )
    except KafkaError as error:
        code = call.failed(error)
        for answer in answers:
            answer.error_code = code
        return
    for answer, code in zip(answers, errors, strict=True):
        if code is not ErrorCode.NONE:
            answer.error_code = call.failed(KafkaError(code))


def _refusal(context: Context, call: Call, topic: str) -> KafkaError | None:
    """`topic`: "" where an id is given that no topic has."""
    if not topic and call.version >= TOPIC_IDS_SINCE:
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    try:
        context.require(call, Operation.READ, of_topic(topic))
    except KafkaError as error:
        return error
    return None


def refuse(
    context: Context, call: Call, answer: OffsetCommitResponse, topics: Collection[str], error: KafkaError
) -> OffsetCommitResponse:
    """The rights to these topics were taken away while the offsets were stored."""
    for topic in answer.topics:
        name = context.metadata.image.name_by_id(topic.topic_id) if call.version >= TOPIC_IDS_SINCE else topic.name
        if name in topics or not name:
            for each in topic.partitions:
                each.error_code = call.failed(error)
    return answer


def fail(request: OffsetCommitRequest, code: ErrorCode) -> OffsetCommitResponse:
    """Every partition says so."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
