"""The machine of one shard of `__transaction_state`: its transactional ids (Kafka's TransactionCoordinator). Pure.

A transaction ends in two phases. That it ends, and how, is in the log first; then every partition that it includes gets
a marker; then it is complete. Between the two it is decided, whoever crashes: the next coordinator finds it in its log
and sends the markers again.

    EndTxn ──> PREPARE_… in the log ──> the producer is answered
                        │
                        └─> `send(ending)` ──> markers in all partitions ──> `markers_written` ──> COMPLETE_… in the log

What the producer asks meanwhile waits for that, for a second at most, and is answered CONCURRENT_TRANSACTIONS then.
Kafka answers it at once, and clients wait for longer than it takes.

Every answer, a refusal too, depends on the records of its id: where the log refuses those of a successor, nobody has
been told that he is fenced.

Where a transaction's time is up, or another producer comes with its id, it is aborted by an epoch that fences its
producer. The epoch is in the record of the abort: if the log refuses that, nobody is fenced.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, Protocol, TypeVar

from odradek.broker.coordinator.machine import Now, Outbox, StoredRecord, Waiting
from odradek.broker.coordinator.timers import Timers
from odradek.broker.txn.endings import ended, ending_of, is_repeated, nothing_to_end
from odradek.broker.txn.held import Held, HeldRequest
from odradek.broker.txn.requests import AddPartitions, Ending, EndTransaction, InitProducerId, Kept, Verified, Verify
from odradek.broker.txn.stored import stored_record, tombstone, transaction_of
from odradek.broker.txn.sweep import LOOKED_AT_TOGETHER, Sweep
from odradek.broker.txn.transaction import (
    BUMPED_FOR_EACH_SINCE,
    WITHOUT_TIMEOUT_MS,
    ProducerIdentity,
    Transaction,
    TxnState,
    created,
    fenced,
)
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.stored.transaction_log import FLEXIBLE_SINCE

R = TypeVar("R")

HELD_MS: Final = 1_000
"""So long a request waits for the transaction before to be complete."""
OVERDUE_MS: Final = 10_000
"""After a load, a transaction whose time is up has so much more: its producer could not reach anybody."""
AGAIN_MS: Final = 500
"""After so long, what the machine does of itself and the log has refused is tried again."""


class TransactionOptions(Protocol):
    """Of the broker; read when they are needed."""

    @property
    def transaction_max_timeout_ms(self) -> int: ...
    @property
    def transaction_two_phase_commit_enable(self) -> bool: ...
    @property
    def transactional_id_expiration_ms(self) -> int: ...
    @property
    def stored_version(self) -> int:
        """In which values are written: all who may coordinate have to read it."""
        ...

    @property
    def transaction_remove_expired_transaction_cleanup_interval_ms(self) -> int: ...


class _NotCompleteError(Exception):
    """The transaction before is prepared: the request waits."""


class TransactionMachine:
    """Of one shard. `send` has the markers of an ending written, and calls no method at once."""

    __slots__ = ("_by_id", "_held", "_loaded", "_options", "_outbox", "_send", "_sweep", "_timers", "_written")

    def __init__(self, outbox: Outbox, options: TransactionOptions, send: Callable[[Ending], None]) -> None:
        self._outbox = outbox
        self._options = options
        self._send = send
        self._by_id: dict[str, Transaction] = {}
        self._timers: Timers[str] = Timers()
        """When something of an id is due: see `_set_timer`."""
        self._held = Held()
        self._written: set[str] = set()
        """Ids whose markers are written, while the log has refused that the transaction is complete."""
        self._loaded = Now(0, 0)
        """When this machine began."""
        self._sweep = Sweep()

    # -- questions ----------------------------------------------------------------------------------------------------

    @property
    def transactions(self) -> Iterable[tuple[str, Transaction]]:
        """All, by their ids."""
        return self._by_id.items()

    def describe(self, transactional_id: str, waiting: Waiting[Transaction], now: Now) -> None:
        """Answers KafkaError TRANSACTIONAL_ID_NOT_FOUND."""
        self._ask(transactional_id, waiting, partial(self._describe, transactional_id), now)

    def init_producer_id(self, request: InitProducerId, waiting: Waiting[ProducerIdentity], now: Now) -> None:
        """Aborts what is under way first.

        Answers KafkaError: INVALID_TRANSACTION_TIMEOUT, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS,
        TRANSACTIONAL_ID_AUTHORIZATION_FAILED.
        """
        self._ask(request.transactional_id, waiting, partial(self._init_producer_id, request), now)

    def keep_prepared(self, request: InitProducerId, waiting: Waiting[Kept], now: Now) -> None:
        """Leaves a transaction that is under way as it is, to be ended by who asks; its producer is fenced (KIP-939).

        Answers KafkaError: as `init_producer_id`, and UNSUPPORTED_VERSION.
        """
        self._ask(request.transactional_id, waiting, partial(self._keep_prepared, request), now)

    def add_partitions(self, request: AddPartitions, waiting: Waiting[None], now: Now) -> None:
        """All of them, or none. Answers KafkaError: as `end`."""
        self._ask(request.transactional_id, waiting, partial(self._add_partitions, request), now)

    def verify(self, request: Verify, waiting: Waiting[Verified], now: Now) -> None:
        """Each of them. Answers KafkaError: as `add_partitions`."""
        self._ask(request.transactional_id, waiting, partial(self._verify, request), now)

    def end(self, request: EndTransaction, waiting: Waiting[ProducerIdentity], now: Now) -> None:
        """Answers with what the producer goes on, when it is decided; or KafkaError: INVALID_PRODUCER_ID_MAPPING,
        PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, INVALID_TXN_STATE."""
        self._ask(request.transactional_id, waiting, partial(self._end, request), now)

    def _ask(
        self,
        transactional_id: str,
        waiting: Waiting[R],
        operation: Callable[[Now], R],
        now: Now,
        until_ms: int | None = None,
    ) -> None:
        """`until_ms`: how long it waits at most; None: it comes now."""
        try:
            answer: R | KafkaError = operation(now)
        except _NotCompleteError:
            until_ms = now.monotonic_ms + HELD_MS if until_ms is None else until_ms
            self._held.add(transactional_id, HeldRequest(operation, waiting, until_ms))
            self._set_timer(transactional_id, now)
            return
        except KafkaError as error:
            answer = error
        self._outbox.reply(transactional_id, waiting, answer)

    def _resume(self, transactional_id: str, now: Now) -> None:
        """What waited for the transaction to be complete goes on, in order."""
        for operation, waiting, until_ms in self._held.take(transactional_id):
            self._ask(transactional_id, waiting, operation, now, until_ms)

    # -- producers ----------------------------------------------------------------------------------------------------

    def _describe(self, transactional_id: str, now: Now) -> Transaction:
        del now
        found = self._by_id.get(transactional_id)
        if found is None:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, f"there is no transactional id {transactional_id!r}")
        return found

    def _init_producer_id(self, request: InitProducerId, now: Now) -> ProducerIdentity:
        timeout_ms = self._timeout_ms(request)
        transactional_id, expected = request.transactional_id, request.expected
        present = self._by_id.get(transactional_id)
        if present is None:
            new = created(request.new_producer_id, timeout_ms, now.unix_ms)
        elif present.state is TxnState.ONGOING or present.state.is_prepared:
            if expected is not None and not present.may_be(expected):
                raise fenced(f"it has {tuple(present.identity)}, not {tuple(expected)}")
            if present.state is TxnState.ONGOING:
                aborted = present.taken_over if expected is None else present.given_up
                self._put(transactional_id, aborted(now.unix_ms), now)
            raise _NotCompleteError
        else:
            new = present.initialized(expected, request.new_producer_id, timeout_ms, now.unix_ms)
        self._put(transactional_id, new, now)
        return new.identity

    def _keep_prepared(self, request: InitProducerId, now: Now) -> Kept:
        self._require_two_phase_commit()
        present = self._by_id.get(request.transactional_id)
        if present is None or present.state is not TxnState.ONGOING:
            return Kept(self._init_producer_id(request, now), None)
        if request.expected is not None and not present.is_of(request.expected):
            raise fenced(f"it has {tuple(present.identity)}, not {tuple(request.expected)}")
        if self._options.stored_version < FLEXIBLE_SINCE:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "a kept transaction needs transaction.version 1 or later")
        kept = present.kept(request.new_producer_id, self._timeout_ms(request), now.unix_ms)
        self._put(request.transactional_id, kept, now)
        return Kept(kept.identity, ProducerIdentity(present.producer_id, present.epoch))

    def _require_two_phase_commit(self) -> None:
        if not self._options.transaction_two_phase_commit_enable:
            raise KafkaError(
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "transaction.two.phase.commit.enable is false"
            )

    def _timeout_ms(self, request: InitProducerId) -> int:
        """Raises KafkaError: as `init_producer_id`."""
        if request.enable_two_phase_commit:
            self._require_two_phase_commit()
            return WITHOUT_TIMEOUT_MS
        timeout_max_ms = self._options.transaction_max_timeout_ms
        if not 0 < request.timeout_ms <= timeout_max_ms:
            raise KafkaError(
                ErrorCode.INVALID_TRANSACTION_TIMEOUT,
                f"a time-out of {request.timeout_ms} ms; transaction.max.timeout.ms is {timeout_max_ms}",
            )
        return request.timeout_ms

    def _add_partitions(self, request: AddPartitions, now: Now) -> None:
        present = self._of(request.transactional_id, request.producer)
        if present.state.is_prepared:
            raise _NotCompleteError
        _require_own(request.transactional_id, present)
        if present.state is not TxnState.ONGOING or not request.partitions <= present.partitions:
            new = present.including(request.partitions, request.version, now.unix_ms)
            self._put(request.transactional_id, new, now)

    def _verify(self, request: Verify, now: Now) -> Verified:
        del now
        present = self._of(request.transactional_id, request.producer)
        if present.state.is_prepared:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, f"{request.transactional_id!r} is {present.state.text}")
        _require_own(request.transactional_id, present)
        is_ongoing = present.state is TxnState.ONGOING
        return {
            each: ErrorCode.NONE if is_ongoing and each in present.partitions else ErrorCode.TRANSACTION_ABORTABLE
            for each in request.partitions
        }

    def _of(self, transactional_id: str, producer: ProducerIdentity) -> Transaction:
        """Raises KafkaError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED."""
        present = self._by_id.get(transactional_id)
        if present is None:
            raise _unknown(f"transactional id {transactional_id!r} is not known here, or has expired")
        identity = present.identity
        if identity.producer_id != producer.producer_id:
            raise _unknown(f"{transactional_id!r} has producer id {identity.producer_id}, not {producer.producer_id}")
        if not present.is_of(producer):
            raise fenced(f"the epoch is {identity.epoch}, not {producer.epoch}")
        return present

    # -- the end ------------------------------------------------------------------------------------------------------

    def _end(self, request: EndTransaction, now: Now) -> ProducerIdentity:
        present = self._by_id.get(request.transactional_id)
        if present is not None and is_repeated(present, request):
            return ended(present, request)
        present = self._of(request.transactional_id, request.producer)
        if present.state is not TxnState.ONGOING:
            if request.version < BUMPED_FOR_EACH_SINCE:
                identity = ended(present, request)
                if present.state.is_prepared:
                    raise _NotCompleteError
                return identity
            if present.state.is_prepared:
                raise _NotCompleteError
            if request.is_commit:
                raise nothing_to_end(present, request)
        prepared = present.prepared(
            is_commit=request.is_commit,
            version=request.version,
            next_producer_id=request.new_producer_id,
            now_ms=now.unix_ms,
        )
        self._put(request.transactional_id, prepared, now)
        return prepared.identity

    def markers_written(self, ending: Ending, now: Now) -> None:
        """All partitions have theirs, or are gone. Does nothing for an ending before."""
        present = self._by_id.get(ending.transactional_id)
        if present is not None and present.state.is_prepared and ending_of(ending.transactional_id, present) == ending:
            self._complete(ending.transactional_id, present, now)

    def _complete(self, transactional_id: str, prepared: Transaction, now: Now) -> None:
        self._put(transactional_id, prepared.completed(now.unix_ms), now)
        self._resume(transactional_id, now)
        self._set_timer(transactional_id, now)

    # -- changes ------------------------------------------------------------------------------------------------------

    def _put(self, transactional_id: str, new: Transaction, now: Now) -> None:
        former = self._by_id.get(transactional_id)

        def undo() -> None:
            if former is None:
                self._by_id.pop(transactional_id, None)
            else:
                self._by_id[transactional_id] = former
                if former.state.is_prepared:
                    self._written.add(transactional_id)
            self._set_timer(transactional_id, now, was_refused=True)

        self._by_id[transactional_id] = new
        self._written.discard(transactional_id)
        self._outbox.append(transactional_id, [self._record(transactional_id, new)], undo)
        if new.state.is_prepared:
            self._announce(transactional_id, new)
        self._set_timer(transactional_id, now)

    def _record(self, transactional_id: str, transaction: Transaction) -> StoredRecord:
        """A transaction that was begun under version 2 ends under it, whichever is finalized meanwhile."""
        is_flexible = transaction.needs_flexible
        version = max(self._options.stored_version, FLEXIBLE_SINCE if is_flexible else 0)
        return stored_record(transactional_id, transaction, version)

    def _announce(self, transactional_id: str, prepared: Transaction) -> None:
        self._outbox.when_committed(transactional_id, partial(self._send, ending_of(transactional_id, prepared)))

    # -- time ---------------------------------------------------------------------------------------------------------

    def _set_timer(self, transactional_id: str, now: Now, *, was_refused: bool = False) -> None:
        """For when the first request has waited for long enough, and for what is due of the transaction itself."""
        due_ms = self._due_ms(transactional_id, now)
        if due_ms is not None and due_ms <= now.monotonic_ms and was_refused:
            due_ms = now.monotonic_ms + AGAIN_MS
        deadlines = [each for each in (self._held.deadline_ms(transactional_id), due_ms) if each is not None]
        if deadlines:
            self._timers.set(transactional_id, min(deadlines))
        else:
            self._timers.cancel(transactional_id)

    def _due_ms(self, transactional_id: str, now: Now) -> int | None:
        """When it is aborted, or becomes complete, without being asked."""
        if transactional_id in self._written:
            return now.monotonic_ms
        present = self._by_id.get(transactional_id)
        if present is None or present.state is not TxnState.ONGOING or present.is_two_phase:
            return None
        end_ms = present.started_ms + present.timeout_ms
        due_ms = now.monotonic_ms + max(0, end_ms - now.unix_ms)
        return due_ms if end_ms > self._loaded.unix_ms else max(due_ms, self._loaded.monotonic_ms + OVERDUE_MS)

    @property
    def next_deadline_ms(self) -> int | None:
        deadlines = [each for each in (self._timers.next_deadline_ms, self._sweep.next_deadline_ms) if each is not None]
        return min(deadlines, default=None)

    def tick(self, now: Now) -> None:
        for _ in range(LOOKED_AT_TOGETHER):
            transactional_id = self._timers.pop_due(now.monotonic_ms)
            if transactional_id is None:
                break
            self._do_what_is_due(transactional_id, now)
            self._set_timer(transactional_id, now)
        for transactional_id in self._sweep.step(self._by_id, now.monotonic_ms, self._cleanup_interval_ms):
            self._expire(transactional_id, now)

    def clock_moved(self, now: Now) -> None:
        """The time of day is another one: ids that have expired by it go with the next `tick`."""
        self._sweep.start(now.monotonic_ms, 0)

    @property
    def _cleanup_interval_ms(self) -> int:
        return self._options.transaction_remove_expired_transaction_cleanup_interval_ms

    def _do_what_is_due(self, transactional_id: str, now: Now) -> None:
        due_ms = self._due_ms(transactional_id, now)
        if due_ms is not None and due_ms <= now.monotonic_ms:
            present = self._by_id[transactional_id]
            if present.state is TxnState.ONGOING:
                self._put(transactional_id, present.timed_out(now.unix_ms), now)
            else:
                self._complete(transactional_id, present, now)
        for late in self._held.take_late(transactional_id, now.monotonic_ms):
            error = KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, f"{transactional_id!r}: the one before is not over")
            self._outbox.reply(None, late.waiting, error)

    def _expire(self, transactional_id: str, now: Now) -> None:
        present = self._by_id.get(transactional_id)
        if present is None or present.state is TxnState.ONGOING or present.state.is_prepared:
            return
        if now.unix_ms - present.updated_ms < self._options.transactional_id_expiration_ms:
            return
        del self._by_id[transactional_id]

        def undo() -> None:
            self._by_id.setdefault(transactional_id, present)

        self._outbox.append(transactional_id, [tombstone(transactional_id)], undo)

    # -- the log ------------------------------------------------------------------------------------------------------

    def replay(self, key: bytes, value: bytes | None, producer_id: int) -> str | None:
        """One record of the log, in its order. Returns whose it is; None for a type that is not known here. Raises
        MalformedMessage."""
        del producer_id  # no transaction writes here
        found = transaction_of(key, value)
        if found is None:
            return None
        transactional_id, transaction = found
        if transaction is None:
            self._by_id.pop(transactional_id, None)
        else:
            self._by_id[transactional_id] = transaction
        return transactional_id

    def replay_marker(self, producer_id: int, *, is_commit: bool) -> Sequence[str]:
        """Nobody writes one here."""
        del producer_id, is_commit
        return ()

    def loaded(self, now: Now) -> None:
        """What is decided is told to all partitions, again for those that know it; time-outs count from the records."""
        self._loaded = now
        for transactional_id, transaction in self._by_id.items():
            if transaction.state.is_prepared:
                self._announce(transactional_id, transaction)
            self._set_timer(transactional_id, now)
        self._sweep.start(now.monotonic_ms, self._cleanup_interval_ms)


def _unknown(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, why)


def _require_own(transactional_id: str, present: Transaction) -> None:
    """Its batches would stand under another epoch than its marker. Raises KafkaError INVALID_TXN_STATE."""
    if present.is_kept:
        raise KafkaError(
            ErrorCode.INVALID_TXN_STATE, f"{transactional_id!r} has kept a transaction, and has to end it first"
        )
