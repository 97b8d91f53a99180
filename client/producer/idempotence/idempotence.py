"""The idempotence state of a producer: what it numbers its batches by, and what it does when a broker refuses a number.

A broker appends a batch when it follows the last one of its producer id and epoch in that partition, answers it again
when it is one of the last five, and else refuses it (KIP-98). This state keeps its side of that bargain:

- A batch gets producer id, epoch and sequence when it is first drained, and keeps them in every retry.
- A partition whose sequence has a gap gets a new epoch, under which it begins at 0 again: `State` says when. The epoch
  is bumped here, without asking a broker (KIP-360); only when all epochs are used up, another producer id is needed.
- Other partitions keep to the epoch that they have until nothing of them is under way.

A transactional producer leaves epochs to its coordinator, so that a gap is the end of the transaction: the batch fails,
and the producer starts over with the epoch that it is given.

Pure: batches go in, decisions come out; `advance` before each drain does what became possible. How the batches of one
partition follow one another stands in `sequences`. (Source: TransactionManager.java.)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from odradek.client.producer.idempotence.sequences import (
    NOBODY,
    NONE,
    Identity,
    PartitionSequence,
    Place,
    SequencedBatch,
    State,
)
from odradek.protocol.errors import ErrorCode, Reaction

__all__ = ["Idempotence", "Key", "SequenceGap"]

Key = tuple[str, int]
"""Topic and partition."""

EPOCH_MAX: Final = 2**15 - 1
SEQUENCE_ERRORS: Final = frozenset(code for code in ErrorCode if code.reaction is Reaction.SEQUENCE)
"""After any of them, what the broker has is not what was sent."""


@dataclass(frozen=True, slots=True)
class SequenceGap:
    """A broker refused the batch right after the last one that it had acknowledged, to be logged as a warning."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    last_acked_sequence: int
    last_acked_offset: int
    log_start_offset: int

    def __str__(self) -> str:
        return (
            f"{self.topic}-{self.partition}: acknowledged records may be lost at the broker, which refused sequence "
            f"{self.base_sequence} of producer {self.producer_id} (epoch {self.producer_epoch}) although it had "
            f"acknowledged {self.last_acked_sequence} (offset {self.last_acked_offset}; the log begins at "
            f"{self.log_start_offset}). The producer goes on under a new epoch. Look for an unclean leader election "
            "or a damaged log there."
        )


