"""`TransactionMachine`: the transactions of one producer, as a state machine. Pure.

    machine.begin(uses_v2)  →  may_send(key) …, add_offsets(what) …  →  commit()  |  prepare()
                           or abort(), then landed(needs_epoch)
    machine.due_ms                             when `next_request` has something; infinite: nothing is to be asked
    machine.next_request(now_ms)               what to ask; one request at a time, until it is
    machine.answered(request, answer, now_ms)  answered
    machine.delivery_failed(error)             a record of the transaction was not acknowledged

Who drives it sends what it asks for, and waits for states. `commit` is for when everything sent has been acknowledged,
`landed` says that nothing of an aborted transaction is on the wire any more: what arrived after the marker would begin
a transaction that nobody ends.

With transaction version 2 (KIP-890) the first Produce to a partition adds it, TxnOffsetCommit its group, and EndTxn
brings the epoch of the next transaction. Before, partitions and groups are named to the coordinator first, and after an
abort that left a sequence with a gap the producer asks for another epoch (KIP-360).

What passes is asked again after a backoff, for as long as the driver goes on. (Source: TransactionManager.java.)
"""

from collections import deque
from collections.abc import Callable
from math import inf
from typing import Final

from odradek.client.errors.base import ClientError
from odradek.client.errors.client_errors import broker_error
from odradek.client.errors.transaction_errors import TransactionFailed
from odradek.client.network.backoff import Backoff
from odradek.client.producer.idempotence.idempotence import Key
from odradek.client.producer.idempotence.sequences import NOBODY, Identity
from odradek.client.producer.transactions.reactions import Meaning, meaning_of_all
from odradek.client.producer.transactions.requests import (
    AddOffsets,
    AddPartitions,
    Answer,
    Codes,
    CommitOffsets,
    Coordinated,
    CoordinatorFound,
    End,
    FindCoordinator,
    Given,
    Init,
    KeyType,
    NoAnswer,
    OffsetsOfGroup,
    Request,
)
from odradek.client.producer.transactions.states import MOVES, State
from odradek.protocol.errors import ErrorCode

__all__ = ["TransactionMachine"]

CONCURRENT_FIRST_MS: Final = 20.0
"""The first wait while the markers of the last transaction are written, which takes about so long."""


