"""Transactions to records of `__transaction_state`, and back. Pure.

key      int16 type, 0                 then the transactional id
value    int16 version of the value    then its fields at this version
"""

from odradek.broker.coordinator.machine import StoredRecord
from odradek.broker.txn.transaction import TopicPartition, Transaction, TxnState
from odradek.protocol.codec.codec import decode_prefix, encode
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.stored.record_key import KEY_VERSION, PREFIX_SIZE, prefixed, read_type, read_version
from odradek.protocol.stored.transaction_log import PartitionsSchema, TransactionLogKey, TransactionLogValue


def stored_record(transactional_id: str, transaction: Transaction, version: int) -> StoredRecord:
    """`version`: of the value."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(transaction.partitions):
        topics.setdefault(topic, []).append(partition)
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.epoch,
        next_producer_epoch=transaction.next_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=None
        if transaction.state is TxnState.EMPTY
        else [PartitionsSchema(topic=topic, partition_ids=partitions) for topic, partitions in topics.items()],
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
        client_transaction_version=transaction.version,
    )
    return StoredRecord(_key(transactional_id), prefixed(version, encode(value, version)))


def tombstone(transactional_id: str) -> StoredRecord:
    """The id is forgotten."""
    return StoredRecord(_key(transactional_id), None)


def _key(transactional_id: str) -> bytes:
    key = TransactionLogKey(transactional_id=transactional_id)
    return prefixed(key.api_key, encode(key, KEY_VERSION))


def transaction_of(key: bytes, value: bytes | None) -> tuple[str, Transaction | None] | None:
    """What the record says: an id, and its transaction, None where it is forgotten. None for a key of another type.

    Raises MalformedMessage: also for a value in a version, and for a state, that only a later release knows.
    """
    if read_type(key) != TransactionLogKey.api_key:
        return None
    transactional_id = decode_prefix(TransactionLogKey, KEY_VERSION, key, PREFIX_SIZE).transactional_id
    if value is None:
        return transactional_id, None
    version = read_version(value)
    if not TransactionLogValue.min_version <= version <= TransactionLogValue.max_version:
        raise _later(transactional_id, f"version {version}")
    return transactional_id, _transaction(
        transactional_id, decode_prefix(TransactionLogValue, version, value, PREFIX_SIZE)
    )


def _transaction(transactional_id: str, value: TransactionLogValue) -> Transaction:
    try:
        state = TxnState(value.transaction_status)
    except ValueError:
        raise _later(transactional_id, f"state {value.transaction_status}") from None
    partitions: frozenset[TopicPartition] = frozenset(
        (topic.topic, partition) for topic in value.transaction_partitions or () for partition in topic.partition_ids
    )
    return Transaction(
        producer_id=value.producer_id,
        epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        updated_ms=value.transaction_last_update_timestamp_ms,
        state=state,
        partitions=partitions,
        started_ms=value.transaction_start_timestamp_ms,
        version=value.client_transaction_version,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        next_epoch=value.next_producer_epoch,
    )


def _later(transactional_id: str, what: str) -> MalformedMessage:
    return MalformedMessage(
        f"transactional id {transactional_id!r}: a record with {what}, which a later release has written: start that "
        "release again"
    )
