"""OffsetForLeaderEpoch (key 23): where a leader epoch ended in the leader's log (KIP-101, KIP-279, KIP-320).

A client that knows the epoch of what it read last learns whether the log was cut behind it: the answer is the largest
epoch that is at most the one asked for, and the offset at which it ends; (-1, -1) for an epoch that the leader does
not know, as one later than its own.

Brokers ask by ClusterAction, consumers by Describe of the topic.

Versions: 2 current leader epoch (KIP-320). 3 replica id. 4 flexible.
"""

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import CLUSTER, of_topic
from odradek.broker.handling.context import Call, Context, of_partition
from odradek.broker.replication.divergence import end_offset_for_epoch
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


async def handle(context: Context, call: Call, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_end_offset(context, call, topic.topic, wanted) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _end_offset(context: Context, call: Call, topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        if not context.permits(call, Operation.CLUSTER_ACTION, CLUSTER, logs_refusal=False):
            context.require(call, Operation.DESCRIBE, of_topic(topic))
        partition = context.partitions.leader(topic, wanted.partition, wanted.current_leader_epoch)
        leader_epoch, end_offset = end_offset_for_epoch(partition, wanted.leader_epoch)
    except Exception as error:  # noqa: BLE001 - the other partitions are answered all the same
        code = call.failed(of_partition(error, topic, wanted.partition))
        return EpochEndOffset(partition=wanted.partition, error_code=code)
    return EpochEndOffset(partition=wanted.partition, leader_epoch=leader_epoch, end_offset=end_offset)


def fail(request: OffsetForLeaderEpochRequest, code: ErrorCode) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[EpochEndOffset(partition=wanted.partition, error_code=code) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )
