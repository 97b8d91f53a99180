"""One transactional id: what its record in `__transaction_state` holds, and how it changes (Kafka's
TransactionMetadata). Pure.

Each change gives a new value; the old one is what a refused append goes back to.

| state | by | next |
|---|---|---|
| EMPTY | InitProducerId | ONGOING |
| ONGOING | the first partition, or group | PREPARE_COMMIT, PREPARE_ABORT |
| PREPARE_COMMIT | EndTxn | COMPLETE_COMMIT |
| PREPARE_ABORT | EndTxn, InitProducerId, the time-out | COMPLETE_ABORT |
| COMPLETE_COMMIT, COMPLETE_ABORT | the last partition has its marker | ONGOING, EMPTY |

Whoever holds an older epoch is fenced. A producer's epoch grows with each InitProducerId, with the end that another one
than the producer asks for, and from transaction version 2 on with each end (KIP-890). When epochs are used up, the id
goes on with another producer id and epoch 0.

A transaction of two phases has no time-out, and outlives its producer (KIP-939): a successor that keeps it gets the
next identity, which fences the producer, and may end it, and nothing else, before it begins one of its own.
"""

from enum import IntEnum
from typing import Final, NamedTuple

from odradek.protocol.errors import ErrorCode, KafkaError

NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
EPOCH_MAX: Final = 32_766
"""The last one that a producer may have. The one behind it is for the marker that fences."""
NO_TIME: Final = -1
WITHOUT_TIMEOUT_MS: Final = 2**31 - 1
"""The time-out of a producer that another system tells how to end (KIP-939)."""

BUMPED_FOR_EACH_SINCE: Final = 2
"""The transaction version from which on each end brings a new epoch (KIP-890)."""

TopicPartition = tuple[str, int]


