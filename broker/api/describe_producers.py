"""DescribeProducers (key 61): the producers that a partition knows, at its leader or any other replica.

Kafka's tools find a transaction by it that hangs: one that a partition has open, and its coordinator has not. They ask
followers, too (`kafka-transactions.sh find-hanging --broker-id`; Partition.activeProducerState).

Versions: 0 the API (KIP-664).
"""

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_topic
from odradek.broker.cluster.keys import check_topic_name
from odradek.broker.handling.context import Call, Context, of_partition
from odradek.broker.handling.large_requests import Steps
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


async def handle(context: Context, call: Call, request: DescribeProducersRequest) -> DescribeProducersResponse:
    response, steps = DescribeProducersResponse(topics=[]), Steps(call)
    for topic in request.topics:
        answer = TopicResponse(name=topic.name, partitions=[])
        for index in topic.partition_indexes:
            await steps.step()
            answer.partitions.append(_partition(context, call, topic.name, index))
        response.topics.append(answer)
    return response


def _partition(context: Context, call: Call, topic: str, index: int) -> PartitionResponse:
    try:
        return PartitionResponse(partition_index=index, active_producers=_producers(context, call, topic, index))
    except KafkaError as found:
        error = of_partition(found, topic, index)
        return PartitionResponse(
            partition_index=index, error_code=call.failed(error), error_message=error.message or None
        )


def _producers(context: Context, call: Call, topic: str, index: int) -> list[ProducerState]:
    """Raises KafkaError: INVALID_TOPIC_EXCEPTION, TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION,
    NOT_LEADER_OR_FOLLOWER."""
    check_topic_name(topic)
    context.require(call, Operation.READ, of_topic(topic))
    partition = context.partitions.find(topic, index)
    return [
        ProducerState(
            producer_id=producer_id,
            producer_epoch=state.epoch,
            last_sequence=state.last_sequence,
            last_timestamp=state.last_timestamp_ms,
            coordinator_epoch=state.coordinator_epoch,
            current_txn_start_offset=state.current_txn_first_offset,
        )
        for producer_id, state in partition.log.producers.states()
    ]


def fail(request: DescribeProducersRequest, code: ErrorCode) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[
                    PartitionResponse(partition_index=index, error_code=code) for index in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
    )
