"""An outbox that keeps what a machine of transactions gives it; a world around the machine: a clock, a log, markers.

world = World()
producer = world.init("a")              the answer, committed
world.outbox.is_manual = True           from here on nothing is appended, or committed, unless it is said so
world.outbox.append_all(refused={0})    the log refuses the first batch of the turn
world.outbox.commit()                   the high watermark passes what is in the log
world.reload()                          another machine loads the log
"""

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from odradek.broker.coordinator.machine import Now, StoredRecord, TransactionBatch, Waiting
from odradek.broker.coordinator.turn import Part, Turn
from odradek.broker.txn.machine import TransactionMachine
from odradek.broker.txn.requests import AddPartitions, Ending, EndTransaction, InitProducerId, Kept, Verified, Verify
from odradek.broker.txn.stored import stored_record, transaction_of
from odradek.broker.txn.transaction import ProducerIdentity, TopicPartition, Transaction
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.group.kept_outbox import Asked

R = TypeVar("R")

START_MS = 1_700_000_000_000
DAY_MS = 24 * 3600 * 1000
ORDERS: TopicPartition = ("orders", 0)
BILLS: TopicPartition = ("bills", 1)
NO_PRODUCER = -1


def entity_of(record: StoredRecord) -> str:
    found = transaction_of(*record)
    assert found is not None
    return found[0]


class KeptOutbox:
    """A shard's, without a shard: a turn, a log, and what waits for the log to be committed."""

    def __init__(self, log: Iterable[StoredRecord] = (), committed: int = 0) -> None:
        self.log = list(log)
        self.committed = committed
        """So many records of the log are."""
        self.is_manual = False
        self.refuses = False
        """The log takes nothing."""
        self._turn = Turn()
        self._later: list[tuple[int, Callable[[], None]]] = []

    def append(
        self,
        entity_id: str,
        records: Sequence[StoredRecord],
        undo: Callable[[], None],
        transaction: TransactionBatch | None = None,
    ) -> None:
        assert records and transaction is None
        assert all(entity_of(record) == entity_id for record in records)
        self._turn.append(entity_id, records, undo, transaction)

    def also_of(self, entity_id: str) -> None:
        raise AssertionError(f"{entity_id}: a record is of one transactional id")

    def reply(self, entity_id: str | None, waiting: Waiting[R], answer: R | KafkaError) -> None:
        if entity_id is None:
            _answer(waiting, answer)
        elif not self._turn.reply(entity_id, waiting, answer):
            self._when(self._newest(entity_id), lambda: _answer(waiting, answer))

    def when_committed(self, entity_id: str, then: Callable[[], None]) -> None:
        if not self._turn.when_committed(entity_id, then):
            self._when(self._newest(entity_id), then)

    def _newest(self, entity_id: str) -> int:
        return max((end for end, record in enumerate(self.log, 1) if entity_of(record) == entity_id), default=0)

    def _when(self, end: int, then: Callable[[], None]) -> None:
        if end <= self.committed:
            then()
        else:
            self._later.append((end, then))

    @property
    def is_settled(self) -> bool:
        """The log has all that the machine has said."""
        return not self._turn

    # -- what the log does --------------------------------------------------------------------------------------------

    def append_all(self, *, refused: AbstractSet[int] = frozenset(), size_bytes_max: int = 1 << 20) -> int:
        """What the turn brought. `refused`: the batches that the log does not take. Returns how many there were."""
        turn, self._turn = self._turn, Turn()
        refusal = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "refused")
        failed: list[Part] = []
        count = 0
        for part in turn.parts(size_bytes_max):
            if part.left_by is not None:
                failed.append(part)
                continue
            if self.refuses or count in refused:
                turn.refuse(part, refusal)
                failed.append(part)
            else:
                self._take(part)
            count += 1
        for part in reversed(failed):
            for reply in part.replies:
                _answer(reply.waiting, refusal)
            for undo in reversed(part.undos):
                undo()
        return count

    def _take(self, part: Part) -> None:
        self.log += part.records
        end = len(self.log)
        for reply in part.replies:
            self._when(end, partial(_answer, reply.waiting, reply.answer))
        for then in part.thens:
            self._when(end, then)

    def commit(self, count: int | None = None) -> None:
        """The first so many of those in the log that are not committed yet; None: all."""
        self.committed = len(self.log) if count is None else min(self.committed + count, len(self.log))
        ready = [then for end, then in self._later if end <= self.committed]
        self._later = [(end, then) for end, then in self._later if end > self.committed]
        for then in ready:
            then()

    def turn_ends(self) -> None:
        """Unless that is for the test to say."""
        if not self.is_manual:
            self.append_all()
            self.commit()


def _answer(waiting: Waiting[Any], answer: Any) -> None:
    assert isinstance(waiting, Asked)
    asked: Asked[Any] = waiting
    asked.answers.append(answer)


@dataclass
class Options:
    transaction_max_timeout_ms: int = 900_000
    transaction_two_phase_commit_enable: bool = False
    transactional_id_expiration_ms: int = 7 * DAY_MS
    stored_version: int = 1
    transaction_remove_expired_transaction_cleanup_interval_ms: int = 3_600_000