class TxnState(IntEnum):
    """With Kafka's numbers."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5

    @property
    def text(self) -> str:
        """As Kafka names it: `PrepareCommit`."""
        return self.name.title().replace("_", "")

    @property
    def is_prepared(self) -> bool:
        """Whether it is decided how the transaction ends, and markers are under way."""
        return self in (TxnState.PREPARE_COMMIT, TxnState.PREPARE_ABORT)

    @property
    def is_complete(self) -> bool:
        return self in (TxnState.COMPLETE_COMMIT, TxnState.COMPLETE_ABORT)


class ProducerIdentity(NamedTuple):
    producer_id: int
    epoch: int


class Transaction(NamedTuple):
    """Times are in ms since 1970."""

    producer_id: int
    epoch: int
    timeout_ms: int
    updated_ms: int
    """Of the last change. It never goes back, and in a prepared one it is the only one of the id."""
    state: TxnState = TxnState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    started_ms: int = NO_TIME
    version: int = 0
    """The transaction version that its producer uses; 0 where another one has taken over."""
    last_epoch: int = NO_EPOCH
    """The one before, if the producer itself had it replaced and has not used the new one: it may ask for that again.
    In no record: a new coordinator does not know it, and fences who repeats what the former one has answered."""
    previous_producer_id: int = NO_PRODUCER_ID
    """The one before, where epochs were used up."""
    next_producer_id: int = NO_PRODUCER_ID
    """The one with which the id goes on when this transaction is complete."""
    next_epoch: int = NO_EPOCH
    """The epoch of that, where a successor has kept the transaction; else it is 0."""

    @property
    def identity(self) -> ProducerIdentity:
        """With what the producer goes on."""
        if self.next_producer_id != NO_PRODUCER_ID:
            return ProducerIdentity(self.next_producer_id, max(self.next_epoch, 0))
        return ProducerIdentity(self.producer_id, self.epoch)

    @property
    def is_exhausted(self) -> bool:
        return self.epoch >= EPOCH_MAX

    @property
    def is_kept(self) -> bool:
        """Whether its producer has a successor, which has kept what was under way (KIP-939)."""
        return self.next_epoch != NO_EPOCH

    @property
    def is_two_phase(self) -> bool:
        return self.timeout_ms == WITHOUT_TIMEOUT_MS

    @property
    def needs_flexible(self) -> bool:
        """Whether a new coordinator could not end it as it was begun, had it only what a record without tagged fields
        says: it was begun under version 2, or goes on with another producer id."""
        return self.version >= BUMPED_FOR_EACH_SINCE or self.next_producer_id != NO_PRODUCER_ID

    @property
    def former_producer_id(self) -> int:
        """Whose last epoch was the one before epoch 0 of the identity."""
        is_replaced = self.next_producer_id != NO_PRODUCER_ID and not self.is_kept
        return self.producer_id if is_replaced else self.previous_producer_id

    def is_of(self, producer: ProducerIdentity) -> bool:
        """Whether this producer may act. The epoch behind EPOCH_MAX is nobody's, whoever names it."""
        return producer == self.identity and producer.epoch <= EPOCH_MAX

    def _was(self, producer: ProducerIdentity) -> bool:
        """Whether it is the one before, and may not have heard of this one."""
        producer_id, epoch = self.identity
        is_same_id = self.last_epoch < epoch
        last = ProducerIdentity(producer_id if is_same_id else self.former_producer_id, self.last_epoch)
        return self.last_epoch != NO_EPOCH and producer == last

    # -- InitProducerId ---------------------------------------------------------------------------------------------

    def may_be(self, expected: ProducerIdentity) -> bool:
        """Whether a producer that says it is this one can be: it is, or the answer that made it another was lost."""
        return self.is_of(expected) or self._was(expected)

    def initialized(
        self, expected: ProducerIdentity | None, new_producer_id: int, timeout_ms: int, now_ms: int
    ) -> "Transaction":
        """With the next epoch; with the new producer id and epoch 0, if epochs are used up. One that asks again is told
        the same again. Raises KafkaError PRODUCER_FENCED (KIP-360)."""
        if expected is not None and not self.may_be(expected):
            raise fenced(f"it has {tuple(self.identity)}, not {tuple(expected)}")
        last_epoch = NO_EPOCH if expected is None else expected.epoch
        producer_id, epoch, previous = self.producer_id, self.epoch + 1, self.previous_producer_id
        if expected is not None and self._was(expected) and self.state is TxnState.EMPTY:
            epoch = self.epoch
        elif self.is_exhausted:
            producer_id, epoch, previous = new_producer_id, 0, self.producer_id
        return Transaction(
            producer_id,
            epoch,
            timeout_ms,
            self._not_before(now_ms),
            version=self.version,
            last_epoch=last_epoch,
            previous_producer_id=previous,
        )

    def kept(self, new_producer_id: int, timeout_ms: int, now_ms: int) -> "Transaction":
        """The transaction goes on under its epoch, for a successor with the next one; that takes the new producer id
        and epoch 0, if epochs are used up. Its time-out is never made shorter."""
        producer_id, epoch = self.identity
        producer_id, epoch = (new_producer_id, 0) if epoch >= EPOCH_MAX else (producer_id, epoch + 1)
        return self._replace(
            next_producer_id=producer_id,
            next_epoch=epoch,
            timeout_ms=max(self.timeout_ms, timeout_ms),
            updated_ms=self._not_before(now_ms),
            last_epoch=NO_EPOCH,
        )

    # -- the course of a transaction ----------------------------------------------------------------------------------

    def including(self, partitions: frozenset[TopicPartition], version: int, now_ms: int) -> "Transaction":
        """Begins one, where none is under way: who does that has heard which epoch it has."""
        if self.state is TxnState.ONGOING:
            return self._replace(partitions=self.partitions | partitions, updated_ms=self._not_before(now_ms))
        return self._replace(
            state=TxnState.ONGOING,
            partitions=partitions,
            version=version,
            started_ms=now_ms,
            updated_ms=self._not_before(now_ms),
            last_epoch=NO_EPOCH,
        )

    def prepared(self, *, is_commit: bool, version: int, next_producer_id: int, now_ms: int) -> "Transaction":
        """As its own producer has it end; from version 2 on also where it has not begun. `next_producer_id`: what
        follows where epochs are used up."""
        bumps = version >= BUMPED_FOR_EACH_SINCE
        prepared = self._replace(
            state=TxnState.PREPARE_COMMIT if is_commit else TxnState.PREPARE_ABORT,
            epoch=self.epoch + bumps,
            last_epoch=self.identity.epoch if bumps else self.last_epoch,
            version=version,
            started_ms=self.started_ms if self.state is TxnState.ONGOING else now_ms,
            updated_ms=self._after(now_ms),
        )
        if not bumps:
            return prepared
        if self.identity.epoch >= EPOCH_MAX:
            # The former producer id is that of the record, unless a successor has kept the transaction with another.
            prepared = prepared._replace(next_producer_id=next_producer_id)
            if self.is_kept:
                prepared = prepared._replace(next_epoch=0, previous_producer_id=self.next_producer_id)
        elif self.is_kept:
            prepared = prepared._replace(next_epoch=self.next_epoch + 1)
        return prepared

    def timed_out(self, now_ms: int) -> "Transaction":
        """Aborted by an epoch that nobody has been told. From version 2 on, its producer is told when it aborts, too:
        for all that the record says it may be a repetition. Kafka does that."""
        return self._aborted(NO_EPOCH, self.version, now_ms)

    def taken_over(self, now_ms: int) -> "Transaction":
        """Aborted by a successor, or an operator: its producer is fenced for good. Version 0 says that in the record:
        under that, no EndTxn with the epoch before is a repetition."""
        return self._aborted(NO_EPOCH, 0, now_ms)

    def given_up(self, now_ms: int) -> "Transaction":
        """Aborted by its own producer, which asks for another epoch meanwhile."""
        return self._aborted(self.identity.epoch, self.version, now_ms)

    def _aborted(self, last_epoch: int, version: int, now_ms: int) -> "Transaction":
        return self._replace(
            state=TxnState.PREPARE_ABORT,
            epoch=self.epoch + 1,
            next_epoch=self.next_epoch + 1 if self.is_kept else NO_EPOCH,
            last_epoch=last_epoch,
            version=version,
            updated_ms=self._after(now_ms),
        )

    def completed(self, now_ms: int) -> "Transaction":
        """Every partition has its marker."""
        complete = TxnState.COMPLETE_COMMIT if self.state is TxnState.PREPARE_COMMIT else TxnState.COMPLETE_ABORT
        producer_id, epoch = self.identity
        return self._replace(
            state=complete,
            producer_id=producer_id,
            epoch=epoch,
            previous_producer_id=self.former_producer_id,
            next_producer_id=NO_PRODUCER_ID,
            next_epoch=NO_EPOCH,
            partitions=frozenset(),
            updated_ms=self._not_before(now_ms),
        )

    def _not_before(self, now_ms: int) -> int:
        return max(now_ms, self.updated_ms)

    def _after(self, now_ms: int) -> int:
        """No two endings of an id have the same time, whatever the clock does: it tells them apart where the epoch does
        not grow."""
        return max(now_ms, self.updated_ms + 1)


def created(producer_id: int, timeout_ms: int, now_ms: int) -> Transaction:
    """Of an id that nobody has used yet."""
    return Transaction(producer_id, 0, timeout_ms, now_ms)


def fenced(why: str) -> KafkaError:
    return KafkaError(ErrorCode.PRODUCER_FENCED, f"another producer with this transactional id has taken over: {why}")
