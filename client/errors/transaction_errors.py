"""Errors of transactions: what ended one, and whether its producer can begin another.

    ProducerFenced          another producer has taken over the transactional id           only closing is left
    TransactionFailed       the transaction was, or has to be, aborted; `cause` says why   `fatal`: only closing is left
    CommitOutcomeUnknown    nobody has said in time what became of the commit              ask again: `txn.commit()`
    NoTransaction, NoTransactionalId, TransactionOver, TransactionOpen, NotTwoPhase        mistakes in the program

(Source: KIP-98, KIP-360, KIP-1050.)
"""

from odradek.client.errors.base import ClientError
from odradek.client.errors.client_errors import WrongUse
from odradek.protocol.errors import ErrorCode

__all__ = ["CommitOutcomeUnknown", "NoTransaction", "NoTransactionalId", "NotTwoPhase", "TransactionFailed"]
__all__ += ["TransactionOpen", "TransactionOver"]


class TransactionFailed(ClientError):
    """A transaction that cannot be committed. It is aborted, and may be tried again unless the error is `fatal`.

    `cause`: the first error of it, None where the program had it aborted.
    """

    cause: ClientError | None = None

    def __init__(self, transactional_id: str, cause: ClientError | None = None, *, is_fatal: bool = False) -> None:
        why = "" if cause is None else f": {cause.message.removesuffix('.')}"
        end = "and its producer cannot go on" if is_fatal else "and is aborted"
        super().__init__(
            f"a transaction of {transactional_id} failed{why}, {end}"
            if cause is not None
            else f"a transaction of {transactional_id} was aborted",
            hint=(cause.hint if cause is not None else "")
            or ("Close the producer." if is_fatal else "Begin another transaction."),
        )
        self.transactional_id = transactional_id
        self.cause = cause
        self.fatal = is_fatal
        self.retriable = not is_fatal
        self.code = None if cause is None else cause.code


class CommitOutcomeUnknown(ClientError):
    """The coordinator was asked to commit, and nobody has answered in time: the transaction may be committed yet."""

    retriable = True
    code = ErrorCode.REQUEST_TIMED_OUT
    hint = "Call `commit` of the same transaction again, which is safe, until it returns or raises another error."

    def __init__(self, transactional_id: str, timeout_ms: float | None = None) -> None:
        why = (
            "nobody waited for the answer" if timeout_ms is None else f"there was no answer within {timeout_ms:.0f} ms"
        )
        super().__init__(
            f"it is not known whether a transaction of {transactional_id} was committed: {why}, and the coordinator "
            "may still commit it"
        )
        self.transactional_id = transactional_id


class NoTransaction(WrongUse):
    """A transactional producer was to send outside of a transaction."""

    hint = "Use `async with producer.transaction() as txn`, and `txn.send`."

    def __init__(self, transactional_id: str) -> None:
        super().__init__(f"the producer of {transactional_id} sends nothing outside of a transaction")


class NoTransactionalId(WrongUse):
    """A producer without transactions was asked for one."""

    hint = "Make it with a transactional_id of its own."

    def __init__(self) -> None:
        super().__init__("this producer has no transactional_id, hence no transactions")


class TransactionOver(WrongUse):
    """A transaction was used after its end, or while it ends."""

    hint = "Begin another transaction with `producer.transaction()`."

    def __init__(self, transactional_id: str, state: str = "over") -> None:
        super().__init__(f"this transaction of {transactional_id} is {state}")


class TransactionOpen(WrongUse):
    """A transaction was to begin while another one of the producer has not ended."""

    hint = "A producer has one transaction at a time: end it, or use a producer with another transactional id."

    def __init__(self, transactional_id: str, state: str = "open") -> None:
        super().__init__(f"another transaction of {transactional_id} is {state}")


class NotTwoPhase(WrongUse):
    """A transaction was to be prepared that its coordinator would abort when its time is up."""

    hint = "Make the producer with transaction_two_phase_commit_enable=True, which the brokers have to allow (KIP-939)."

    def __init__(self, transactional_id: str) -> None:
        super().__init__(f"the producer of {transactional_id} has no transactions of two phases")
