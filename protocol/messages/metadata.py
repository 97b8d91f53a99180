"""Metadata (key 3): brokers, topics and partition leaders.

In version 0 an empty list of topics asks for all of them, from version 1 on null does, and an empty list for none.
Authorized operations that were not asked for are -2147483648.

v0: brokers, topics, partitions
v1: rack (KIP-36), controller_id, is_internal (KIP-4)
v2: cluster_id (KIP-78)
v3: throttle_time_ms (KIP-124)
v4: allow_auto_topic_creation (KAFKA-5291)
v5: offline_replicas (KIP-112)
v6: the broker answers before it throttles (KIP-219)
v7: leader_epoch (KIP-320)
v8: authorized operations (KIP-430)
v9: flexible (KIP-482)
v10: topic_id (KIP-516)
v11: the authorized operations of the cluster moved to DescribeCluster (KIP-700)
v12: topics can be asked for by id (KIP-516)
v13: an error_code of the whole answer, such as REBOOTSTRAP_REQUIRED (KIP-1102)
"""

from odradek.protocol.codec.schema import ZERO_UUID, Request, Response, Struct, field, i16, i32, message, struct, uuid


@struct
class MetadataResponseBroker(Struct):
    node_id: i32
    host: str
    port: i32
    rack: str | None = field(since=1, default=None)


@struct
class MetadataResponsePartition(Struct):
    error_code: i16 = 0
    partition_index: i32
    leader_id: i32
    leader_epoch: i32 = field(since=7, default=-1)
    replica_nodes: list[i32]
    isr_nodes: list[i32]
    offline_replicas: list[i32] = field(since=5, default_factory=list[i32])


@struct
class MetadataResponseTopic(Struct):
    error_code: i16 = 0
    name: str | None = field(nullable_since=12)
    topic_id: uuid = field(since=10, default=ZERO_UUID)
    is_internal: bool = field(since=1, default=False)
    partitions: list[MetadataResponsePartition]
    topic_authorized_operations: i32 = field(since=8, default=-2147483648)


@message(key=3, versions=(0, 13), flexible=9)
class MetadataResponse(Response):
    throttle_time_ms: i32 = field(since=3, default=0)
    brokers: list[MetadataResponseBroker]
    cluster_id: str | None = field(since=2, default=None)
    controller_id: i32 = field(since=1, default=-1)
    topics: list[MetadataResponseTopic]
    cluster_authorized_operations: i32 = field(since=8, until=10, default=-2147483648)
    error_code: i16 = field(since=13, default=0)


@struct
class MetadataRequestTopic(Struct):
    topic_id: uuid = field(since=10, default=ZERO_UUID)
    name: str | None = field(nullable_since=10)


@message(key=3, versions=(0, 13), flexible=9)
class MetadataRequest(Request[MetadataResponse]):
    topics: list[MetadataRequestTopic] | None = field(nullable_since=1)
    allow_auto_topic_creation: bool = field(since=4, default=True)
    include_cluster_authorized_operations: bool = field(since=8, until=10, default=False)
    include_topic_authorized_operations: bool = field(since=8, default=False)
