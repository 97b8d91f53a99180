"""What `__transaction_state` holds of a transactional id.

By versions of the value:
v0: the producer, its time-out, the state, the partitions (KIP-98)
v1: flexible (KIP-915); the producer ids before and behind it, and the version of transactions (KIP-890), tagged

The state of a transaction is a number: 0 Empty, 1 Ongoing, 2 PrepareCommit, 3 PrepareAbort, 4 CompleteCommit,
5 CompleteAbort, 6 Dead, 7 PrepareEpochFence; the last two are never written.
"""

from typing import Final

from odradek.protocol.codec.schema import Message, Struct, field, i8, i16, i32, i64, message, struct
from odradek.protocol.stored.record_key import RecordKey

FLEXIBLE_SINCE: Final = 1
"""Written where transaction.version is 1 or more."""


@struct
class PartitionsSchema(Struct):
    """Partitions of a topic that the transaction includes."""

    topic: str
    partition_ids: list[i32]


@message(key=0, versions=(0, 1), flexible=1)
class TransactionLogValue(Message):
    """Times are in ms since 1970, -1: none. Producer ids -1: none. transaction_partitions is null where the
    transaction is empty, and there alone: Kafka's loader takes it apart in all other states."""

    producer_id: i64
    previous_producer_id: i64 = field(since=1, tag=0, default=-1)
    next_producer_id: i64 = field(since=1, tag=1, default=-1)
    producer_epoch: i16
    next_producer_epoch: i16 = field(since=1, tag=3, default=-1)
    transaction_timeout_ms: i32
    transaction_status: i8
    transaction_partitions: list[PartitionsSchema] | None
    transaction_last_update_timestamp_ms: i64
    transaction_start_timestamp_ms: i64
    client_transaction_version: i16 = field(since=1, tag=2, default=0)


@message(key=0, versions=(0, 0), flexible=None)
class TransactionLogKey(RecordKey[TransactionLogValue]):
    """Of one transactional id."""

    transactional_id: str
