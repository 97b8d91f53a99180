"""Produce (key 0): appends record batches to partitions.

v3: transactional_id, record batches of magic 2 (KIP-98)
v4: KAFKA_STORAGE_ERROR may be answered (KIP-112)
v5: log_start_offset (KIP-107)
v6: the broker answers before it throttles (KIP-219)
v7: zstd (KIP-110)
v8: record_errors and error_message (KIP-467)
v9: flexible (KIP-482)
v10: current_leader and node_endpoints (KIP-951)
v11: TRANSACTION_ABORTABLE may be answered (KIP-890)
v12: transaction.version 2: partitions are added to a transaction without AddPartitionsToTxn (KIP-890)
v13: topic_id in the place of name; UNKNOWN_TOPIC_ID may be answered (KIP-516)
"""

from odradek.protocol.codec.schema import (
    ZERO_UUID,
    Records,
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
class BatchIndexAndErrorMessage(Struct):
    batch_index: i32
    batch_index_error_message: str | None = None


@struct
class LeaderIdAndEpoch(Struct):
    leader_id: i32 = -1
    leader_epoch: i32 = -1


@struct
class PartitionProduceResponse(Struct):
    index: i32
    error_code: i16 = 0
    base_offset: i64
    log_append_time_ms: i64 = -1
    log_start_offset: i64 = field(since=5, default=-1)
    record_errors: list[BatchIndexAndErrorMessage] = field(since=8, default_factory=list[BatchIndexAndErrorMessage])
    error_message: str | None = field(since=8, default=None)
    current_leader: LeaderIdAndEpoch | None = field(since=10, tag=0, default=None)


@struct
class TopicProduceResponse(Struct):
    name: str = field(until=12, default="")
    topic_id: uuid = field(since=13, default=ZERO_UUID)
    partition_responses: list[PartitionProduceResponse]


@struct
class NodeEndpoint(Struct):
    node_id: i32
    host: str
    port: i32
    rack: str | None = None


@message(key=0, versions=(3, 13), flexible=9)
class ProduceResponse(Response):
    responses: list[TopicProduceResponse]
    throttle_time_ms: i32 = 0
    node_endpoints: list[NodeEndpoint] = field(since=10, tag=0, default_factory=list[NodeEndpoint])


@struct
class PartitionProduceData(Struct):
    index: i32
    records: Records


@struct
class TopicProduceData(Struct):
    name: str = field(until=12, default="")
    topic_id: uuid = field(since=13, default=ZERO_UUID)
    partition_data: list[PartitionProduceData]


@message(key=0, versions=(3, 13), flexible=9)
class ProduceRequest(Request[ProduceResponse]):
    transactional_id: str | None = None
    acks: i16
    timeout_ms: i32
    topic_data: list[TopicProduceData]
