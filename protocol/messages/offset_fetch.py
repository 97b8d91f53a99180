"""OffsetFetch (key 9): the offsets that groups have committed.

Up to version 7 a message is about one group, whose fields stand at the top; from version 8 on `groups` holds them. A
partition without an offset is answered with -1 and no error.

v1: offsets from the log of groups, no longer from ZooKeeper (KAFKA-1841)
v2: topics may be null, which asks for all; an error_code of the whole answer (KIP-88)
v3: throttle_time_ms (KIP-124)
v4: the broker answers before it throttles (KIP-219)
v5: committed_leader_epoch (KIP-320)
v6: flexible (KIP-482)
v7: require_stable; UNSTABLE_OFFSET_COMMIT may be answered (KIP-447)
v8: several groups at once (KIP-709)
v9: member_id and member_epoch; STALE_MEMBER_EPOCH and UNKNOWN_MEMBER_ID may be answered (KIP-848)
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
class OffsetFetchResponsePartition(Struct):
    partition_index: i32
    committed_offset: i64
    committed_leader_epoch: i32 = field(since=5, default=-1)
    metadata: str | None
    error_code: i16 = 0


@struct
class OffsetFetchResponseTopic(Struct):
    name: str
    partitions: list[OffsetFetchResponsePartition]


@struct
class OffsetFetchResponsePartitions(Struct):
    partition_index: i32
    committed_offset: i64
    committed_leader_epoch: i32 = -1
    metadata: str | None
    error_code: i16 = 0


@struct
class OffsetFetchResponseTopics(Struct):
    name: str = field(until=9, default="")
    topic_id: uuid = field(since=10, default=ZERO_UUID)
    partitions: list[OffsetFetchResponsePartitions]


@struct
class OffsetFetchResponseGroup(Struct):
    group_id: str
    topics: list[OffsetFetchResponseTopics]
    error_code: i16 = 0


@message(key=9, versions=(1, 10), flexible=6)
class OffsetFetchResponse(Response):
    throttle_time_ms: i32 = field(since=3, default=0)
    topics: list[OffsetFetchResponseTopic] = field(until=7, default_factory=list[OffsetFetchResponseTopic])
    error_code: i16 = field(since=2, until=7, default=0)
    groups: list[OffsetFetchResponseGroup] = field(since=8, default_factory=list[OffsetFetchResponseGroup])


@struct
class OffsetFetchRequestTopic(Struct):
    name: str
    partition_indexes: list[i32]


@struct
class OffsetFetchRequestTopics(Struct):
    name: str = field(until=9, default="")
    topic_id: uuid = field(since=10, default=ZERO_UUID)
    partition_indexes: list[i32]


@struct
class OffsetFetchRequestGroup(Struct):
    group_id: str
    member_id: str | None = field(since=9, default=None)
    member_epoch: i32 = field(since=9, default=-1)
    topics: list[OffsetFetchRequestTopics] | None


@message(key=9, versions=(1, 10), flexible=6)
class OffsetFetchRequest(Request[OffsetFetchResponse]):
    group_id: str = field(until=7, default="")
    topics: list[OffsetFetchRequestTopic] | None = field(
        until=7, nullable_since=2, default_factory=list[OffsetFetchRequestTopic]
    )
    groups: list[OffsetFetchRequestGroup] = field(since=8, default_factory=list[OffsetFetchRequestGroup])
    require_stable: bool = field(since=7, default=False)
