"""The states of a transactional producer. Pure.

(Source: TransactionManager.java, `State.isTransitionValid`. INITIALIZING is UNINITIALIZED here: what is being asked for
is in the machine, not in the state.)
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final

__all__ = ["MOVES", "State"]


class State(Enum):
    """Where the producer stands."""

    UNINITIALIZED = "uninitialized"
    """There is no producer id, or its epoch is used up by an abort (KIP-360): InitProducerId is asked.
    → READY by the answer; → FATAL_ERROR when it is refused."""
    READY = "ready"
    """There is an id with an epoch, and no transaction. → IN_TRANSACTION by the program."""
    IN_TRANSACTION = "in transaction"
    """Records and offsets go out; with transaction version 1 their partitions and groups are named to the coordinator
    before. → COMMITTING once everything is acknowledged; → ABORTING by the program; → ABORTABLE_ERROR; → PREPARED."""
    PREPARED = "prepared"
    """Everything is acknowledged, and somebody else ends the transaction (KIP-939). The producer can only be closed."""
    COMMITTING = "committing"
    """EndTxn is asked until it is answered. → READY; → ABORTABLE_ERROR where the coordinator wants an abort."""
    ABORTING = "aborting"
    """What was not sent is given up, what was is waited for, then EndTxn is asked until it is answered.
    → READY; → UNINITIALIZED where the producer needs a new epoch."""
    ABORTABLE_ERROR = "abortable error"
    """The transaction can only be aborted. → ABORTING by the program."""
    FATAL_ERROR = "fatal error"
    """The producer can only be closed."""


_FATAL: Final = State.FATAL_ERROR
MOVES: Final[Mapping[State, frozenset[State]]] = {
    State.UNINITIALIZED: frozenset((State.READY, _FATAL)),
    State.READY: frozenset((State.IN_TRANSACTION, _FATAL)),
    State.IN_TRANSACTION: frozenset((State.COMMITTING, State.ABORTING, State.ABORTABLE_ERROR, State.PREPARED, _FATAL)),
    State.PREPARED: frozenset((_FATAL,)),
    State.COMMITTING: frozenset((State.READY, State.ABORTABLE_ERROR, _FATAL)),
    State.ABORTING: frozenset((State.READY, State.UNINITIALIZED, _FATAL)),
    State.ABORTABLE_ERROR: frozenset((State.ABORTING, _FATAL)),
    State.FATAL_ERROR: frozenset(),
}