class World:
    """One machine, and what it is told. `version` is that of its producers' transactions."""

    def __init__(self, version: int = 2) -> None:
        self.version = version
        self.options = Options()
        self.outbox = KeptOutbox()
        self.passed_ms = 0
        self.clock_ms = START_MS
        self.sent: list[Ending] = []
        """By the machine that is there now: whose markers have to be written."""
        self.ids = 1_000
        """The next producer id."""
        self.machine = self.new_machine()
        self.machine.loaded(self.now)

    def new_machine(self) -> TransactionMachine:
        self.sent = []
        return TransactionMachine(self.outbox, self.options, self.sent.append)

    @property
    def now(self) -> Now:
        return Now(self.passed_ms, self.clock_ms + self.passed_ms)

    def of(self, transactional_id: str) -> Transaction:
        return dict(self.machine.transactions)[transactional_id]

    # -- the log ------------------------------------------------------------------------------------------------------

    def reload(self, *, log: Iterable[StoredRecord] | None = None) -> None:
        """By another machine; `log`: another one than what is there."""
        former = self.outbox
        kept = former.log if log is None else list(log)
        self.outbox = KeptOutbox(kept, min(former.committed, len(kept)))
        self.outbox.is_manual = former.is_manual
        self.machine = self.new_machine()
        for key, value in self.outbox.log:
            assert self.machine.replay(key, value, NO_PRODUCER) is not None
        self.machine.loaded(self.now)
        self.outbox.turn_ends()

    def place(self, transactional_id: str, transaction: Transaction) -> None:
        """A machine loads this."""
        self.reload(log=[*self.outbox.log, stored_record(transactional_id, transaction, 1)])
        self.outbox.commit()

    # -- time ---------------------------------------------------------------------------------------------------------

    def settle(self) -> int:
        """All that is due is done; returns in how many steps."""
        steps = 0
        while (deadline_ms := self.machine.next_deadline_ms) is not None and deadline_ms <= self.passed_ms:
            self.tick()
            self.outbox.turn_ends()
            steps += 1
            assert steps < 1_000, "it is never done"
        return steps

    def tick(self) -> None:
        self.machine.tick(self.now)

    def wait(self, duration_ms: int) -> None:
        """Time passes, and deadlines are kept on the way."""
        end_ms = self.passed_ms + duration_ms
        while (deadline_ms := self.machine.next_deadline_ms) is not None and deadline_ms <= end_ms:
            self.passed_ms = max(self.passed_ms, deadline_ms)
            self.settle()
        self.passed_ms = end_ms

    # -- requests -----------------------------------------------------------------------------------------------------

    def ask(self, operation: Callable[[TransactionMachine, Asked[R], Now], None]) -> Asked[R]:
        asked = Asked[R]()
        operation(self.machine, asked, self.now)
        self.outbox.turn_ends()
        return asked

    def new_id(self) -> int:
        self.ids += 1
        return self.ids - 1

    def ask_init(
        self,
        transactional_id: str,
        expected: ProducerIdentity | None = None,
        timeout_ms: int = 60_000,
        *,
        is_two_phase: bool = False,
    ) -> Asked[ProducerIdentity]:
        request = InitProducerId(transactional_id, timeout_ms, expected, self.new_id(), is_two_phase)
        return self.ask(lambda machine, waiting, now: machine.init_producer_id(request, waiting, now))

    def ask_keep(
        self,
        transactional_id: str,
        expected: ProducerIdentity | None = None,
        timeout_ms: int = 60_000,
        *,
        is_two_phase: bool = True,
    ) -> Asked[Kept]:
        request = InitProducerId(transactional_id, timeout_ms, expected, self.new_id(), is_two_phase)
        return self.ask(lambda machine, waiting, now: machine.keep_prepared(request, waiting, now))

    def ask_add(
        self, transactional_id: str, producer: ProducerIdentity, *partitions: TopicPartition, version: int | None = None
    ) -> Asked[None]:
        included = frozenset(partitions or [ORDERS])
        version = self.version if version is None else version
        request = AddPartitions(transactional_id, producer, included, version)
        return self.ask(lambda machine, waiting, now: machine.add_partitions(request, waiting, now))

    def ask_verify(
        self, transactional_id: str, producer: ProducerIdentity, *partitions: TopicPartition
    ) -> Asked[Verified]:
        request = Verify(transactional_id, producer, frozenset(partitions or [ORDERS]))
        return self.ask(lambda machine, waiting, now: machine.verify(request, waiting, now))

    def ask_end(
        self, transactional_id: str, producer: ProducerIdentity, *, is_commit: bool = True, version: int | None = None
    ) -> Asked[ProducerIdentity]:
        version = self.version if version is None else version
        request = EndTransaction(transactional_id, producer, is_commit, version, self.new_id())
        return self.ask(lambda machine, waiting, now: machine.end(request, waiting, now))

    def ask_describe(self, transactional_id: str) -> Asked[Transaction]:
        return self.ask(lambda machine, waiting, now: machine.describe(transactional_id, waiting, now))

    def init(self, transactional_id: str, expected: ProducerIdentity | None = None) -> ProducerIdentity:
        return self.ask_init(transactional_id, expected).answer

    def begin(self, transactional_id: str, producer: ProducerIdentity, *partitions: TopicPartition) -> None:
        assert self.ask_add(transactional_id, producer, *partitions).answer is None

    def end(self, transactional_id: str, producer: ProducerIdentity, *, is_commit: bool = True) -> ProducerIdentity:
        return self.ask_end(transactional_id, producer, is_commit=is_commit).answer

    def write_markers(self, ending: Ending | None = None) -> None:
        """Those of the last one that was sent, or of this one, are written."""
        self.machine.markers_written(self.sent[-1] if ending is None else ending, self.now)
        self.outbox.turn_ends()


def error_of(asked: Asked[Any]) -> ErrorCode | None:
    """None where it is none, or there is no answer yet."""
    error = asked.answers[0] if asked.answers else None
    return error.code if isinstance(error, KafkaError) else None
