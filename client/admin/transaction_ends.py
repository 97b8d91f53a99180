"""The end of a transaction that its producer has let go of, and what the coordinator's refusals mean. Pure.

The same end may be asked for again. With transaction version 2 (EndTxn 5, KIP-890) the coordinator tells a repetition
by the epoch, which is the one before then; with earlier versions by the outcome alone.
"""

from typing import Final, NamedTuple

from odradek.client.admin.transaction_errors import transaction_error
from odradek.client.admin.transactions import TransactionDescription
from odradek.client.errors.base import ClientError
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

__all__ = ["FEATURE", "End", "OtherOutcome"]

FEATURE: Final = "transaction.version"
BUMPED_SINCE: Final = 2
"""The level of the feature from which on each end brings an epoch."""
V2: Final = 5
"""The version of EndTxn that says so."""
OUTCOMES: Final = {
    "PrepareCommit": True,
    "CompleteCommit": True,
    "PrepareAbort": False,
    "CompleteAbort": False,
}
GONE: Final = frozenset(
    (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
)
_GONE_HINT: Final = (
    "The transactional id has gone on without it, or was forgotten. If the transaction had not been ended before, it "
    "was aborted; the coordinator does not know any more."
)
_NOTHING_HINT: Final = "`odradek transactions describe` shows where it stands; a transaction without records is none."


class OtherOutcome(ClientError):
    """A transaction was to be ended in the one way, and had been ended in the other."""

    hint = "Nothing changes that. Look who has ended it, or which successor has aborted it."

    def __init__(self, transactional_id: str, *, was_committed: bool) -> None:
        was, wanted = ("committed", "aborted") if was_committed else ("aborted", "committed")
        super().__init__(f"the transaction of {transactional_id} was {was} before, and cannot be {wanted}")
        self.transactional_id = transactional_id
        self.was_committed = was_committed


class End(NamedTuple):
    """Of one transaction."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_commit: bool

    def request(self) -> EndTxnRequest:
        return EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            committed=self.is_commit,
        )

    def versions(self, level: int) -> tuple[int, int]:
        """Of EndTxn, where this transaction version is spoken: at least, at most."""
        return (V2, V2) if level >= BUMPED_SINCE else (0, V2 - 1)

    def outcome(self, response: EndTxnResponse) -> bool | ClientError:
        """True: it has ended so."""
        return _error(response.error_code, self.transactional_id) if response.error_code else True

    def refusal(self, error: ClientError, found: TransactionDescription, level: int) -> ClientError:
        """What INVALID_TXN_STATE means, by what the coordinator has of the id. From transaction version 2 on what has
        ended has a later epoch; with the same one, nothing has begun, and the state is that of the one before."""
        is_same = (found.producer_id, found.producer_epoch) == (self.producer_id, self.producer_epoch)
        was_committed = OUTCOMES.get(found.state)
        if was_committed is None or was_committed is self.is_commit or (is_same and level >= BUMPED_SINCE):
            return error
        return OtherOutcome(self.transactional_id, was_committed=was_committed)


def _error(code: int, transactional_id: str) -> ClientError:
    """The error for a code that a coordinator answered."""
    error = transaction_error(code, "", f"EndTxn of {transactional_id}")
    if error.code in GONE:
        error.hint = _GONE_HINT
    elif error.code is ErrorCode.INVALID_TXN_STATE:
        error.hint = _NOTHING_HINT
    return error
