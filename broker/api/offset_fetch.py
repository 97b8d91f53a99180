"""OffsetFetch (key 9): the offsets that groups have committed. A partition without one gets -1, and no error.

Versions: 2 null topics ask for all that the group has; an error of the whole answer (KIP-88), which up to version 5
each partition says as well. 5 leader epoch (KIP-320). 6 flexible. 7 whether offsets of open transactions are waited for
(KIP-447). 8 several groups at once (KIP-709). 9 member id and epoch (KIP-848). 10 topic ids in the place of names: of
all that a group has, topics that there are not any more are left out.
"""

from collections.abc import Iterator, Sequence

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_group, of_topic
from odradek.broker.group.offset_requests import FetchedOffset, FetchOffsets
from odradek.broker.group.offsets import Position
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.group_requests import ask_group
from odradek.broker.handling.large_requests import Steps
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from odradek.protocol.primitives import ZERO_UUID

SEVERAL_SINCE = 8
PARTITIONS_SAY_ERRORS_UNTIL = 5
TOPIC_IDS_SINCE = 10
NO_OFFSET = -1


async def handle(context: Context, call: Call, request: OffsetFetchRequest) -> OffsetFetchResponse:
    groups: list[OffsetFetchResponseGroup] = []
    steps = Steps(call)
    for asked in _asked(call, request):
        await steps.step()
        groups.append(await _group_or_error(context, call, asked, request.require_stable, steps))
    if call.version >= SEVERAL_SINCE:
        return OffsetFetchResponse(groups=groups)
    [group] = groups
    return _of_one(call.version, request, group)


def _asked(call: Call, request: OffsetFetchRequest) -> Sequence[OffsetFetchRequestGroup]:
    if call.version >= SEVERAL_SINCE:
        return request.groups
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    return [OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)]


async def _group_or_error(
    context: Context, call: Call, asked: OffsetFetchRequestGroup, require_stable: bool, steps: Steps
) -> OffsetFetchResponseGroup:
    try:
        context.require(call, Operation.DESCRIBE, of_group(asked.group_id))
        topics = await _topics(context, call, asked, require_stable, steps)
    except KafkaError as error:
        code = call.failed(_as_consumers_know(error))
        return OffsetFetchResponseGroup(group_id=asked.group_id, topics=[], error_code=code)
    return OffsetFetchResponseGroup(group_id=asked.group_id, topics=topics)


def _as_consumers_know(error: KafkaError) -> KafkaError:
    """Consumers before Kafka 3.9 give up at COORDINATOR_NOT_AVAILABLE here; at NOT_COORDINATOR they find the
    coordinator and ask again (`handleOffsetFetchException`)."""
    if error.code is ErrorCode.COORDINATOR_NOT_AVAILABLE:
        return KafkaError(ErrorCode.NOT_COORDINATOR, error.message)
    return error


