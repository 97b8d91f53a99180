"""What the refusal of an end means, by what the coordinator has of the transactional id."""

import pytest

from odradek.client.admin.transaction_ends import End, OtherOutcome
from odradek.client.admin.transactions import TransactionDescription
from odradek.client.errors.base import ClientError
from odradek.client.errors.client_errors import BrokerError
from odradek.protocol.codec.codec import decode, encode
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

COMMIT, ABORT = End("a", 7, 3, True), End("a", 7, 3, False)


def refused(end: End, state: str, *, producer_id: int = 7, epoch: int = 4, level: int = 2) -> ClientError:
    error = end.outcome(EndTxnResponse(error_code=ErrorCode.INVALID_TXN_STATE))
    assert isinstance(error, BrokerError)
    return end.refusal(error, TransactionDescription("a", state, 0, producer_id, epoch, 60_000), level)


@pytest.mark.parametrize(("level", "versions"), [(0, (0, 4)), (1, (0, 4)), (2, (5, 5)), (3, (5, 5))])
def test_the_version_says_which_transactions_are_spoken_of(level: int, versions: tuple[int, int]) -> None:
    assert COMMIT.versions(level) == versions
    for version in versions:
        sent = decode(EndTxnRequest, version, encode(ABORT.request(), version))
        assert (sent.transactional_id, sent.producer_id, sent.producer_epoch, sent.committed) == ("a", 7, 3, False)


def test_an_end_without_an_error_is_one() -> None:
    assert COMMIT.outcome(EndTxnResponse(producer_id=7, producer_epoch=4)) is True


@pytest.mark.parametrize("state", ["PrepareCommit", "CompleteCommit", "PrepareAbort", "CompleteAbort"])
@pytest.mark.parametrize("level", [1, 2])
def test_the_other_outcome_is_named(state: str, level: int) -> None:
    was_committed = state.endswith("Commit")
    end = ABORT if was_committed else COMMIT
    error = refused(end, state, epoch=3 if level == 1 else 4, level=level)
    assert isinstance(error, OtherOutcome)
    assert error.was_committed is was_committed
    words = "committed before, and cannot be aborted" if was_committed else "aborted before, and cannot be committed"
    assert words in str(error)


def test_another_producer_id_follows_where_epochs_were_used_up() -> None:
    assert isinstance(refused(ABORT, "CompleteCommit", producer_id=8, epoch=0), OtherOutcome)


@pytest.mark.parametrize(
    ("state", "epoch"), [("Empty", 3), ("Ongoing", 4), ("CompleteAbort", 3), ("CompleteCommit", 4)]
)
def test_what_has_not_begun_is_not_taken_for_ended(state: str, epoch: int) -> None:
    """With the same epoch the state is that of the transaction before."""
    error = refused(COMMIT, state, epoch=epoch)
    assert error.code is ErrorCode.INVALID_TXN_STATE
    assert "a transaction without records is none" in str(error)


@pytest.mark.parametrize(
    "code", [ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_ID_MAPPING]
)
def test_an_id_that_has_gone_on_says_what_that_means(code: ErrorCode) -> None:
    error = COMMIT.outcome(EndTxnResponse(error_code=code))
    assert isinstance(error, ClientError)
    assert error.code is code
    assert "If the transaction had not been ended before, it was aborted" in error.hint
