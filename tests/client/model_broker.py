"""A small model of partitions on two brokers: what Kafka's leader does with the batches of idempotent producers.

Each broker knows all partitions and appends only to those that it leads at that moment; a log moves with its leader.
A batch is judged as by ProducerAppendInfo.java: one of the last five is answered again; a lower epoch is refused, a
higher one must begin at 0; the next sequence, or any where nothing is known of the producer, is appended. (Before Kafka
2.5 the latter had to be 0 and was UNKNOWN_PRODUCER_ID otherwise: `is_old`.) A partition can be told to answer the next
batch with an error, before or after the append, and to lose data.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from odradek.protocol.errors import ErrorCode

MEMORY = 5
SEQUENCE_COUNT = 2**31


@dataclass(frozen=True)
class SentBatch:
    """What is in the bytes of a request. `units` name the records, or bundles of them."""

    producer_id: int
    epoch: int
    base_sequence: int
    record_count: int
    units: tuple[int, ...]

    @property
    def last_sequence(self) -> int:
        return (self.base_sequence + self.record_count - 1) % SEQUENCE_COUNT


@dataclass(frozen=True)
class Answer:
    code: ErrorCode
    base_offset: int = -1
    log_start_offset: int = -1


@dataclass
class Producer:
    """What a partition knows of a producer id."""

    epoch: int
    last_sequence: int
    batches: deque[tuple[SentBatch, int]]


@dataclass(frozen=True)
class Fault:
    code: ErrorCode
    is_after_append: bool


@dataclass
class ModelPartition:
    is_old: bool = False
    leader: int = 0
    log: list[tuple[int, SentBatch]] = field(default_factory=list[tuple[int, SentBatch]])
    start_offset: int = 0
    end_offset: int = 0
    producers: dict[int, Producer] = field(default_factory=dict[int, Producer])
    faults: deque[Fault] = field(default_factory=deque[Fault])
    lost: set[int] = field(default_factory=set[int])
    """Units that were there."""
    has_lost_data: bool = False
    has_lost_state: bool = False

    @property
    def units(self) -> list[int]:
        return [unit for _, batch in self.log for unit in batch.units]

    def handle(self, node: int, batch: SentBatch) -> Answer:
        if node != self.leader:
            return Answer(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        fault = self.faults.popleft() if self.faults else None
        if fault is not None and fault.code is ErrorCode.MESSAGE_TOO_LARGE and set(batch.units) & set(self.units):
            fault = None  # what was small enough once still is
        if fault is not None and not fault.is_after_append:
            return Answer(fault.code, -1, self.start_offset)
        answer = self._append(batch)
        if fault is not None and answer.code == ErrorCode.NONE:
            return Answer(fault.code, -1, self.start_offset)
        return answer

    def _append(self, batch: SentBatch) -> Answer:
        known = self.producers.get(batch.producer_id)
        if known is not None and known.epoch == batch.epoch:
            for one, offset in known.batches:
                if (one.base_sequence, one.last_sequence) == (batch.base_sequence, batch.last_sequence):
                    return Answer(ErrorCode.NONE, offset, self.start_offset)
        if (code := self._refusal(known, batch)) is not None:
            return Answer(code, -1, self.start_offset)
        offset = self.end_offset
        self.log.append((offset, batch))
        self.end_offset += batch.record_count
        self._remember(offset, batch)
        return Answer(ErrorCode.NONE, offset, self.start_offset)

    def _refusal(self, known: Producer | None, batch: SentBatch) -> ErrorCode | None:
        if known is None:
            return ErrorCode.UNKNOWN_PRODUCER_ID if self.is_old and batch.base_sequence != 0 else None
        if batch.epoch < known.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        expected = 0 if batch.epoch > known.epoch else (known.last_sequence + 1) % SEQUENCE_COUNT
        return None if batch.base_sequence == expected else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def _remember(self, offset: int, batch: SentBatch) -> None:
        known = self.producers.get(batch.producer_id)
        if known is None or known.epoch != batch.epoch:
            known = self.producers[batch.producer_id] = Producer(batch.epoch, -1, deque(maxlen=MEMORY))
        known.last_sequence = batch.last_sequence
        known.batches.append((batch, offset))

    def move(self) -> None:
        """The other broker is the leader now."""
        self.leader = 1 - self.leader

    # ------------------------------------------------------------------------------------------------ losses
    def truncate(self, count: int) -> None:
        """The last batches are lost, with what was known from them: an unclean leader election."""
        gone = self.log[len(self.log) - min(count, len(self.log)) :]
        if not gone:
            return
        del self.log[-len(gone) :]
        self.lost.update(unit for _, batch in gone for unit in batch.units)
        self.end_offset = gone[0][0]
        known_before = set(self.producers)
        self.producers.clear()
        for offset, batch in self.log:
            self._remember(offset, batch)
        self.has_lost_data = True
        self.has_lost_state |= self.producers.keys() != known_before

    def delete_all(self) -> None:
        """Retention, or DeleteRecords: the log is empty, and nothing is known of any producer."""
        self.lost.update(self.units)
        self.log.clear()
        self.start_offset = self.end_offset
        self.has_lost_state |= bool(self.producers)
        self.producers.clear()


def is_ascending(units: Sequence[int]) -> bool:
    """Neither doubled nor reordered."""
    return all(before < after for before, after in pairwise(units))
