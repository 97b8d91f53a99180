"""DescribeQuorum (key 55): who keeps the cluster's metadata, who leads, and how far each has come (KIP-595).

v0: the API, flexible
v1: last_fetch_timestamp and last_caught_up_timestamp (KIP-836)
v2: error messages, directory ids, nodes with their listeners (KIP-853)
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
    u16,
    uuid,
)

METADATA_TOPIC = "__cluster_metadata"
"""The topic whose quorum keeps the cluster's metadata, in its partition 0."""


@struct
class ReplicaState(Struct):
    replica_id: i32
    replica_directory_id: uuid = field(since=2, default=ZERO_UUID)
    log_end_offset: i64
    last_fetch_timestamp: i64 = field(since=1, default=-1)
    last_caught_up_timestamp: i64 = field(since=1, default=-1)


@struct
class QuorumPartition(Struct):
    partition_index: i32
    error_code: i16 = 0
    error_message: str | None = field(since=2, default=None)
    leader_id: i32
    leader_epoch: i32
    high_watermark: i64
    current_voters: list[ReplicaState]
    observers: list[ReplicaState]


@struct
class QuorumTopic(Struct):
    topic_name: str
    partitions: list[QuorumPartition]


@struct
class QuorumListener(Struct):
    name: str
    host: str
    port: u16


@struct
class QuorumNode(Struct):
    node_id: i32
    listeners: list[QuorumListener]


@message(key=55, versions=(0, 2), flexible=0)
class DescribeQuorumResponse(Response):
    error_code: i16 = 0
    error_message: str | None = field(since=2, default=None)
    topics: list[QuorumTopic]
    nodes: list[QuorumNode] = field(since=2, default_factory=list[QuorumNode])


@struct
class QuorumPartitionData(Struct):
    partition_index: i32


@struct
class QuorumTopicData(Struct):
    topic_name: str
    partitions: list[QuorumPartitionData]


@message(key=55, versions=(0, 2), flexible=0)
class DescribeQuorumRequest(Request[DescribeQuorumResponse]):
    topics: list[QuorumTopicData]
