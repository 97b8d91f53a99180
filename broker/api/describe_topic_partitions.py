"""DescribeTopicPartitions (key 75): topics with their partitions, in pages (KIP-966).

Topics come in order of their names; no topics in the request means all. At most `response_partition_limit` partitions
(and `max.request.partition.size.limit`, and at least one) are answered; `next_cursor` then says where the next request
goes on. Unlike in Metadata a partition without a usable leader is no error: its leader is -1.

Versions: 0 only so far.
"""

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_topic
from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import check_topic_name
from odradek.broker.cluster.topic_image import TopicImage
from odradek.broker.handling.client_view import last_known, leader_for, offline_replicas
from odradek.broker.handling.context import Call, Context
from odradek.broker.internal_topic_names import is_internal
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)


async def handle(
    context: Context, call: Call, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    image = context.metadata.image
    names, start = _names(image, request)
    room = max(1, min(request.response_partition_limit, context.config.max_request_partition_size_limit))
    response, hidden = DescribeTopicPartitionsResponse(topics=[]), list[DescribeTopicPartitionsResponseTopic]()
    for name in names:
        # What may not be seen takes no room and is no place for the next page to begin at.
        if not context.permits(call, Operation.DESCRIBE, of_topic(name)):
            if request.topics:
                hidden.append(_failed(name, call.failed(KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED))))
            continue
        if room == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        first = start if name == names[0] else 0
        topic = image.topics.get(name)
        if topic is None:
            response.topics.append(_missing(call, name))
            continue
        end = min(len(topic.partitions), first + room)
        response.topics.append(_topic(image, topic, first, end, call.caller.listener))
        if end < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=end)
            break
        room -= max(0, end - first)
    for told in response.topics:
        told.topic_authorized_operations = context.access.authorized_operations(call, of_topic(told.name or ""))
    response.topics += hidden
    return response


def _names(image: ClusterImage, request: DescribeTopicPartitionsRequest) -> tuple[list[str], int]:
    """The topics to describe, from the cursor on, and the partition of the first one to begin with.

    Raises KafkaError INVALID_REQUEST.
    """
    wanted = [topic.name for topic in request.topics] or image.topics
    cursor = request.cursor
    if cursor is None:
        return sorted(dict.fromkeys(wanted)), 0
    if cursor.partition_index < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"the cursor points to partition {cursor.partition_index}")
    names = sorted(name for name in dict.fromkeys(wanted) if name >= cursor.topic_name)
    points_to_first = bool(names) and names[0] == cursor.topic_name
    # Its topic may have been deleted since the last page; but who names the topics must name that one.
    if request.topics and not points_to_first:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"the topics do not hold that of the cursor, {cursor.topic_name}")
    return names, cursor.partition_index if points_to_first else 0


def _topic(
    image: ClusterImage, topic: TopicImage, start: int, end: int, listener: str
) -> DescribeTopicPartitionsResponseTopic:
    partitions: list[DescribeTopicPartitionsResponsePartition] = []
    for index in range(start, end):
        partition = topic.partitions[index]
        leader_id, _ = leader_for(image, partition, listener)
        partitions.append(
            DescribeTopicPartitionsResponsePartition(
                partition_index=index,
                leader_id=leader_id,
                leader_epoch=partition.leader_epoch,
                replica_nodes=list(partition.replicas),
                isr_nodes=list(partition.isr),
                eligible_leader_replicas=list(partition.elr),
                last_known_elr=last_known(partition),
                offline_replicas=offline_replicas(image, partition, listener),
            )
        )
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=is_internal(topic.name),
        partitions=partitions,
    )


def _missing(call: Call, name: str) -> DescribeTopicPartitionsResponseTopic:
    try:
        check_topic_name(name)
        error = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    except KafkaError as invalid:
        error = invalid
    return DescribeTopicPartitionsResponseTopic(
        name=name,
        error_code=call.failed(error),
        is_internal=is_internal(name),
        partitions=[],
    )


def _failed(name: str, code: ErrorCode) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(name=name, error_code=code, partitions=[])


def fail(request: DescribeTopicPartitionsRequest, code: ErrorCode) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(topics=[_failed(topic.name, code) for topic in request.topics])
