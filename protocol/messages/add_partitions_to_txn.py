"""AddPartitionsToTxn (key 24): tells the coordinator which partitions a transaction is about to write to.

Producers ask in versions 0 to 3, about one transaction. Brokers ask in versions 4 and 5, about several at once: whether
partitions that a producer writes to are in its transaction, or, with transaction.version 2, to add them.

v0: the API (KIP-98)
v1: the broker answers before it throttles (KIP-219)
v2: PRODUCER_FENCED may be answered (KIP-588)
v3: flexible (KIP-482)
v4: transactions, verify_only, and an error of the whole answer (KIP-890)
v5: TRANSACTION_ABORTABLE may be answered (KIP-890)
"""

from odradek.protocol.codec.schema import Request, Response, Struct, field, i16, i32, i64, message, struct


@struct
class AddPartitionsToTxnPartitionResult(Struct):
    partition_index: i32
    partition_error_code: i16 = 0


@struct
class AddPartitionsToTxnTopicResult(Struct):
    name: str
    results_by_partition: list[AddPartitionsToTxnPartitionResult]


@struct
class AddPartitionsToTxnResult(Struct):
    transactional_id: str
    topic_results: list[AddPartitionsToTxnTopicResult]


@message(key=24, versions=(0, 5), flexible=3)
class AddPartitionsToTxnResponse(Response):
    throttle_time_ms: i32 = 0
    error_code: i16 = field(since=4, default=0)
    results_by_transaction: list[AddPartitionsToTxnResult] = field(
        since=4, default_factory=list[AddPartitionsToTxnResult]
    )
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = field(
        until=3, default_factory=list[AddPartitionsToTxnTopicResult]
    )


@struct
class AddPartitionsToTxnTopic(Struct):
    name: str
    partitions: list[i32]


@struct
class AddPartitionsToTxnTransaction(Struct):
    transactional_id: str
    producer_id: i64
    producer_epoch: i16
    verify_only: bool = False
    topics: list[AddPartitionsToTxnTopic]


@message(key=24, versions=(0, 5), flexible=3)
class AddPartitionsToTxnRequest(Request[AddPartitionsToTxnResponse]):
    transactions: list[AddPartitionsToTxnTransaction] = field(
        since=4, default_factory=list[AddPartitionsToTxnTransaction]
    )
    v3_and_below_transactional_id: str = field(until=3, default="")
    v3_and_below_producer_id: i64 = field(until=3, default=0)
    v3_and_below_producer_epoch: i16 = field(until=3, default=0)
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = field(until=3, default_factory=list[AddPartitionsToTxnTopic])
