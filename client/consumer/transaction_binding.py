"""`TransactionBinding`: ties a consumer to the transactions of one producer, which commit for it, and nobody else.

What is handed out of a partition is in work until a transaction with its offset is committed. So nothing else moves
what the group has committed, a partition is given up once the transaction with its records has ended, and after an
abort all of them are read again from what the group has committed.

While it is not known whether a transaction was committed, nothing is handed out: to go on might leave its records out,
and to go back might double them. (Source: KIP-447; StreamThread.java goes back in the same way.)
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final

from odradek.client.consumer.core import ConsumerCore
from odradek.client.consumer.errors import TakenAway
from odradek.client.consumer.group.group_session import GroupSession
from odradek.client.consumer.group.offset_messages import OUTDATED
from odradek.client.consumer.group.offsets import offsets_behind
from odradek.client.consumer.membership.membership import Identity
from odradek.client.errors.client_errors import ClientError, RequestTimedOut
from odradek.client.offset_commit import Committed, OffsetsToCommit, TransactionOwner
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode

__all__ = ["TransactionBinding"]


class State(Enum):
    """Of the binding."""

    RESTING = "no transaction"
    """→ OPEN by the program."""
    OPEN = "in a transaction"
    """→ RESTING by its end; → UNSETTLED where a commit was not answered."""
    UNSETTLED = "after a commit without an answer"
    """Nothing is handed out. → RESTING by the answer."""
    RELEASED = "bound to another producer"
    """It has no effect any more."""


MOVES: Final[Mapping[State, frozenset[State]]] = {
    State.RESTING: frozenset((State.OPEN, State.RELEASED)),
    State.OPEN: frozenset((State.RESTING, State.UNSETTLED, State.RELEASED)),
    State.UNSETTLED: frozenset((State.RESTING, State.RELEASED)),
    State.RELEASED: frozenset(),
}


class TransactionBinding:
    """See the module. It is a `BoundConsumer`. `check` raises where the consumer may not be used."""

    def __init__(
        self, owner: TransactionOwner, session: GroupSession, core: ConsumerCore, check: Callable[[], None]
    ) -> None:
        self.owner = owner
        self.state = State.RESTING
        self._session = session
        self._core = core
        self._check = check
        self._fail: Callable[[ClientError], None] = _nothing
        self._told_as: Identity | None = None
        """As what the offsets of the open transaction are committed, if that was asked for."""
        core.bind()
        session.bind(self._look)

    def release(self) -> None:
        """Another producer has the consumer from now on, which goes back to what its group has committed."""
        self._move(State.RELEASED)
        self._fail = _nothing
        self._go_back()

    # ------------------------------------------------------------------------------------------------ a BoundConsumer
    @property
    def group_id(self) -> str:
        return self._session.identity.group_id

    async def ready(self, timeout_ms: float) -> None:
        self._check()
        if not await self._session.own_commits_ended(timeout_ms):
            raise RequestTimedOut("OffsetCommit", f"the coordinator of {self.group_id}", timeout_ms)
        self._check()

    def opened(self, fail: Callable[[ClientError], None]) -> None:
        self._move(State.OPEN)
        self._fail = fail
        self._told_as = None
        self._look()

    def offsets_for_transaction(self, last: object | None = None) -> OffsetsToCommit:
        """Raises ClientError where records in work may be another member's by now: it can only be aborted."""
        self._check()
        found = self._session.offsets_to_commit(None if last is None else offsets_behind(last))
        self._told_as = self._session.identity
        return found

    def committed_by_transaction(self, offsets: Mapping[TopicPartition, Committed]) -> None:
        if self.state is not State.RELEASED:
            self._session.committed_elsewhere({partition: each.offset for partition, each in offsets.items()})

    def committed(self) -> None:
        if self.state in (State.OPEN, State.UNSETTLED):
            self._move(State.RESTING)
            self._fail = _nothing
            self._core.transaction_ended()

    def aborted(self, cause: ClientError | None) -> None:
        if self.state not in (State.OPEN, State.UNSETTLED):
            return
        self._move(State.RESTING)
        self._fail = _nothing
        if cause is not None and self._told_as is not None:
            self._tell_membership(self._told_as, cause.code)
        self._go_back()

    def unsettled(self, error: ClientError) -> None:
        if self.state in (State.OPEN, State.UNSETTLED):
            self._move(State.UNSETTLED)
            self._core.block(error)

    # --------------------------------------------------------------------------------------------------------- within
    def _tell_membership(self, identity: Identity, code: ErrorCode | None) -> None:
        """Offsets that were to be committed as this were refused: so it need not wait for a heartbeat to hear of it."""
        if code is ErrorCode.ILLEGAL_GENERATION and self._session.has_epoch:
            code = ErrorCode.STALE_MEMBER_EPOCH  # TxnOffsetCommit has no other word for it
        if code is not None and code in OUTDATED:
            self._session.refused(identity, code)

    def _go_back(self) -> None:
        self._core.transaction_ended()
        self._session.go_back()

    def _look(self) -> None:
        """Partitions were taken away, with records in work perhaps."""
        if self.state is State.OPEN and self._core.taken_away:
            self._fail(TakenAway(self._core.taken_away))

    def _move(self, to: State) -> None:
        if to is not self.state:
            assert to in MOVES[self.state], (self.state, to)
            self.state = to


def _nothing(error: ClientError) -> None:
    """There is no transaction to fail."""
