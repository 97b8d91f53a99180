"""ListOffsets (key 2): the offset that belongs to a timestamp, or to one of the special ones.

| timestamp | since version | offset answered |
|---|---|---|
| -1 latest | 1 | the high watermark; for read_committed the last stable offset |
| -2 earliest | 1 | the log start |
| -3 max timestamp (KIP-734) | 7 | the record with the largest timestamp, with that timestamp; -1 when there is none |
| -4 earliest local (KIP-405) | 8 | the log start: nothing is tiered |
| -5 latest tiered (KIP-1005) | 9 | -1: nothing is tiered |
| -6 earliest that is yet to be tiered (KIP-1023) | 11 | -1: nothing is tiered |
| 0 and more | 1 | the first record with at least this timestamp, with its own; -1 when there is none |

Any other negative timestamp, and one too new for the request's version, gets UNSUPPORTED_VERSION. Only what a consumer
may read is found.

Versions: 2 isolation level (KIP-98). 4 leader epochs (KIP-320). 5 OFFSET_NOT_AVAILABLE (KIP-207). 6 flexible.
7 max timestamp. 8 earliest local. 9 latest tiered. 10 a time-out for what is tiered (KIP-1075). 11 earliest pending
upload.
"""

from typing import NamedTuple

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import CLUSTER, of_topic
from odradek.broker.disk.cold_reads import read_without_blocking
from odradek.broker.handling.context import Call, Context, of_partition
from odradek.broker.replica.isolation import READ_COMMITTED
from odradek.broker.replica.partition import Partition
from odradek.broker.replication.divergence import end_offset_for_epoch
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6
OF_TIERED = (LATEST_TIERED, EARLIEST_PENDING_UPLOAD)
SPECIAL_SINCE = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
OFFSET_NOT_AVAILABLE_SINCE = 5

CONSUMER = -1
"""The replica id of those who are no replica."""


class Asker(NamedTuple):
    """Who asks decides how far is looked."""

    is_consumer: bool
    reads_committed: bool

    def end_offset(self, partition: Partition) -> int:
        if not self.is_consumer:
            return partition.log.log_end_offset
        return partition.reader.last_stable_offset if self.reads_committed else partition.high_watermark.value


async def handle(context: Context, call: Call, request: ListOffsetsRequest) -> ListOffsetsResponse:
    asked: dict[tuple[str, int], int] = {}
    for topic in request.topics:
        for wanted in topic.partitions:
            key = topic.name, wanted.partition_index
            asked[key] = asked.get(key, 0) + 1
    asker = Asker(request.replica_id == CONSUMER, request.isolation_level == READ_COMMITTED)
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    await _answer(context, call, topic.name, wanted, asked[topic.name, wanted.partition_index], asker)
                    for wanted in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


async def _answer(
    context: Context, call: Call, topic: str, wanted: ListOffsetsPartition, times_asked: int, asker: Asker
) -> ListOffsetsPartitionResponse:
    try:
        # A broker that follows asks for the log start of what it may fetch: for that ClusterAction is enough.
        if asker.is_consumer or not context.permits(call, Operation.CLUSTER_ACTION, CLUSTER, logs_refusal=False):
            context.require(call, Operation.DESCRIBE, of_topic(topic))
        if times_asked > 1:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"{topic}-{wanted.partition_index} is in the request {times_asked} times"
            )
        if wanted.timestamp < 0 and SPECIAL_SINCE.get(wanted.timestamp, call.version + 1) > call.version:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION, f"timestamp {wanted.timestamp} means nothing in version {call.version}"
            )
        partition = context.partitions.leader(topic, wanted.partition_index, wanted.current_leader_epoch)
        if not asker.is_consumer:
            context.require_broker(call)

        def found() -> ListOffsetsPartitionResponse:
            if asker.is_consumer:
                # Each time: it may have ended while the disk was waited for.
                context.member.registration.require_lease()
            return _found(partition, wanted, asker)

        return await read_without_blocking(context.disk, context.environment, found)
    except Exception as error:  # noqa: BLE001 - the other partitions are answered all the same
        code = call.failed(of_partition(error, topic, wanted.partition_index))
        if code == ErrorCode.OFFSET_NOT_AVAILABLE and call.version < OFFSET_NOT_AVAILABLE_SINCE:
            code = ErrorCode.LEADER_NOT_AVAILABLE
        return ListOffsetsPartitionResponse(partition_index=wanted.partition_index, error_code=code)


def _found(partition: Partition, wanted: ListOffsetsPartition, asker: Asker) -> ListOffsetsPartitionResponse:
    """Raises KafkaError: OFFSET_NOT_AVAILABLE, KAFKA_STORAGE_ERROR."""
    log = partition.log
    end_offset = asker.end_offset(partition)
    answer = ListOffsetsPartitionResponse(partition_index=wanted.partition_index)
    if wanted.timestamp == LATEST:
        if asker.is_consumer:
            _require_caught_up(partition)
        answer.offset = end_offset
        answer.leader_epoch = partition.leader_epoch
    elif wanted.timestamp in (EARLIEST, EARLIEST_LOCAL):
        answer.offset = log.log_start_offset
        answer.leader_epoch = _epoch_at(partition, log.log_start_offset)
    elif wanted.timestamp not in OF_TIERED:
        found = (
            log.offset_of_max_timestamp(end_offset)
            if wanted.timestamp == MAX_TIMESTAMP
            else log.offset_for_timestamp(wanted.timestamp, end_offset)
        )
        if found is not None:
            answer.timestamp = found.timestamp_ms
            answer.offset = found.offset
            answer.leader_epoch = found.leader_epoch
        elif asker.is_consumer:
            _require_caught_up(partition)
    return answer


def _require_caught_up(partition: Partition) -> None:
    """Right after an election the high watermark may lie before records that were read already: the end that it marks
    is then one that clients have passed (KIP-207). Raises KafkaError OFFSET_NOT_AVAILABLE."""
    epoch, epoch_start = end_offset_for_epoch(partition, partition.leader_epoch - 1)
    if epoch >= 0 and epoch_start > partition.high_watermark.value:
        raise KafkaError(
            ErrorCode.OFFSET_NOT_AVAILABLE,
            f"the high watermark {partition.high_watermark.value} of {partition.topic}-{partition.index} has not "
            f"reached {epoch_start}, where leader epoch {partition.leader_epoch} began",
        )


def _epoch_at(partition: Partition, offset: int) -> int:
    epoch = partition.log.epochs.epoch_for(offset)
    return partition.leader_epoch if offset == partition.log.log_end_offset else epoch


def fail(request: ListOffsetsRequest, code: ErrorCode) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(partition_index=wanted.partition_index, error_code=code)
                    for wanted in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
