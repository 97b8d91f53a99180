"""Fetch (key 1): reads record batches, for consumers and for followers.

v4: isolation_level, last_stable_offset, aborted_transactions; record batches of magic 2 (KIP-98)
v5: log_start_offset (KIP-107)
v6: KAFKA_STORAGE_ERROR may be answered (KIP-112)
v7: sessions (KIP-227)
v8: the broker answers before it throttles (KIP-219)
v9: current_leader_epoch (KIP-320)
v10: zstd (KIP-110)
v11: rack_id, preferred_read_replica (KIP-392)
v12: flexible (KIP-482); cluster_id, last_fetched_epoch, diverging_epoch, current_leader (KIP-595),
     snapshot_id (KIP-630)
v13: topic_id in the place of topic (KIP-516)
v14: OFFSET_MOVED_TO_TIERED_STORAGE may be answered (KIP-405)
v15: replica_state in the place of replica_id (KIP-903)
v16: node_endpoints (KIP-951)
v17: replica_directory_id (KIP-853)
v18: high_watermark in the request, for logs of Raft (KIP-1166)
"""

from odradek.protocol.codec.schema import (
    ZERO_UUID,
    Records,
    Request,
    Response,
    Struct,
    field,
    i8,
    i16,
    i32,
    i64,
    message,
    struct,
    uuid,
)


@struct
class EpochEndOffset(Struct):
    epoch: i32 = -1
    end_offset: i64 = -1


@struct
class LeaderIdAndEpoch(Struct):
    leader_id: i32 = -1
    leader_epoch: i32 = -1


@struct
class SnapshotId(Struct):
    end_offset: i64 = -1
    epoch: i32 = -1


@struct
class AbortedTransaction(Struct):
    producer_id: i64
    first_offset: i64


@struct
class PartitionData(Struct):
    partition_index: i32
    error_code: i16 = 0
    high_watermark: i64
    last_stable_offset: i64 = -1
    log_start_offset: i64 = field(since=5, default=-1)
    diverging_epoch: EpochEndOffset | None = field(since=12, tag=0, default=None)
    current_leader: LeaderIdAndEpoch | None = field(since=12, tag=1, default=None)
    snapshot_id: SnapshotId | None = field(since=12, tag=2, default=None)
    aborted_transactions: list[AbortedTransaction] | None = None
    preferred_read_replica: i32 = field(since=11, default=-1)
    records: Records


@struct
class FetchableTopicResponse(Struct):
    topic: str = field(until=12, default="")
    topic_id: uuid = field(since=13, default=ZERO_UUID)
    partitions: list[PartitionData]


@struct
class NodeEndpoint(Struct):
    node_id: i32
    host: str
    port: i32
    rack: str | None = None


@message(key=1, versions=(4, 18), flexible=12)
class FetchResponse(Response):
    throttle_time_ms: i32 = 0
    error_code: i16 = field(since=7, default=0)
    session_id: i32 = field(since=7, default=0)
    responses: list[FetchableTopicResponse]
    node_endpoints: list[NodeEndpoint] = field(since=16, tag=0, default_factory=list[NodeEndpoint])


@struct
class ReplicaState(Struct):
    replica_id: i32 = -1
    replica_epoch: i64 = -1


@struct
class FetchPartition(Struct):
    partition: i32
    current_leader_epoch: i32 = field(since=9, default=-1)
    fetch_offset: i64
    last_fetched_epoch: i32 = field(since=12, default=-1)
    log_start_offset: i64 = field(since=5, default=-1)
    partition_max_bytes: i32
    replica_directory_id: uuid = field(since=17, tag=0, default=ZERO_UUID)
    high_watermark: i64 = field(since=18, tag=1, default=0x7FFFFFFFFFFFFFFF)


@struct
class FetchTopic(Struct):
    topic: str = field(until=12, default="")
    topic_id: uuid = field(since=13, default=ZERO_UUID)
    partitions: list[FetchPartition]


@struct
class ForgottenTopic(Struct):
    topic: str = field(until=12, default="")
    topic_id: uuid = field(since=13, default=ZERO_UUID)
    partitions: list[i32]


@message(key=1, versions=(4, 18), flexible=12)
class FetchRequest(Request[FetchResponse]):
    cluster_id: str | None = field(since=12, tag=0, default=None)
    replica_id: i32 = field(until=14, default=-1)
    replica_state: ReplicaState | None = field(since=15, tag=1, default=None)
    max_wait_ms: i32
    min_bytes: i32
    max_bytes: i32 = 0x7FFFFFFF
    isolation_level: i8 = 0
    session_id: i32 = field(since=7, default=0)
    session_epoch: i32 = field(since=7, default=-1)
    topics: list[FetchTopic]
    forgotten_topics_data: list[ForgottenTopic] = field(since=7, default_factory=list[ForgottenTopic])
    rack_id: str = field(since=11, default="")
