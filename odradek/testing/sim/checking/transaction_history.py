"""What transactional clients did, and what they were told: plain records of a history (history.py).

    Sent(at_ms=10.0, client="t1", producer="t1/1", value=7, topic="steps", …)
    InTransaction(at_ms=10.0, transaction="t1/1.4", value=7)                    and it belongs to this transaction
    Ending(at_ms=12.0, transaction="t1/1.4", wanted="commit")                   the client asks for it
    Ended(at_ms=13.0, transaction="t1/1.4", outcome="committed")

Rules:
- A transaction is one of one life of one producer, and has a name of its own.
- No `Acknowledged` follows the `Sent` of such a record: what its producer was told of it is less than its transaction.
- `Ended` is written where the client says it for certain. None follows where it does not know, or was killed.
- Readers of topics with transactions have `read_committed`.
"""

from dataclasses import dataclass
from typing import Final, Literal

NO_SOURCE: Final = 0


@dataclass(frozen=True, slots=True)
class InTransaction:
    """A value, which is sent right before, belongs to a transaction."""

    at_ms: float
    transaction: str
    value: int
    source: int = NO_SOURCE
    """The value whose copy it is: its offset is committed with the same transaction."""


@dataclass(frozen=True, slots=True)
class Ending:
    """A program asks its client to commit, or to abort. It may ask to commit more than once."""

    at_ms: float
    transaction: str
    wanted: Literal["commit", "abort"]


@dataclass(frozen=True, slots=True)
class Ended:
    """The client says what became of a transaction."""

    at_ms: float
    transaction: str
    outcome: Literal["committed", "aborted"]


TransactionRecord = InTransaction | Ending | Ended
