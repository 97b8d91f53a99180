"""Errors about transactions, each with what to do about it. Pure.

The hints of `odradek.client.errors.hints` are those of a producer; these are for who looks after other people's
transactions.
"""

from typing import Final

from odradek.client.errors.base import ClientError
from odradek.client.errors.client_errors import broker_error
from odradek.protocol.errors import ErrorCode, code_of

__all__ = ["NOT_FOUND", "PASSING", "transaction_error"]

PASSING: Final = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    }
)
"""Errors of a transactional id that asking again can cure: its coordinator moves, or still ends its transaction."""
NOT_FOUND: Final = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND

_HINTS: Final[dict[ErrorCode, str]] = {
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "Check the id; `odradek transactions list` names those that there are.",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: (
        "Look whether the brokers run that hold __transaction_state, and what they log about it."
    ),
    ErrorCode.NOT_COORDINATOR: "The id is changing its coordinator; ask again.",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "The coordinator reads its log since it took over; ask again.",
    ErrorCode.CONCURRENT_TRANSACTIONS: "The coordinator still ends a transaction of this id; ask again.",
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: (
        "The time that this call was given is above transaction.max.timeout.ms of the brokers: give it less."
    ),
    ErrorCode.INVALID_PRODUCER_EPOCH: (
        "The producer has a later epoch there: describe the producers of the partition, and look again."
    ),
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: (
        "The partition has a marker of a later coordinator epoch: describe its producers, and look again."
    ),
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: (
        "It needs Describe on the transactional id, and Write to fence its producer. Give the principal that by an ACL."
    ),
}


def transaction_error(code: int, broker_message: str | None, what: str) -> ClientError:
    """The error for a code that a broker answered. `what`: what was asked."""
    error = broker_error(code, broker_message, what)
    known = _HINTS.get(code_of(code))
    if known is not None:
        error.hint = known
    return error
