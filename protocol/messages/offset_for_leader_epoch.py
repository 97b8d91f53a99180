"""OffsetForLeaderEpoch (key 23): where a leader epoch ends, which shows a reader whether its log diverged.

v2: current_leader_epoch, throttle_time_ms (KIP-320)
v3: replica_id; -2, its default, is a reader that may look beyond the high watermark (KIP-392)
v4: flexible (KIP-482)
"""

from odradek.protocol.codec.schema import Request, Response, Struct, field, i16, i32, i64, message, struct


@struct
class EpochEndOffset(Struct):
    error_code: i16 = 0
    partition: i32
    leader_epoch: i32 = -1
    end_offset: i64 = -1


@struct
class OffsetForLeaderTopicResult(Struct):
    topic: str
    partitions: list[EpochEndOffset]


@message(key=23, versions=(2, 4), flexible=4)
class OffsetForLeaderEpochResponse(Response):
    throttle_time_ms: i32 = 0
    topics: list[OffsetForLeaderTopicResult]


@struct
class OffsetForLeaderPartition(Struct):
    partition: i32
    current_leader_epoch: i32 = -1
    leader_epoch: i32


@struct
class OffsetForLeaderTopic(Struct):
    topic: str
    partitions: list[OffsetForLeaderPartition]


@message(key=23, versions=(2, 4), flexible=4)
class OffsetForLeaderEpochRequest(Request[OffsetForLeaderEpochResponse]):
    replica_id: i32 = field(since=3, default=-2)
    topics: list[OffsetForLeaderTopic]
