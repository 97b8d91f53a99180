"""ListTransactions (key 66): the transactional ids that a broker coordinates, and the states of their transactions.

Filters leave out what does not pass all of them; an empty one passes everything. States have the names that
DescribeTransactions gives them; those that the broker does not know are in the answer.

v0: the API, flexible (KIP-664)
v1: duration_filter: only transactions that are open for longer than so many ms; negative: none (KIP-994)
v2: transactional_id_pattern, a regular expression of RE2 for the whole id; null or empty: none (KIP-1152)
"""

from odradek.protocol.codec.schema import Request, Response, Struct, field, i16, i32, i64, message, struct


@struct
class TransactionState(Struct):
    transactional_id: str
    producer_id: i64
    transaction_state: str


@message(key=66, versions=(0, 2), flexible=0)
class ListTransactionsResponse(Response):
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    unknown_state_filters: list[str] = field(default_factory=list[str])
    transaction_states: list[TransactionState]


@message(key=66, versions=(0, 2), flexible=0)
class ListTransactionsRequest(Request[ListTransactionsResponse]):
    state_filters: list[str] = field(default_factory=list[str])
    producer_id_filters: list[i64] = field(default_factory=list[i64])
    duration_filter: i64 = field(since=1, default=-1)
    transactional_id_pattern: str | None = field(since=2, default=None)
