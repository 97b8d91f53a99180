"""DeleteRecords (key 21): move a partition's log start forward; what lies before it is gone (KIP-107).

Offset -1 stands for the high watermark, which is also the furthest that may be asked for. An offset at or before the
log start moves nothing, and is waited for all the same.

The answer promises that the records do not come back with another leader. It is given once the log starts at the offset
on the disk of every replica on a live broker, and of every member of the in-sync set and every eligible leader replica,
live or not (`Deletions.held_by_all`). Apache Kafka waits for live replicas, in memory. The low watermark that is
answered is the lowest start of these. All partitions wait together, up to `timeout_ms` from when the request came; then
those that are not done are answered REQUEST_TIMED_OUT, with the low watermark that there was when the leader had
deleted (DelayedDeleteRecords.scala). Their records are gone for now, and may come back with another leader. Without any
time one look is taken.

Versions: 2 flexible.
"""

import asyncio
from collections.abc import Collection
from typing import NamedTuple

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_topic
from odradek.broker.handling.context import Call, Context, of_partition
from odradek.broker.internal_topic_names import is_internal
from odradek.broker.replica.partition import Partition
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from odradek.runtime.tasks import run_together

HIGH_WATERMARK = -1
NO_LOW_WATERMARK = -1


class Deadline(NamedTuple):
    """When the time of a request is up, by the monotonic clock."""

    at_ms: float
    has_time: bool
    """Whether it was given any."""


async def handle(context: Context, call: Call, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    deadline = Deadline(context.environment.monotonic_ms() + request.timeout_ms, has_time=request.timeout_ms > 0)
    deletions = [
        _delete(context, call, topic.name, wanted, deadline) for topic in request.topics for wanted in topic.partitions
    ]
    with context.waiting(call):
        results = iter(await run_together(deletions, "DeleteRecords"))
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(name=topic.name, partitions=[next(results) for _ in topic.partitions])
            for topic in request.topics
        ]
    )


async def _delete(
    context: Context, call: Call, topic: str, wanted: DeleteRecordsPartition, deadline: Deadline
) -> DeleteRecordsPartitionResult:
    result = DeleteRecordsPartitionResult(partition_index=wanted.partition_index, low_watermark=NO_LOW_WATERMARK)
    try:
        context.require(call, Operation.DELETE, of_topic(topic))
        partition = context.partitions.leader(topic, wanted.partition_index)
        offset = _checked(partition, wanted.offset)
        terms_ended = partition.role.terms_ended
        partition.acknowledgements.deletions.ask(offset)
        await _delete_here(context, partition, offset, deadline)
        partition.role.require_term(terms_ended)
        result.low_watermark = partition.acknowledgements.deletions.look()
        if result.low_watermark < offset:
            partition.reader.notify()  # also where retention had come that far: followers may not have heard of it
        result.low_watermark = await partition.acknowledgements.deletions.held_by_all(offset, deadline.at_ms)
    except Exception as failure:  # noqa: BLE001 - the other partitions are answered all the same
        error = of_partition(failure, topic, wanted.partition_index)
        result.error_code = call.failed(_explained(context, topic, wanted.partition_index, error))
        if result.error_code != ErrorCode.REQUEST_TIMED_OUT:
            result.low_watermark = NO_LOW_WATERMARK
    return result


async def _delete_here(context: Context, partition: Partition, offset: int, deadline: Deadline) -> None:
    """On this leader's disk, which goes on if the time is up. A request without any time waits for it, as Kafka's
    answer to that comes after the leader's part. Raises KafkaError."""
    remaining_ms = max(0.0, deadline.at_ms - context.environment.monotonic_ms())
    try:
        async with asyncio.timeout(remaining_ms / 1000 if deadline.has_time else None):
            await context.partitions.delete_records(partition, offset)
    except TimeoutError:
        raise KafkaError(
            ErrorCode.REQUEST_TIMED_OUT, f"the log start of {partition!r} is not on the disk yet; that goes on"
        ) from None


def _explained(context: Context, topic: str, index: int, error: KafkaError) -> KafkaError:
    """What has become of a partition that is not led here any more: its topic may be deleted."""
    if error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
        try:
            context.partitions.find(topic, index)
        except KafkaError as gone:
            return gone
    return error


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


def refuse(
    context: Context, call: Call, answer: DeleteRecordsResponse, topics: Collection[str], error: KafkaError
) -> DeleteRecordsResponse:
    """The rights to these topics were taken away while the log starts were moved."""
    for topic in answer.topics:
        if topic.name in topics:
            for each in topic.partitions:
                each.low_watermark, each.error_code = NO_LOW_WATERMARK, call.failed(error)
    return answer


def fail(request: DeleteRecordsRequest, code: ErrorCode) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(name=topic.name, partitions=[_failed(wanted, code) for wanted in topic.partitions])
            for topic in request.topics
        ]
    )
