"""ListPartitionReassignments (key 46): which partitions are on their way to other replicas (KIP-455).

Any broker knows. Partitions that are asked for and not on their way, or unknown, are left out, as in Kafka.

Versions: 0 the API (KIP-455).
"""

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import CLUSTER
from odradek.broker.cluster.topic_image import TopicImage
from odradek.broker.handling.context import Call, Context
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


async def handle(
    context: Context, call: Call, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    context.require(call, Operation.DESCRIBE, CLUSTER)
    topics = context.metadata.image.topics
    if request.topics is None:
        asked = [(topic, list(range(len(topic.partitions)))) for _, topic in sorted(topics.items())]
    else:
        asked = [(topics[wanted.name], wanted.partition_indexes) for wanted in request.topics if wanted.name in topics]
    found = ((topic.name, _under_way(topic, indexes)) for topic, indexes in asked)
    return ListPartitionReassignmentsResponse(
        topics=[OngoingTopicReassignment(name=name, partitions=partitions) for name, partitions in found if partitions]
    )


def _under_way(topic: TopicImage, indexes: list[int]) -> list[OngoingPartitionReassignment]:
    return [
        OngoingPartitionReassignment(
            partition_index=index,
            replicas=list(state.replicas),
            adding_replicas=list(state.adding),
            removing_replicas=list(state.removing),
        )
        for index in indexes
        if 0 <= index < len(topic.partitions) and ((state := topic.partitions[index]).adding or state.removing)
    ]


def fail(request: ListPartitionReassignmentsRequest, code: ErrorCode) -> ListPartitionReassignmentsResponse:
    """As Kafka: what was asked for is named, without replicas."""
    return ListPartitionReassignmentsResponse(
        error_code=code,
        error_message=code.text,
        topics=[
            OngoingTopicReassignment(
                name=topic.name,
                partitions=[
                    OngoingPartitionReassignment(
                        partition_index=index, replicas=[], adding_replicas=[], removing_replicas=[]
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics or ()
        ],
    )
