"""ListOffsets (key 2): the offset at a timestamp, or one of the special ones.

Special timestamps: -1 latest, -2 earliest; from v7 -3 the largest timestamp, from v8 -4 the local log start, from v9 -5
the last tiered offset, from v11 -6 the first one that is yet to be tiered.

v1: one offset with its timestamp (KIP-79)
v2: isolation_level (KIP-98), throttle_time_ms (KIP-124)
v3: the broker answers before it throttles (KIP-219)
v4: leader epochs (KIP-320)
v5: OFFSET_NOT_AVAILABLE may be answered (KIP-207)
v6: flexible (KIP-482)
v7: timestamp -3 (KIP-734)
v8: timestamp -4 (KIP-405)
v9: timestamp -5 (KIP-1005)
v10: timeout_ms, for what lies in tiered storage; 0 leaves it to the broker (KIP-1075)
v11: timestamp -6 (KIP-1023)
"""

from odradek.protocol.codec.schema import Request, Response, Struct, field, i8, i16, i32, i64, message, struct


@struct
class ListOffsetsPartitionResponse(Struct):
    partition_index: i32
    error_code: i16 = 0
    timestamp: i64 = -1
    offset: i64 = -1
    leader_epoch: i32 = field(since=4, default=-1)


@struct
class ListOffsetsTopicResponse(Struct):
    name: str
    partitions: list[ListOffsetsPartitionResponse]


@message(key=2, versions=(1, 11), flexible=6)
class ListOffsetsResponse(Response):
    throttle_time_ms: i32 = field(since=2, default=0)
    topics: list[ListOffsetsTopicResponse]


@struct
class ListOffsetsPartition(Struct):
    partition_index: i32
    current_leader_epoch: i32 = field(since=4, default=-1)
    timestamp: i64


@struct
class ListOffsetsTopic(Struct):
    name: str
    partitions: list[ListOffsetsPartition]


@message(key=2, versions=(1, 11), flexible=6)
class ListOffsetsRequest(Request[ListOffsetsResponse]):
    replica_id: i32
    isolation_level: i8 = field(since=2, default=0)
    topics: list[ListOffsetsTopic]
    timeout_ms: i32 = field(since=10, default=0)
