"""AlterPartitionReassignments (key 45): gives partitions other replicas, or cancels that.

v0: the API (KIP-455), flexible
v1: allow_replication_factor_change (KIP-860)
"""

from odradek.protocol.codec.schema import Request, Response, Struct, field, i16, i32, message, struct


@struct
class ReassignablePartitionResponse(Struct):
    partition_index: i32
    error_code: i16 = 0
    error_message: str | None = None


@struct
class ReassignableTopicResponse(Struct):
    name: str
    partitions: list[ReassignablePartitionResponse]


@message(key=45, versions=(0, 1), flexible=0)
class AlterPartitionReassignmentsResponse(Response):
    throttle_time_ms: i32 = 0
    allow_replication_factor_change: bool = field(since=1, default=True)
    error_code: i16 = 0
    error_message: str | None = None
    responses: list[ReassignableTopicResponse]


@struct
class ReassignablePartition(Struct):
    partition_index: i32
    replicas: list[i32] | None = None


@struct
class ReassignableTopic(Struct):
    name: str
    partitions: list[ReassignablePartition]


@message(key=45, versions=(0, 1), flexible=0)
class AlterPartitionReassignmentsRequest(Request[AlterPartitionReassignmentsResponse]):
    timeout_ms: i32 = 60000
    allow_replication_factor_change: bool = field(since=1, default=True)
    topics: list[ReassignableTopic]
