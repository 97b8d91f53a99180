"""DescribeTransactions (key 65): where the transactions of given ids stand, as their coordinator has it.

transaction_state is the name of a state: Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort,
PrepareEpochFence, Dead.

v0: the API, flexible (KIP-664)
"""

from odradek.protocol.codec.schema import Request, Response, Struct, field, i16, i32, i64, message, struct


@struct
class TopicData(Struct):
    topic: str
    partitions: list[i32]


@struct
class TransactionState(Struct):
    error_code: i16 = 0
    transactional_id: str
    transaction_state: str = ""
    transaction_timeout_ms: i32 = 0
    transaction_start_time_ms: i64 = 0
    """In ms since 1970, -1 where none is under way."""
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    topics: list[TopicData] = field(default_factory=list[TopicData])


@message(key=65, versions=(0, 0), flexible=0)
class DescribeTransactionsResponse(Response):
    throttle_time_ms: i32 = 0
    transaction_states: list[TransactionState]


@message(key=65, versions=(0, 0), flexible=0)
class DescribeTransactionsRequest(Request[DescribeTransactionsResponse]):
    transactional_ids: list[str]
