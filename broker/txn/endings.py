"""What an EndTxn finds where no transaction is under way, and what partitions are told of an end. Pure.

Answers are lost, so a producer asks again. In version 2 (KIP-890) its epoch is then the one before, for the end has
brought the next one; the same epoch means the next transaction. In versions 0 and 1 the epoch is the same, and the
outcome alone says whether it asks again.
"""

from odradek.broker.txn.requests import Ending, EndTransaction
from odradek.broker.txn.transaction import (
    BUMPED_FOR_EACH_SINCE,
    EPOCH_MAX,
    ProducerIdentity,
    Transaction,
    TxnState,
)
from odradek.protocol.errors import ErrorCode, KafkaError


def ending_of(transactional_id: str, prepared: Transaction) -> Ending:
    """As the record says: a coordinator that has loaded it says the same."""
    producer = ProducerIdentity(prepared.producer_id, prepared.epoch)
    is_commit = prepared.state is TxnState.PREPARE_COMMIT
    return Ending(
        transactional_id, producer, is_commit, prepared.partitions, prepared.version, prepared_ms=prepared.updated_ms
    )


def is_repeated(present: Transaction, request: EndTransaction) -> bool:
    """Whether this producer may have been told of the end before, and has not heard it, by version 2: its epoch is the
    one before, or the last of its producer id."""
    if min(request.version, present.version) < BUMPED_FOR_EACH_SINCE:
        return False
    if not (present.state.is_prepared or present.state.is_complete):
        return False
    producer_id, epoch = request.producer
    identity = present.identity
    if producer_id == identity.producer_id:
        return epoch + 1 == identity.epoch <= EPOCH_MAX
    return (producer_id, epoch) == (present.former_producer_id, EPOCH_MAX) and identity.epoch == 0


def ended(present: Transaction, request: EndTransaction) -> ProducerIdentity:
    """With what the producer goes on whose transaction has ended, or is about to, as it asks for. Raises KafkaError
    INVALID_TXN_STATE."""
    if request.is_commit:
        wanted = (TxnState.PREPARE_COMMIT, TxnState.COMPLETE_COMMIT)
    else:
        wanted = (TxnState.PREPARE_ABORT, TxnState.COMPLETE_ABORT)
    if present.state not in wanted:
        raise nothing_to_end(present, request)
    return present.identity


def nothing_to_end(present: Transaction, request: EndTransaction) -> KafkaError:
    wanted = "commit" if request.is_commit else "abort"
    return KafkaError(
        ErrorCode.INVALID_TXN_STATE, f"{request.transactional_id!r} is {present.state.text}: nothing to {wanted}"
    )