class TransactionMachine:
    """See the module. `backoff`: between tries; `random` gives numbers from 0 up to 1."""

    def __init__(
        self, transactional_id: str, backoff: Backoff, backoff_max_ms: float, random: Callable[[], float]
    ) -> None:
        self.transactional_id = transactional_id
        self.state = State.UNINITIALIZED
        self.identity = NOBODY
        self.uses_v2 = False
        """Of the transaction, or of the last one."""
        self.error: ClientError | None = None
        """Why the transaction can only be aborted, or the producer only be closed."""
        self.was_committed = False
        """Whether the last transaction that has ended was."""
        self.end_was_asked = False
        """The coordinator may have decided."""
        self.last_error: ClientError | None = None
        """What passes, it is hoped: why something was asked again last."""
        self.has_landed = False
        """Nothing of the transaction that is being aborted is on the wire."""
        self.on_news: Callable[[], None] = _nothing
        """Called when there is something to ask that no call of the driver has brought."""
        self._me: Final = Coordinated(KeyType.TRANSACTION, transactional_id)
        self._backoff = backoff
        self._concurrent_backoff = Backoff(CONCURRENT_FIRST_MS, max(CONCURRENT_FIRST_MS, backoff_max_ms), random)
        self._coordinators: dict[Coordinated, int] = {}
        self._asked: Request | None = None
        self._failures = 0
        self._not_before_ms = -inf
        self._end_was_sent = False
        self._needs_epoch = False
        self._forget_transaction()

    def _forget_transaction(self) -> None:
        self._new: set[Key] = set()  # partitions that the coordinator has to be told of
        self._added: set[Key] = set()
        self._groups: set[str] = set()
        self._offsets: deque[OffsetsOfGroup] = deque()
        self._may_have_begun = False  # at the coordinator
        self._has_begun = False

    # ------------------------------------------------------------------------------------------------- the program
    @property
    def coordinator(self) -> int | None:
        return self._coordinators.get(self._me)

    @property
    def fatal_error(self) -> ClientError | None:
        return self.error if self.state is State.FATAL_ERROR else None

    @property
    def refusal(self) -> ClientError | None:
        """By this error everything ends that is not on the wire; None: it may be sent."""
        if self.state in (State.ABORTABLE_ERROR, State.ABORTING):
            return TransactionFailed(self.transactional_id, self.error)
        return None

    def begin(self, *, uses_v2: bool) -> None:
        """A transaction begins."""
        self._move(State.IN_TRANSACTION)
        self.uses_v2 = uses_v2
        self.error = None
        self.was_committed = False
        self.end_was_asked = self._end_was_sent = False
        self.has_landed = False
        self._forget_transaction()

    def may_send(self, key: Key) -> bool:
        """Whether records may go to this partition now, which is to be done then.

        Where the coordinator has to know of it before, that is asked, and `answered` brings the news.
        """
        if self.state is not State.IN_TRANSACTION:
            return False
        if self.uses_v2:
            self._may_have_begun = self._has_begun = True
            return True
        if key in self._added:
            return True
        if key not in self._new:
            self._new.add(key)
            self.on_news()
        return False

    def add_offsets(self, what: OffsetsOfGroup) -> None:
        assert self.state is State.IN_TRANSACTION
        self._offsets.append(what)

    @property
    def is_busy(self) -> bool:
        """Whether partitions are to be named, or offsets to be sent."""
        return bool(self._new or self._offsets)

    def is_pending(self, what: OffsetsOfGroup) -> bool:
        """Whether these offsets are to be sent, or have not been answered."""
        return what in self._offsets

    def commit(self) -> None:
        """Everything that was sent has been acknowledged."""
        assert not self._new and not self._offsets
        self._move(State.COMMITTING)
        if not self._has_begun:
            self._end(was_committed=True, identity=NOBODY)

    def prepare(self) -> None:
        """Everything that was sent has been acknowledged, and somebody else ends it. Where there is nothing to end, the
        transaction is committed."""
        if self._has_begun:
            self._move(State.PREPARED)
        else:
            self.commit()

    def abort(self) -> None:
        """Nothing more is sent. `landed` lets it go on."""
        self._move(State.ABORTING)
        self._drop()

    def landed(self, *, needs_epoch: bool) -> None:
        """Nothing is on the wire any more. `needs_epoch`: a sequence has, or may have, a gap."""
        assert self.state is State.ABORTING
        self.has_landed = True
        self._needs_epoch = needs_epoch and not self.uses_v2
        if not self._may_have_begun and self._asked is None:
            self._end(was_committed=False, identity=NOBODY)

    def delivery_failed(self, error: ClientError) -> None:
        """A record of the transaction was not acknowledged."""
        if error.fatal:
            self._fail_for_good(error)
        else:
            self.fail(error)

    def fail(self, error: ClientError) -> None:
        """The transaction, if there is one that does not end already, can only be aborted."""
        if self.state in (State.IN_TRANSACTION, State.COMMITTING):
            self._move(State.ABORTABLE_ERROR)
            self.error = error
            self._drop()

    def _drop(self) -> None:
        self._new.clear()
        self._offsets.clear()

    # -------------------------------------------------------------------------------------------------- the driver
    @property
    def due_ms(self) -> float:
        """When `next_request` has something; infinite: something else must happen before."""
        return inf if self._asked is not None or self._wanted() is None else self._not_before_ms

    def next_request(self, now_ms: float) -> Request | None:
        """What to ask now; it has to be answered, by `NoAnswer` if need be."""
        if self.due_ms > now_ms:
            return None
        self._asked = request = self._wanted()
        match request:
            case AddPartitions() | AddOffsets() | CommitOffsets():
                self._may_have_begun = True
            case End():
                self.end_was_asked = True
            case _:
                pass
        return request

    def _wanted(self) -> Request | None:
        match self.state:
            case State.UNINITIALIZED:
                return self._to_coordinator(lambda node_id: Init(node_id, self.identity))
            case State.IN_TRANSACTION:
                return self._wanted_in_transaction()
            case State.COMMITTING:
                return self._to_coordinator(lambda node_id: End(node_id, self.identity, True, self.uses_v2))
            case State.ABORTING if self.has_landed:
                return self._to_coordinator(lambda node_id: End(node_id, self.identity, False, self.uses_v2))
            case _:
                return None

    def _wanted_in_transaction(self) -> Request | None:
        if self._new:
            news = frozenset(self._new)
            return self._to_coordinator(lambda node_id: AddPartitions(node_id, self.identity, news))
        if not self._offsets:
            return None
        what = self._offsets[0]
        group_id = what.group.group_id
        if not self.uses_v2 and group_id not in self._groups:
            return self._to_coordinator(lambda node_id: AddOffsets(node_id, self.identity, group_id))
        of = Coordinated(KeyType.GROUP, group_id)
        node_id = self._coordinators.get(of)
        if node_id is None:
            return FindCoordinator(of)
        return CommitOffsets(node_id, self.identity, what, self.uses_v2)

    def _to_coordinator(self, make: Callable[[int], Request]) -> Request:
        node_id = self.coordinator
        return FindCoordinator(self._me) if node_id is None else make(node_id)

    # ------------------------------------------------------------------------------------------------- the answers
    def answered(self, request: Request, answer: Answer, now_ms: float) -> None:
        """What became of the request."""
        assert request is self._asked
        self._asked = None
        if isinstance(request, End) and not (isinstance(answer, NoAnswer) and not answer.was_sent):
            self._end_was_sent = True
        if self.state is State.FATAL_ERROR:
            return
        match answer:
            case NoAnswer():
                self._unanswered(request, answer, now_ms)
            case Codes():
                self._refused_or_done(request, answer, now_ms)
            case CoordinatorFound(node_id):
                assert isinstance(request, FindCoordinator)
                self._coordinators[request.of] = node_id
            case Given(identity):
                self._failures = 0
                if isinstance(request, Init):
                    self.identity = identity
                    self._move(State.READY)
                else:
                    assert isinstance(request, End)
                    self._end(was_committed=request.is_commit, identity=identity)
        if self.state is State.ABORTING and self.has_landed and not self._may_have_begun:
            self._end(was_committed=False, identity=NOBODY)

    def _unanswered(self, request: Request, answer: NoAnswer, now_ms: float) -> None:
        if isinstance(request, End) and not answer.was_sent:
            self.end_was_asked = self._end_was_sent
        if not answer.error.retriable:
            self._fail_for_good(answer.error)
            return
        self.last_error = answer.error
        self._coordinators.pop(self._of(request), None)
        self._wait(self._backoff, now_ms)

    def _refused_or_done(self, request: Request, answer: Codes, now_ms: float) -> None:
        meaning, code = meaning_of_all(request, answer.codes.values())
        if meaning is Meaning.DONE:
            self._failures = 0
            self._done(request)
            return
        if code is ErrorCode.INVALID_TXN_STATE and isinstance(request, End) and self._is_nothing_to_abort(request):
            self._end(was_committed=False, identity=NOBODY)
            return
        if meaning is Meaning.FENCED:
            code = ErrorCode.PRODUCER_FENCED
        error = broker_error(code, answer.message, _what(request, answer, code, self.transactional_id))
        self.last_error = error
        match meaning:
            case Meaning.AGAIN:
                is_concurrent = code is ErrorCode.CONCURRENT_TRANSACTIONS
                self._wait(self._concurrent_backoff if is_concurrent else self._backoff, now_ms)
            case Meaning.ELSEWHERE:
                self._coordinators.pop(self._of(request), None)
                self._wait(self._backoff, now_ms)
            case Meaning.ABORT if self._is_abortable(request):
                self.fail(error)
            case _:
                self._fail_for_good(error)

    def _done(self, request: Request) -> None:
        match request:
            case AddPartitions():
                self._has_begun = True
                self._added |= request.partitions
                self._new -= request.partitions
            case AddOffsets():
                self._has_begun = True
                self._groups.add(request.group_id)
            case CommitOffsets():
                self._has_begun = True
                if request.what in self._offsets:
                    self._offsets.remove(request.what)
            case _:
                raise AssertionError(f"{request} is answered by more than codes")

    def _is_abortable(self, request: Request) -> bool:
        """Whether the error of this request can be met by an abort: there is a transaction, and the abort is not what
        it is about."""
        if self.state is State.ABORTING:
            return not isinstance(request, End) and self._of(request) != self._me
        return self.state is not State.UNINITIALIZED

    def _is_nothing_to_abort(self, request: End) -> bool:
        """Whether the coordinator may have no transaction of ours: what was to begin it was never confirmed."""
        return not request.is_commit and not self._has_begun

    def _of(self, request: Request) -> Coordinated:
        """Whose coordinator was asked, or asked for."""
        match request:
            case FindCoordinator():
                return request.of
            case CommitOffsets():
                return Coordinated(KeyType.GROUP, request.what.group.group_id)
            case _:
                return self._me

    def _end(self, *, was_committed: bool, identity: Identity) -> None:
        self.was_committed = was_committed
        if identity != NOBODY:
            self.identity = identity
        needs_epoch, self._needs_epoch = self._needs_epoch, False
        self._forget_transaction()
        self._move(State.UNINITIALIZED if needs_epoch and not was_committed else State.READY)

    def _wait(self, backoff: Backoff, now_ms: float) -> None:
        self._not_before_ms = now_ms + backoff.after_ms(self._failures)
        self._failures += 1

    def _fail_for_good(self, error: ClientError) -> None:
        if self.state is State.FATAL_ERROR:
            return
        self._move(State.FATAL_ERROR)
        self._drop()
        self.error = error if error.fatal else TransactionFailed(self.transactional_id, error, is_fatal=True)

    def _move(self, to: State) -> None:
        assert to in MOVES[self.state], f"{self.state} → {to}"
        self.state = to


def _what(request: Request, answer: Codes, code: ErrorCode, transactional_id: str) -> str:
    about = next((what for what, each in answer.codes.items() if each is code and what), "")
    of = f" of {about}" if about else ""
    return f"{_API[type(request)]}{of} for {transactional_id}"


_API: Final = {
    FindCoordinator: "FindCoordinator",
    Init: "InitProducerId",
    AddPartitions: "AddPartitionsToTxn",
    AddOffsets: "AddOffsetsToTxn",
    CommitOffsets: "TxnOffsetCommit",
    End: "EndTxn",
}


def _nothing() -> None: ...
