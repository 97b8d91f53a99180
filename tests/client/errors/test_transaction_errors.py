"""The errors of transactions: what they say, what they allow, and that they travel as the others do."""

import copy
import pickle

import pytest

from odradek.client.errors.base import ClientError
from odradek.client.errors.broker_errors import ProducerFenced, broker_error
from odradek.client.errors.client_errors import WrongUse
from odradek.client.errors.transaction_errors import (
    CommitOutcomeUnknown,
    NoTransaction,
    NoTransactionalId,
    NotTwoPhase,
    TransactionFailed,
    TransactionOpen,
    TransactionOver,
)
from odradek.protocol.errors import ErrorCode

CAUSE = broker_error(ErrorCode.ILLEGAL_GENERATION, "", "TxnOffsetCommit of input-0 for payments")
EXAMPLES: list[ClientError] = [
    TransactionFailed("payments", CAUSE),
    TransactionFailed("payments", CAUSE, is_fatal=True),
    TransactionFailed("payments"),
    CommitOutcomeUnknown("payments", 60_000),
    NoTransaction("payments"),
    NoTransactionalId(),
    NotTwoPhase("payments"),
    TransactionOver("payments", "committed"),
    TransactionOpen("payments", "being committed"),
]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_they_travel_and_are_made_fresh_with_all_they_have(error: ClientError) -> None:
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error), error.fresh()):  # noqa: S301 - our own bytes
        assert (type(twin), str(twin), twin.code, twin.fatal) == (type(error), str(error), error.code, error.fatal)
        assert twin.retriable is error.retriable
        assert str(getattr(twin, "cause", None)) == str(getattr(error, "cause", None))
    assert error.hint


def test_a_failed_transaction_says_why_and_whether_another_one_may_begin() -> None:
    passing, fatal = EXAMPLES[0], EXAMPLES[1]
    assert (passing.retriable, passing.fatal) == (True, False)
    assert (fatal.retriable, fatal.fatal) == (False, True)
    assert "a transaction of payments failed: TxnOffsetCommit of input-0 for payments failed" in str(passing)
    assert ".," not in str(passing)
    assert passing.code is ErrorCode.ILLEGAL_GENERATION


def test_mistakes_of_the_program_are_wrong_uses() -> None:
    assert [isinstance(error, WrongUse) for error in EXAMPLES] == [False] * 4 + [True] * 5


def test_who_is_fenced_gets_an_error_of_its_own_that_is_fatal() -> None:
    error = broker_error(ErrorCode.PRODUCER_FENCED)
    assert isinstance(error, ProducerFenced)
    assert error.fatal
