"""Long histories of producers that share transactional ids, over a log that refuses, commits late and is loaded again.

an identity is told to one producer alone, ever; who has been replaced gets nothing any more
a decided outcome never changes; it is complete when all partitions have been told, and not before
what was acknowledged is in the log
a transaction is aborted by time when its time is up and not before, and never in two phases; an id expires when it has
ended alone
a successor that keeps a transaction ends it as it was
the log says all that the machine knows, and whoever loads it announces every prepared transaction
nobody waits for ever, and each request is answered once
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from odradek.broker.txn.endings import ending_of
from odradek.broker.txn.machine import AGAIN_MS, HELD_MS, OVERDUE_MS, TransactionMachine
from odradek.broker.txn.requests import Ending
from odradek.broker.txn.stored import transaction_of
from odradek.broker.txn.transaction import (
    EPOCH_MAX,
    NO_EPOCH,
    ProducerIdentity,
    TopicPartition,
    Transaction,
    TxnState,
)
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.group.kept_outbox import Asked
from tests.broker.txn.kept_outbox import NO_PRODUCER, START_MS, KeptOutbox, World

TIMEOUT_MS = 20_000
EXPIRATION_MS = 60_000
CLEANUP_MS = 15_000
PARTITIONS: list[TopicPartition] = [("orders", 0), ("orders", 1), ("bills", 0)]
SOME_PARTITIONS = [PARTITIONS[:1], PARTITIONS[1:2], PARTITIONS[1:], PARTITIONS]
E, O, PC, PA, CC, CA = TxnState  # noqa: E741
MOVES: dict[TxnState | None, set[TxnState | None]] = {
    None: {E},
    E: {E, O, PA, None},
    O: {O, PC, PA},
    PC: {CC},
    PA: {CA},
    CC: {E, O, PA, None},
    CA: {E, O, PA, None},
}
"""None: there is no such id, or not any more."""

FENCED = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
DURATIONS_MS = [0, 1, HELD_MS - 1, HELD_MS, OVERDUE_MS, TIMEOUT_MS - 1, TIMEOUT_MS, EXPIRATION_MS]
ACTIONS = (
    ["init"] * 2
    + ["add", "end", "append", "write markers"] * 4
    + ["transact", "catch up", "wait", "verify"] * 2
    + ["commit", "begin", "load", "keep"]
)
STEPS = st.tuples(st.sampled_from(ACTIONS), st.sampled_from([0, 0, 0, 1, 2, 3, 3, 4]), st.booleans(), st.integers(0, 7))
"""What happens, to whom, and two numbers that say how."""


class Producer:
    """What one producer knows. Another one begins in its place with other knowledge."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.transactional_id = "a" if number < 3 else "b"
        self.version = 0 if number in (2, 4) else 2
        self.is_two_phase = number in (1, 4)
        self.identities: list[ProducerIdentity] = []
        """That it has been told, in order."""
        self.included: dict[ProducerIdentity, frozenset[TopicPartition]] = {}
        """What it has been told that its transaction includes, by its identity."""


class Question(NamedTuple):
    kind: str
    producer: Producer
    asking: ProducerIdentity | None
    """As whom."""
    asked: Asked[Any]
    asked_ms: int
    is_retired: bool
    """Another producer had been told that it is the one, when this one asked, and the id was known."""
    partitions: frozenset[TopicPartition] = frozenset()
    is_commit: bool = False