async def _topics(
    context: Context, call: Call, asked: OffsetFetchRequestGroup, require_stable: bool, steps: Steps
) -> list[OffsetFetchResponseTopics]:
    positions: list[Position] | None = None
    refused: list[OffsetFetchResponseTopics] = []
    ids: dict[str, bytes] = {}
    if asked.topics is not None:
        positions = []
        for topic in asked.topics:
            await steps.step()
            name = topic.name
            if call.version >= TOPIC_IDS_SINCE:
                name = context.metadata.image.name_by_id(topic.topic_id)
                ids[name] = topic.topic_id
                if not name:
                    refused.append(_refused(call, topic, ErrorCode.UNKNOWN_TOPIC_ID))
                    continue
            if context.permits(call, Operation.DESCRIBE, of_topic(name)):
                positions += ((name, index) for index in topic.partition_indexes)
            else:
                refused.append(_refused(call, topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    fetch = FetchOffsets(asked.group_id, asked.member_id, asked.member_epoch, positions, require_stable)
    fetched: Iterator[FetchedOffset] = await ask_group(
        context, call, asked.group_id, lambda machine, waiting, now: machine.fetch_offsets(fetch, waiting, now)
    )
    context.groups.of(asked.group_id).require_unfenced()  # else the group would go back to an older offset
    if positions is None and call.version >= TOPIC_IDS_SINCE:
        ids = {name: topic.topic_id for name, topic in context.metadata.image.topics.items()}
    answered: dict[str, OffsetFetchResponseTopics] = {}
    for each in fetched:
        await steps.step()
        name = each.position[0]
        topic_answer = answered.get(name)
        if topic_answer is None:
            if not context.permits(call, Operation.DESCRIBE, of_topic(name)):
                continue
            topic_answer = OffsetFetchResponseTopics(name=name, partitions=[])
            if call.version >= TOPIC_IDS_SINCE:
                if (topic_id := ids.get(name)) is None:
                    continue
                topic_answer.topic_id = topic_id
            answered[name] = topic_answer
        topic_answer.partitions.append(_partition(call, _of_topic(each, topic_answer.topic_id)))
    return [*answered.values(), *refused]


def _of_topic(fetched: FetchedOffset, topic_id: bytes) -> FetchedOffset:
    """Without an offset where that is one of another topic, which has got the name meanwhile. ZERO_UUID: not known."""
    committed = fetched.committed
    if committed is None or topic_id == ZERO_UUID or committed.topic_id in (ZERO_UUID, topic_id):
        return fetched
    return fetched._replace(committed=None)


def _partition(call: Call, fetched: FetchedOffset) -> OffsetFetchResponsePartitions:
    index, committed = fetched.position[1], fetched.committed
    if committed is not None:
        return OffsetFetchResponsePartitions(
            partition_index=index,
            committed_offset=committed.offset,
            committed_leader_epoch=committed.leader_epoch,
            metadata=committed.metadata,
        )
    code = ErrorCode.NONE if fetched.error is ErrorCode.NONE else call.failed(KafkaError(fetched.error))
    return OffsetFetchResponsePartitions(
        partition_index=index, committed_offset=NO_OFFSET, metadata="", error_code=code
    )


def _refused(call: Call, topic: OffsetFetchRequestTopics, code: ErrorCode) -> OffsetFetchResponseTopics:
    code = call.failed(KafkaError(code))
    return OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=_all_with(topic, code))


def _all_with(topic: OffsetFetchRequestTopics, code: ErrorCode) -> list[OffsetFetchResponsePartitions]:
    return [
        OffsetFetchResponsePartitions(partition_index=index, committed_offset=NO_OFFSET, metadata="", error_code=code)
        for index in topic.partition_indexes
    ]


def _of_one(version: int, request: OffsetFetchRequest, group: OffsetFetchResponseGroup) -> OffsetFetchResponse:
    """Up to version 7. Version 1 has no error of the whole answer: each partition says it.

    So it does up to version 5, where Kafka has no partitions in such an answer: aiokafka 0.14 looks at partitions
    alone, takes those that are missing for ones without an offset, and begins at `auto_offset_reset`.
    """
    code = ErrorCode(group.error_code)
    topics: Sequence[OffsetFetchResponseTopics] = group.topics
    if code is not ErrorCode.NONE and version <= PARTITIONS_SAY_ERRORS_UNTIL:
        topics = [
            OffsetFetchResponseTopics(
                name=topic.name,
                partitions=_all_with(
                    OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes), code
                ),
            )
            for topic in request.topics or ()
        ]
    return OffsetFetchResponse(
        error_code=code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=each.partition_index,
                        committed_offset=each.committed_offset,
                        committed_leader_epoch=each.committed_leader_epoch,
                        metadata=each.metadata,
                        error_code=each.error_code,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in topics
        ],
    )


def fail(request: OffsetFetchRequest, code: ErrorCode) -> OffsetFetchResponse:
    """Both shapes at once: a version carries one of them."""
    one = OffsetFetchResponseGroup(group_id=request.group_id, topics=[], error_code=code)
    response = _of_one(1, request, one)
    response.groups = [
        OffsetFetchResponseGroup(group_id=group.group_id, topics=[], error_code=code) for group in request.groups
    ]
    return response