class Idempotence:
    """The state of one producer over all its partitions.

    `may_send`: of a transactional one, whether its transaction lets records go to a partition now.
    """

    def __init__(self, may_send: Callable[[Key], bool] | None = None) -> None:
        self.needs_producer_id = may_send is None
        """An InitProducerId should be sent: there is no id yet, or the epochs of this one are used up. Never with
        transactions, whose coordinator is asked by others."""
        self._may_send = may_send
        self.bump_count = 0
        self._identity: Identity = NOBODY
        self._partitions: dict[Key, PartitionSequence] = {}
        self._unsettled: dict[Key, PartitionSequence] = {}
        self._gaps: list[SequenceGap] = []

    @property
    def has_producer_id(self) -> bool:
        return self._identity != NOBODY

    def set_producer_id(self, producer_id: int, epoch: int) -> None:
        """Takes what InitProducerId answered. Partitions go over to it when nothing of them is under way."""
        if self.has_producer_id:
            self.bump_count += 1
        self._identity = Identity(producer_id, epoch)
        self.needs_producer_id = False

    def start_over(self, producer_id: int, epoch: int) -> None:
        """Takes what a coordinator of transactions gave: every sequence begins at 0. Nothing may be under way."""
        assert self._may_send is not None
        self._identity = Identity(producer_id, epoch)
        self._partitions.clear()
        self._unsettled.clear()

    @property
    def is_settled(self) -> bool:
        """Whether every partition has what was sent there, as far as nothing is under way."""
        return not self._unsettled

    # ---------------------------------------------------------------------------------------------- draining
    def advance(self) -> None:
        """Resolves and renumbers the partitions that can be; to be called before each drain."""
        for key, partition in list(self._unsettled.items()):
            if partition.state is State.UNRESOLVED:
                self._resolve(key, partition)
            if partition.state is State.BROKEN:
                self._renumber(partition)
            if partition.state is State.SETTLED:
                del self._unsettled[key]

    def may_drain(self, key: Key, batch: SequencedBatch) -> bool:
        """Whether the first batch in the queue of a partition may be drained, which then has to be done now."""
        if not self.has_producer_id:
            return False
        partition = self._partitions.get(key)
        if batch.base_sequence == NONE:
            may_begin = partition is None or partition.may_begin(self._identity)
            return may_begin and (self._may_send is None or self._may_send(key))
        assert partition is not None
        return (self._may_send is None or self._may_send(key)) and partition.may_retry(batch)

    def assign(self, key: Key, batch: SequencedBatch) -> None:
        """Gives a batch, when it is drained for the first time, its id, epoch and sequence."""
        partition = self._partitions.get(key)
        if partition is None:
            partition = self._partitions[key] = PartitionSequence()
        assert partition.may_begin(self._identity)
        if partition.identity != self._identity:
            partition.begin(self._identity)
        partition.enter(batch)

    # ----------------------------------------------------------------------------------------------- answers
    def completed(self, key: Key, batch: SequencedBatch, base_offset: int) -> None:
        """The broker has the batch; `base_offset` -1: it has forgotten where. Also for one that expired meanwhile."""
        partition = self._partitions[key]
        partition.remove(batch)
        partition.acknowledge(batch, base_offset)

    def decide(self, key: Key, batch: SequencedBatch, code: int, log_start_offset: int) -> Reaction:
        """What to do about an error of sequences (45, 47, 59): RETRY or FAIL; FAIL has to be told by `failed`.

        `log_start_offset`: -1 if the answer does not say.
        """
        partition = self._partitions[key]
        place = partition.place_of(batch)
        if place is None:
            return Reaction.FAIL
        match code:
            case ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                place.is_absent = True
                self._refused(key, partition, place, log_start_offset)
            case ErrorCode.UNKNOWN_PRODUCER_ID:
                # Without its state a broker takes the sequence 0 only. If it does not know where the log begins, the
                # partition has just moved, and its next answer tells. (Brokers since 2.5 do not send this code.)
                if log_start_offset != NONE:
                    place.is_absent = True
                    self._move(key, partition, State.BROKEN)
            case _:
                return Reaction.FAIL
        is_over = self._may_send is not None and partition.state is State.BROKEN
        return Reaction.FAIL if is_over else Reaction.RETRY

    def failed(self, key: Key, batch: SequencedBatch, code: int | None, is_certain: bool) -> None:
        """The batch was given up. `is_certain`: a broker said that it has not appended it, before retries ran out."""
        partition = self._partitions.get(key)
        if partition is None or not partition.remove(batch):
            return
        if is_certain or code in SEQUENCE_ERRORS:
            self._move(key, partition, State.BROKEN)
        elif partition.state is State.SETTLED:
            self._move(key, partition, State.UNRESOLVED)

    def expired(self, key: Key, batch: SequencedBatch) -> None:
        """The batch was given up after it had been drained, with or without an answer."""
        self.failed(key, batch, None, False)

    def split(self, key: Key, batch: SequencedBatch, parts: Sequence[SequencedBatch]) -> None:
        """The parts take the place of a batch that the broker found too large, with consecutive sequences."""
        partition = self._partitions[key]
        partition.split(batch, parts)

    def take_events(self) -> list[SequenceGap]:
        """The gaps found since the last call, each worth a line in the log."""
        gaps, self._gaps = self._gaps, []
        return gaps

    # ------------------------------------------------------------------------------------------------- rules
    def _refused(self, key: Key, partition: PartitionSequence, place: Place, log_start_offset: int) -> None:
        """A batch is out of order. While an older one is under way, that is to be expected, and waiting helps.

        The lowest one has nothing to wait for. Where batches before it were given up, these are the gap. Else the
        broker lacks what it has acknowledged: for sure if that was before this batch was sent, while the answer of
        another broker may be older than the acknowledgement, and the next attempt tells. A later batch that was
        acknowledged already leaves no place for it: it is tried until it expires, since under a new epoch it would
        come after that one.
        """
        if partition.state is State.UNRESOLVED and partition.window[0] is place:
            self._move(key, partition, State.BROKEN)
        elif partition.state is State.SETTLED and place.was_next and partition.is_next(place.batch):
            self._gaps.append(
                SequenceGap(
                    *key,
                    *partition.identity,
                    place.batch.base_sequence,
                    partition.last_acked_sequence,
                    partition.last_acked_offset,
                    log_start_offset,
                )
            )
            self._move(key, partition, State.BROKEN)

    def _resolve(self, key: Key, partition: PartitionSequence) -> None:
        if not partition.window:
            self._move(key, partition, State.SETTLED if partition.all_is_acknowledged else State.BROKEN)

    def _renumber(self, partition: PartitionSequence) -> None:
        if partition.may_be_renumbered and self._has_newer(partition.identity) and partition.may_become(self._identity):
            partition.renumber(self._identity)

    def _has_newer(self, identity: Identity) -> bool:
        """Whether there is an id or epoch that this partition has not used, if need be by a bump."""
        if identity != self._identity or self._may_send is not None:
            return identity != self._identity
        if identity.epoch == EPOCH_MAX:
            self.needs_producer_id = True
            return False
        self._identity = identity._replace(epoch=identity.epoch + 1)
        self.bump_count += 1
        return True

    def _move(self, key: Key, partition: PartitionSequence, to: State) -> None:
        partition.move(to)
        self._unsettled[key] = partition
