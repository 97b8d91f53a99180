"""DeleteRecords (key 21): move a partition's log start forward; what lies before it is gone (KIP-107).

Offset -1 stands for the high watermark, which is also the furthest that may be asked for. An offset at or before the
log start changes nothing. The new log start is on disk before the answer. With one replica the low watermark is the
log start at once, so the request's timeout has nothing to wait for.

Versions: 2 flexible.
"""

from broker.cluster_view import is_internal
from broker.context import Call, Context
from broker.replication.partition import Partition
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

HIGH_WATERMARK = -1
NO_LOW_WATERMARK = -1


async def handle(context: Context, call: Call, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[await _delete(context, call, topic.name, wanted) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )


async def _delete(
    context: Context, call: Call, topic: str, wanted: DeleteRecordsPartition
) -> DeleteRecordsPartitionResult:
    try:
        partition = context.partitions.leader(topic, wanted.partition_index)
        offset = _checked(partition, wanted.offset)
        if offset > partition.log.log_start_offset:
            await context.partitions.delete_records(partition, offset)
    except KafkaError as error:
        return _failed(wanted, call.failed(error))
    return DeleteRecordsPartitionResult(
        partition_index=wanted.partition_index, low_watermark=partition.log.log_start_offset
    )


def _checked(partition: Partition, offset: int) -> int:
    """The offset to delete up to. Raises KafkaError: INVALID_TOPIC_EXCEPTION, POLICY_VIOLATION, OFFSET_OUT_OF_RANGE."""
    name = f"{partition.topic}-{partition.index}"
    if is_internal(partition.topic):
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"records of the internal topic {partition.topic} stay")
    if "delete" not in partition.config.cleanup_policy:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, f"records of {name} stay, by its cleanup.policy")
    high_watermark = partition.high_watermark.value
    if offset == HIGH_WATERMARK:
        return high_watermark
    if not 0 <= offset <= high_watermark:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} of {name} is not within [0, {high_watermark}]"
        )
    return offset


def _failed(wanted: DeleteRecordsPartition, code: ErrorCode) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=wanted.partition_index, low_watermark=NO_LOW_WATERMARK, error_code=code
    )


def fail(request: DeleteRecordsRequest, code: ErrorCode) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(name=topic.name, partitions=[_failed(wanted, code) for wanted in topic.partitions])
            for topic in request.topics
        ]
    )
