"""AddOffsetsToTxn (key 25): tells the coordinator that a transaction is about to commit offsets of a group.

With transaction.version 2 producers leave it out: TxnOffsetCommit 5 does it along the way.

v0: the API (KIP-98)
v1: the broker answers before it throttles (KIP-219)
v2: PRODUCER_FENCED may be answered (KIP-588)
v3: flexible (KIP-482)
v4: TRANSACTION_ABORTABLE may be answered (KIP-890)
"""

from odradek.protocol.codec.schema import Request, Response, i16, i32, i64, message


@message(key=25, versions=(0, 4), flexible=3)
class AddOffsetsToTxnResponse(Response):
    throttle_time_ms: i32 = 0
    error_code: i16 = 0


@message(key=25, versions=(0, 4), flexible=3)
class AddOffsetsToTxnRequest(Request[AddOffsetsToTxnResponse]):
    transactional_id: str
    producer_id: i64
    producer_epoch: i16
    group_id: str
