"""What an error code of a coordinator means for a transaction: a table. Pure.

Several codes of one answer: the gravest counts. What Kafka's table does not name is fatal, but for the partitions and
offsets of one transaction, which abort it: the next one may do without them.

(Source: TransactionManager.java, `handleResponse` of each handler. INVALID_PRODUCER_ID_MAPPING is fatal as in 4.x after
KIP-1050: the coordinator has forgotten the id, and with it whether the transaction was ended by somebody else.)
"""

from collections.abc import Iterable
from enum import IntEnum
from typing import Final

from odradek.client.producer.transactions.requests import (
    AddPartitions,
    CommitOffsets,
    FindCoordinator,
    KeyType,
    Request,
)
from odradek.protocol.errors import ErrorCode

__all__ = ["Meaning", "meaning_of", "meaning_of_all"]


class Meaning(IntEnum):
    """In order of gravity."""

    DONE = 0
    AGAIN = 1
    """Ask the same broker again, after a backoff."""
    ELSEWHERE = 2
    """Find the coordinator again, then ask that."""
    ABORT = 3
    """The transaction can only be aborted."""
    FATAL = 4
    """The producer can only be closed."""
    FENCED = 5
    """The same, because another producer has taken over."""


_MOVED: Final = frozenset((ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE))
_FENCED: Final = frozenset((ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH))
_FATAL: Final = frozenset(
    (
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    )
)
_ABORT: Final = frozenset(
    (
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    )
)


def meaning_of(request: Request, code: ErrorCode) -> Meaning:
    """Of one code in the answer to this request."""
    if code is ErrorCode.NONE:
        return Meaning.DONE
    if code in _FENCED:
        return Meaning.FENCED
    if code in _FATAL:
        return Meaning.FATAL
    if code in _MOVED or (code is ErrorCode.REQUEST_TIMED_OUT and isinstance(request, CommitOffsets)):
        return Meaning.AGAIN if isinstance(request, FindCoordinator) else Meaning.ELSEWHERE
    if code.retriable:
        return Meaning.AGAIN
    return Meaning.ABORT if code in _ABORT or is_of_one_transaction(request) else Meaning.FATAL


def is_of_one_transaction(request: Request) -> bool:
    """Whether the next transaction can do without what is asked for."""
    if isinstance(request, FindCoordinator):
        return request.of.key_type is KeyType.GROUP
    return isinstance(request, AddPartitions | CommitOffsets)


def meaning_of_all(request: Request, codes: Iterable[ErrorCode]) -> tuple[Meaning, ErrorCode]:
    """The gravest of several, and the first code that means that.

    What was not attempted because of another one counts where nothing else is told.
    """
    failures = [code for code in codes if code is not ErrorCode.NONE]
    causes = [code for code in failures if code is not ErrorCode.OPERATION_NOT_ATTEMPTED] or failures
    meanings = ((meaning_of(request, code), code) for code in causes)
    return max(meanings, key=lambda each: each[0], default=(Meaning.DONE, ErrorCode.NONE))
