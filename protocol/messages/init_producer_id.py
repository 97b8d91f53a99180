"""InitProducerId (key 22): gives an idempotent or transactional producer its id and epoch.

v0: idempotence and transactions (KIP-98)
v1: the broker answers before it throttles (KIP-219)
v2: flexible (KIP-482)
v3: producer_id and producer_epoch, to go on after an error (KIP-360)
v4: PRODUCER_FENCED may be answered (KIP-588)
v5: TRANSACTION_ABORTABLE may be answered (KIP-890)
v6: transactions of two phases (KIP-939)
"""

from odradek.protocol.codec.schema import Request, Response, field, i16, i32, i64, message


@message(key=22, versions=(0, 6), flexible=2)
class InitProducerIdResponse(Response):
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    producer_id: i64 = -1
    producer_epoch: i16
    ongoing_txn_producer_id: i64 = field(since=6, default=-1)
    ongoing_txn_producer_epoch: i16 = field(since=6, default=-1)


@message(key=22, versions=(0, 6), flexible=2)
class InitProducerIdRequest(Request[InitProducerIdResponse]):
    transactional_id: str | None
    transaction_timeout_ms: i32
    producer_id: i64 = field(since=3, default=-1)
    producer_epoch: i16 = field(since=3, default=-1)
    enable2_pc: bool = field(since=6, default=False)
    keep_prepared_txn: bool = field(since=6, default=False)
