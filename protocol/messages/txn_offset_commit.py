"""TxnOffsetCommit (key 28): offsets of a group that count once the transaction has been committed.

Generation -1 with an empty member id is a commit from outside of the group's protocol.

v0: the API (KIP-98)
v1: the broker answers before it throttles (KIP-219)
v2: committed_leader_epoch (KIP-320)
v3: flexible (KIP-482); generation_id, member_id, group_instance_id, and errors about these (KIP-447)
v4: TRANSACTION_ABORTABLE may be answered (KIP-890)
v5: transaction.version 2: the offsets are added to the transaction without AddOffsetsToTxn (KIP-890)
v6: topic_id in the place of name; UNKNOWN_TOPIC_ID, GROUP_ID_NOT_FOUND, STALE_MEMBER_EPOCH may be answered (KIP-1319)
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
class TxnOffsetCommitResponsePartition(Struct):
    partition_index: i32
    error_code: i16 = 0


@struct
class TxnOffsetCommitResponseTopic(Struct):
    name: str = field(until=5, default="")
    topic_id: uuid = field(since=6, default=ZERO_UUID)
    partitions: list[TxnOffsetCommitResponsePartition]


@message(key=28, versions=(0, 6), flexible=3)
class TxnOffsetCommitResponse(Response):
    throttle_time_ms: i32 = 0
    topics: list[TxnOffsetCommitResponseTopic]


@struct
class TxnOffsetCommitRequestPartition(Struct):
    partition_index: i32
    committed_offset: i64
    committed_leader_epoch: i32 = field(since=2, default=-1)
    committed_metadata: str | None


@struct
class TxnOffsetCommitRequestTopic(Struct):
    name: str = field(until=5, default="")
    topic_id: uuid = field(since=6, default=ZERO_UUID)
    partitions: list[TxnOffsetCommitRequestPartition]


@message(key=28, versions=(0, 6), flexible=3)
class TxnOffsetCommitRequest(Request[TxnOffsetCommitResponse]):
    transactional_id: str
    group_id: str
    producer_id: i64
    producer_epoch: i16
    generation_id: i32 = field(since=3, default=-1)
    member_id: str = field(since=3, default="")
    group_instance_id: str | None = field(since=3, default=None)
    topics: list[TxnOffsetCommitRequestTopic]
