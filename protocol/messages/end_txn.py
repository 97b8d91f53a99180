"""EndTxn (key 26): commits or aborts a transaction.

v0: the API (KIP-98)
v1: the broker answers before it throttles (KIP-219)
v2: PRODUCER_FENCED may be answered (KIP-588)
v3: flexible (KIP-482)
v4: TRANSACTION_ABORTABLE may be answered (KIP-890)
v5: transaction.version 2: producer_id and producer_epoch of the next transaction, -1 with an error (KIP-890)
"""

from odradek.protocol.codec.schema import Request, Response, field, i16, i32, i64, message


@message(key=26, versions=(0, 5), flexible=3)
class EndTxnResponse(Response):
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    producer_id: i64 = field(since=5, default=-1)
    producer_epoch: i16 = field(since=5, default=-1)


@message(key=26, versions=(0, 5), flexible=3)
class EndTxnRequest(Request[EndTxnResponse]):
    transactional_id: str
    producer_id: i64
    producer_epoch: i16
    committed: bool
    """False: the transaction is aborted."""
