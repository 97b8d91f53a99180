"""OffsetCommit (key 8): stores how far a group has come in its partitions.

Generation -1 with an empty member id is a commit from outside of the group's protocol.

v2: retention_time_ms in the place of a timestamp for each partition (KAFKA-1841)
v3: throttle_time_ms (KIP-124)
v4: the broker answers before it throttles (KIP-219)
v5: without retention_time_ms: the broker's configuration holds (KIP-211)
v6: committed_leader_epoch (KIP-320)
v7: group_instance_id (KIP-345)
v8: flexible (KIP-482)
v9: member epochs; STALE_MEMBER_EPOCH and GROUP_ID_NOT_FOUND may be answered (KIP-848)
v10: topic_id in the place of name; UNKNOWN_TOPIC_ID may be answered (KIP-848)
"""

from odradek.protocol.codec.schema import (
    ZERO_UUID,
    Request,
    Response,
    Struct,
    field,
    i16,
    i32,
    i64,
    message,
    struct,
    uuid,
)


@struct
class OffsetCommitResponsePartition(Struct):
    partition_index: i32
    error_code: i16 = 0


@struct
class OffsetCommitResponseTopic(Struct):
    name: str = field(until=9, default="")
    topic_id: uuid = field(since=10, default=ZERO_UUID)
    partitions: list[OffsetCommitResponsePartition]


@message(key=8, versions=(2, 10), flexible=8)
class OffsetCommitResponse(Response):
    throttle_time_ms: i32 = field(since=3, default=0)
    topics: list[OffsetCommitResponseTopic]


@struct
class OffsetCommitRequestPartition(Struct):
    partition_index: i32
    committed_offset: i64
    committed_leader_epoch: i32 = field(since=6, default=-1)
    committed_metadata: str | None


@struct
class OffsetCommitRequestTopic(Struct):
    name: str = field(until=9, default="")
    topic_id: uuid = field(since=10, default=ZERO_UUID)
    partitions: list[OffsetCommitRequestPartition]


@message(key=8, versions=(2, 10), flexible=8)
class OffsetCommitRequest(Request[OffsetCommitResponse]):
    group_id: str
    generation_id_or_member_epoch: i32 = -1
    member_id: str = ""
    group_instance_id: str | None = field(since=7, default=None)
    retention_time_ms: i64 = field(until=4, default=-1)
    topics: list[OffsetCommitRequestTopic]