class Watched(World):
    """Aborts by time are compared with when they are due."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded_ms = 0
        self.refused_ms = -AGAIN_MS

    def due_ms(self, transaction: Transaction) -> int:
        end_ms = transaction.started_ms + transaction.timeout_ms - START_MS
        return end_ms if end_ms > self.loaded_ms else max(end_ms, self.loaded_ms + OVERDUE_MS)

    def tick(self) -> None:
        before = dict(self.machine.transactions)
        super().tick()
        after = dict(self.machine.transactions)
        for transactional_id, former in before.items():
            if former.state is O and after[transactional_id] != former:
                assert self.passed_ms >= self.due_ms(former), "aborted before its time was up"
            if transactional_id not in after:
                assert not former.state.is_prepared and former.state is not O
                assert self.passed_ms + START_MS - former.updated_ms >= EXPIRATION_MS


class TransactionHistory(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = Watched()
        self.world.options.transactional_id_expiration_ms = EXPIRATION_MS
        self.world.options.transaction_two_phase_commit_enable = True
        self.world.options.transaction_remove_expired_transaction_cleanup_interval_ms = CLEANUP_MS
        self.producers = [Producer(number) for number in range(5)]
        self.open: list[Question] = []
        self.owners: dict[ProducerIdentity, Producer] = {}
        self.retired: set[ProducerIdentity] = set()
        self.sent: list[Ending] = []
        """By all machines."""
        self.written: set[Ending] = set()
        self.committed: list[Any] = []
        self.before: Transaction | None = None
        """What the machine knew of the id when somebody asked last."""
        self.untold: list[Ending] = []
        """Sent by this machine, and it has not been told that they are written."""

    @initialize(epoch=st.sampled_from([0, EPOCH_MAX - 2, EPOCH_MAX - 1, EPOCH_MAX]))
    def begin(self, epoch: int) -> None:
        self.world.place("a", Transaction(7, epoch, TIMEOUT_MS, START_MS, version=2))
        self.owners[ProducerIdentity(7, epoch)] = self.producers[0]
        self.producers[0].identities.append(ProducerIdentity(7, epoch))
        self.world.outbox.is_manual = True
        self.init(self.producers[3], None)
        self.catch_up()

    # -- what happens -------------------------------------------------------------------------------------------------

    @rule(steps=st.lists(STEPS, min_size=1, max_size=12))
    def do(self, steps: list[tuple[str, int, bool, int]]) -> None:
        for action, number, flag, count in steps:
            self._do(action, self.producers[number], flag, count)
            self.learn()
            self.the_log_makes_sense()
            self.nothing_is_late()

    def _do(self, action: str, producer: Producer, flag: bool, count: int) -> None:
        match action:
            case "init":
                self.init(producer, self._asking(producer, count % 4 == 3) if flag else None)
            case "keep":
                self.keep(producer, self._asking(producer, count % 4 == 3) if flag else None)
            case "add":
                self.add(producer, self._asking(producer, count == 7), SOME_PARTITIONS[count % 4])
            case "verify":
                self.verify(producer, self._asking(producer, count == 7))
            case "end":
                self.end(producer, self._asking(producer, [0, 0, 0, 1, 1, 1, 2, 3][count]), is_commit=flag)
            case "transact":
                self.transact(producer, SOME_PARTITIONS[count % 4], is_commit=flag, is_told=count < 4)
            case "begin":
                self.producers[self.producers.index(producer)] = Producer(producer.number)
            case _:
                self._do_around(action, flag, count)

    def _do_around(self, action: str, flag: bool, count: int) -> None:
        match action:
            case "append":
                self.append({count % 4} if flag else set(), [1, 300, 1 << 20][count % 3])
            case "commit":
                self.world.outbox.commit(1 + count % 3)
            case "catch up":
                self.catch_up()
            case "write markers":
                self.write_markers([0, 0, 0, 0, 1, 1, 2, 7][count])
            case "wait":
                self.world.wait(DURATIONS_MS[count])
            case _:
                assert action == "load"
                if flag:
                    self.load([0, 0, 0, 0, 1, 1, 2, 5][count])

    # -- producers ----------------------------------------------------------------------------------------------------

    def _ask(self, kind: str, producer: Producer, asking: ProducerIdentity | None, asked: Any, **more: Any) -> None:
        is_retired = asking in self.retired and self.before is not None
        if is_retired:
            assert dict(self.world.machine.transactions)[producer.transactional_id] == self.before, "by a zombie"
        self.open.append(Question(kind, producer, asking, asked, self.world.passed_ms, is_retired, **more))

    def _asking(self, producer: Producer, before: int) -> ProducerIdentity | None:
        """As whom it acts: the last that it has been told, or one before."""
        self.before = dict(self.world.machine.transactions).get(producer.transactional_id)
        return producer.identities[max(0, len(producer.identities) - 1 - before)] if producer.identities else None

    def init(self, producer: Producer, expected: ProducerIdentity | None) -> None:
        asked = self.world.ask_init(producer.transactional_id, expected, TIMEOUT_MS, is_two_phase=producer.is_two_phase)
        self._ask("init", producer, expected, asked)

    def keep(self, producer: Producer, expected: ProducerIdentity | None) -> None:
        asked = self.world.ask_keep(producer.transactional_id, expected, TIMEOUT_MS, is_two_phase=producer.is_two_phase)
        self._ask("keep", producer, expected, asked)

    def add(self, producer: Producer, asking: ProducerIdentity | None, partitions: Sequence[TopicPartition]) -> None:
        if asking is not None:
            asked = self.world.ask_add(producer.transactional_id, asking, *partitions, version=producer.version)
            self._ask("add", producer, asking, asked, partitions=frozenset(partitions))

    def verify(self, producer: Producer, asking: ProducerIdentity | None) -> None:
        if asking is not None:
            asked = self.world.ask_verify(producer.transactional_id, asking, *PARTITIONS)
            self._ask("verify", producer, asking, asked)

    def end(self, producer: Producer, asking: ProducerIdentity | None, *, is_commit: bool) -> None:
        if asking is not None:
            asked = self.world.ask_end(producer.transactional_id, asking, is_commit=is_commit, version=producer.version)
            self._ask("end", producer, asking, asked, is_commit=is_commit)

    def transact(
        self, producer: Producer, partitions: Sequence[TopicPartition], *, is_commit: bool, is_told: bool
    ) -> None:
        """As producers do: each request is answered before the next one."""
        if not producer.identities:
            self.init(producer, None)
            self.catch_up()
        self.add(producer, self._asking(producer, 0), partitions)
        self.catch_up()
        self.end(producer, self._asking(producer, 0), is_commit=is_commit)
        if is_told:
            self.catch_up()

    # -- the log, the partitions, other brokers -----------------------------------------------------------------------

    def catch_up(self) -> None:
        self.world.outbox.append_all()
        self.world.outbox.commit()
        self.learn()

    def append(self, refused: set[int], size_bytes_max: int) -> None:
        if refused:
            self.world.refused_ms = self.world.passed_ms
        self.world.outbox.append_all(refused=refused, size_bytes_max=size_bytes_max)

    def write_markers(self, back: int) -> None:
        """Those of the last ending, or of one before, by whatever machine it was sent: again, perhaps."""
        if self.sent:
            ending = self.sent[max(0, len(self.sent) - 1 - back)]
            self._write(ending)

    def _write(self, ending: Ending) -> None:
        self.written.add(ending)
        self.untold = [each for each in self.untold if each != ending]
        self.world.write_markers(ending)

    def load(self, lost: int) -> None:
        """By a broker that may not have the last records, if they are not committed. Who waits asks again."""
        outbox = self.world.outbox
        kept = max(outbox.committed, len(outbox.log) - lost)
        self.learn()
        for question in self.open:
            if question.kind == "end" and question.asking is not None:
                question.producer.included.pop(question.asking, None)  # it may have ended, and begun another one
        self.open.clear()
        self.untold.clear()
        self.world.loaded_ms = self.world.passed_ms
        self.world.reload(log=outbox.log[:kept])

    # -- what holds ---------------------------------------------------------------------------------------------------

    @invariant()
    def learn(self) -> None:
        new = self.world.sent[:]
        self.world.sent.clear()
        self.sent += new
        self.untold += new
        records = [transaction_of(*record) for record in self.world.outbox.log[: self.world.outbox.committed]]
        prepared = {ending_of(*each) for each in records if each and each[1] and each[1].state.is_prepared}  # type: ignore[arg-type]
        assert set(new) <= prepared, "markers of what is not committed"
        for question in self.open[:]:
            if question.asked.answers:
                [answer] = question.asked.answers
                self.open.remove(question)
                if isinstance(answer, KafkaError):
                    self._check_refusal(question, answer, [each for each in records if each is not None])
                else:
                    self._check_success(question, answer, [each for each in records if each is not None])

    def _check_success(self, question: Question, answer: Any, records: list[tuple[str, Transaction | None]]) -> None:
        kind, producer, asking, _, _, is_retired, partitions, is_commit = question
        of_id = [each for name, each in records if name == producer.transactional_id and each is not None]
        if kind != "verify":
            assert not is_retired, f"{kind} by one that was replaced"
        if kind == "add":
            assert any(
                each.state is O and (each.producer_id, each.epoch) == asking and partitions <= each.partitions
                for each in of_id
            )
            assert asking is not None
            producer.included[asking] = producer.included.get(asking, frozenset()) | partitions
        if kind == "keep":
            answer, ongoing = answer
            if ongoing is None:
                kind = "init"
            else:
                of_ongoing = [each for each in of_id if (each.producer_id, each.epoch) == ongoing and each.is_kept]
                assert any(each.identity == answer and each.state is O for each in of_ongoing)
                producer.included[answer] = self.owners[ongoing].included.get(ongoing, frozenset())
        if kind in ("init", "end", "keep"):
            assert answer.epoch <= EPOCH_MAX
            assert self.owners.setdefault(answer, producer) is producer, "two producers with one identity"
            if answer not in producer.identities[-1:]:
                producer.identities.append(answer)
        if kind == "init":
            assert any(each.identity == answer and each.state is E for each in of_id)
        if kind in ("init", "keep"):
            self.retired |= {
                identity
                for identity, owner in self.owners.items()
                if owner is not producer and owner.transactional_id == producer.transactional_id
            }
        if kind == "end":
            assert asking is not None
            included = producer.included.pop(asking, frozenset())
            prepared = [each for each in of_id if each.state is (PC if is_commit else PA)]
            epoch = asking.epoch + (producer.version == 2)
            found = [each for each in prepared if each.identity == answer]
            assert any(each.is_kept or (each.producer_id, each.epoch) == (asking.producer_id, epoch) for each in found)
            assert any(included <= each.partitions for each in found), "torn"

    def _check_refusal(
        self, question: Question, error: KafkaError, records: list[tuple[str, Transaction | None]]
    ) -> None:
        """Nobody hears that he is fenced unless that is in the log for good."""
        if question.asking is not None and error.code in FENCED:
            committed = dict(records).get(question.producer.transactional_id)
            assert committed is None or not committed.is_of(question.asking), "fenced by what is not committed"

    @invariant()
    def the_log_makes_sense(self) -> None:
        log = self.world.outbox.log
        assert log[: len(self.committed)] == self.committed
        self.committed = log[: self.world.outbox.committed]
        for wanted in ("a", "b"):
            found = [transaction_of(*record) for record in log]
            states = [each[1] for each in found if each is not None and each[0] == wanted]
            for former, new in pairwise([None, *states]):
                self._check_move(wanted, former, new)

    def _check_move(self, transactional_id: str, former: Transaction | None, new: Transaction | None) -> None:
        states = (former and former.state, new and new.state)
        if former is None and new is not None and new.producer_id == 7:
            return  # placed there
        assert states[1] in MOVES[states[0]], states
        if former is None or new is None:
            return
        if former.state is O:
            assert former.partitions <= new.partitions and former.started_ms == new.started_ms
            assert new.state is O or former.partitions == new.partitions
        if new.state in (CC, CA):
            assert ending_of(transactional_id, former) in self.written, "complete before all markers"
            assert new.identity == former.identity
        if new.producer_id == former.producer_id:
            assert former.epoch <= new.epoch <= EPOCH_MAX + 1
        elif not former.is_kept:
            assert new.epoch == 0 and former.is_exhausted and new.previous_producer_id == former.producer_id

    @invariant()
    def a_load_of_the_log_gives_the_same(self) -> None:
        if not self.world.outbox.is_settled:
            return
        sent: list[Ending] = []
        outbox = KeptOutbox(self.world.outbox.log, len(self.world.outbox.log))
        machine = TransactionMachine(outbox, self.world.options, sent.append)
        for key, value in outbox.log:
            machine.replay(key, value, NO_PRODUCER)
        machine.loaded(self.world.now)
        present = dict(self.world.machine.transactions)
        assert dict(machine.transactions) == {
            transactional_id: each._replace(last_epoch=NO_EPOCH) for transactional_id, each in present.items()
        }
        prepared = {ending_of(name, each) for name, each in present.items() if each.state.is_prepared}
        assert set(sent) == prepared and len(sent) == len(prepared)

    @invariant()
    def nothing_is_late(self) -> None:
        world = self.world
        if world.outbox.is_settled and world.outbox.committed == len(world.outbox.log):
            assert all(world.passed_ms < each.asked_ms + HELD_MS or each.asked.answers for each in self.open)
        for _, each in world.machine.transactions:
            if each.state is O and world.passed_ms > world.refused_ms + AGAIN_MS:
                deadline_ms = world.machine.next_deadline_ms
                assert world.passed_ms < world.due_ms(each) or (deadline_ms or 0) <= world.passed_ms

    def teardown(self) -> None:
        world = self.world
        world.outbox.is_manual = False
        world.outbox.turn_ends()
        world.wait(HELD_MS)
        assert all(len(question.asked.answers) == 1 for question in self.open), "somebody waits for ever"
        self.learn()
        for transactional_id, each in list(world.machine.transactions):
            if each.state is O and each.is_two_phase:
                world.ask_init(transactional_id)
        for _ in range(2):
            world.wait(TIMEOUT_MS + OVERDUE_MS)
            self.learn()
            for ending in self.untold[:]:
                self._write(ending)
        world.wait(2 * AGAIN_MS)
        self.learn()
        self.the_log_makes_sense()
        assert not any(each.state is O or each.state.is_prepared for _, each in world.machine.transactions)
        world.wait(EXPIRATION_MS + CLEANUP_MS)
        assert dict(world.machine.transactions) == {}


TestTransactionHistory = TransactionHistory.TestCase
TestTransactionHistory.settings = settings(max_examples=40, stateful_step_count=20)
