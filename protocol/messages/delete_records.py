"""DeleteRecords (key 21): moves the log start offset of partitions forward.

v0: the API (KIP-107)
v1: the broker answers before it throttles (KIP-219)
v2: flexible (KIP-482)
"""

from odradek.protocol.codec.schema import Request, Response, Struct, i16, i32, i64, message, struct


@struct
class DeleteRecordsPartitionResult(Struct):
    partition_index: i32
    low_watermark: i64
    error_code: i16 = 0


@struct
class DeleteRecordsTopicResult(Struct):
    name: str
    partitions: list[DeleteRecordsPartitionResult]


@message(key=21, versions=(0, 2), flexible=2)
class DeleteRecordsResponse(Response):
    throttle_time_ms: i32 = 0
    topics: list[DeleteRecordsTopicResult]


@struct
class DeleteRecordsPartition(Struct):
    partition_index: i32
    offset: i64


@struct
class DeleteRecordsTopic(Struct):
    name: str
    partitions: list[DeleteRecordsPartition]


@message(key=21, versions=(0, 2), flexible=2)
class DeleteRecordsRequest(Request[DeleteRecordsResponse]):
    topics: list[DeleteRecordsTopic]
    timeout_ms: i32
