"""DescribeProducers (key 61): which producers a partition's leader knows, and which of them have an open transaction.

v0: the API, flexible (KIP-664)
"""

from odradek.protocol.codec.schema import Request, Response, Struct, field, i16, i32, i64, message, struct


@struct
class ProducerState(Struct):
    producer_id: i64
    producer_epoch: i32
    last_sequence: i32 = -1
    last_timestamp: i64 = -1
    """In ms since 1970."""
    coordinator_epoch: i32
    """Of the last marker, -1 where there was none."""
    current_txn_start_offset: i64 = -1
    """-1 without an open transaction."""


@struct
class PartitionResponse(Struct):
    partition_index: i32
    error_code: i16 = 0
    error_message: str | None = None
    active_producers: list[ProducerState] = field(default_factory=list[ProducerState])


@struct
class TopicResponse(Struct):
    name: str
    partitions: list[PartitionResponse]


@message(key=61, versions=(0, 0), flexible=0)
class DescribeProducersResponse(Response):
    throttle_time_ms: i32 = 0
    topics: list[TopicResponse]


@struct
class TopicRequest(Struct):
    name: str
    partition_indexes: list[i32]


@message(key=61, versions=(0, 0), flexible=0)
class DescribeProducersRequest(Request[DescribeProducersResponse]):
    topics: list[TopicRequest]
