"""DescribeTopicPartitions (key 75): the partitions of topics, a page at a time.

v0: the API, with eligible leader replicas (KIP-966), flexible
"""

from odradek.protocol.codec.schema import ZERO_UUID, Request, Response, Struct, i16, i32, message, struct, uuid


@struct
class DescribeTopicPartitionsResponsePartition(Struct):
    error_code: i16 = 0
    partition_index: i32
    leader_id: i32
    leader_epoch: i32 = -1
    replica_nodes: list[i32]
    isr_nodes: list[i32]
    eligible_leader_replicas: list[i32] | None = None
    last_known_elr: list[i32] | None = None
    offline_replicas: list[i32]


@struct
class DescribeTopicPartitionsResponseTopic(Struct):
    error_code: i16 = 0
    name: str | None
    topic_id: uuid = ZERO_UUID
    is_internal: bool = False
    partitions: list[DescribeTopicPartitionsResponsePartition]
    topic_authorized_operations: i32 = -2147483648


@struct
class Cursor(Struct):
    topic_name: str
    partition_index: i32


@message(key=75, versions=(0, 0), flexible=0)
class DescribeTopicPartitionsResponse(Response):
    throttle_time_ms: i32 = 0
    topics: list[DescribeTopicPartitionsResponseTopic]
    next_cursor: Cursor | None = None


@struct
class TopicRequest(Struct):
    name: str


@message(key=75, versions=(0, 0), flexible=0)
class DescribeTopicPartitionsRequest(Request[DescribeTopicPartitionsResponse]):
    topics: list[TopicRequest]
    response_partition_limit: i32 = 2000
    cursor: Cursor | None = None
