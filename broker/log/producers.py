"""What a partition knows of its idempotent producers (KIP-98; ProducerStateEntry.java, ProducerAppendInfo.java).

A producer numbers its records, and sends a batch again when it got no answer. The partition keeps for each producer id
the epoch and the last five batches (clients have at most five requests in flight), and decides for the next one:

    same epoch, same first and last sequence as one of the five     duplicate: answer as for the first append
    epoch lower than the known one                                  INVALID_PRODUCER_EPOCH
    epoch higher                                                    must start with sequence 0
    same epoch                                                      must go on where the last batch ended
    nothing known (new, or its batches were deleted)                any sequence

Everything else is OUT_OF_ORDER_SEQUENCE_NUMBER, a batch older than the five, too. Sequences run from 0 to 2^31-1 and
then from 0 again, and a batch may cross that border. Pure: the log calls `check` before it writes and `update` after.
"""

from collections import deque
from typing import NamedTuple

from protocol.batch import BatchHeader
from protocol.errors import ErrorCode, KafkaError

BATCHES_KEPT = 5
SEQUENCE_MAX = 2**31 - 1
NO_PRODUCER_ID = -1
NO_SEQUENCE = -1


class ProducedBatch(NamedTuple):
    """What is remembered of a batch."""

    base_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp_ms: int


class ProducerState:
    """One producer id."""

    __slots__ = ("batches", "epoch", "last_timestamp_ms")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: deque[ProducedBatch] = deque(maxlen=BATCHES_KEPT)
        self.last_timestamp_ms = -1

    @property
    def last_sequence(self) -> int:
        """The last sequence under this epoch, or -1 when the epoch has brought no records yet."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


class Producers:
    """All producer ids of a partition."""

    def __init__(self) -> None:
        self._states: dict[int, ProducerState] = {}

    def __len__(self) -> int:
        return len(self._states)

    def get(self, producer_id: int) -> ProducerState | None:
        return self._states.get(producer_id)

    @property
    def last_offset(self) -> int:
        """The largest offset that is remembered, or -1."""
        return max((state.batches[-1].last_offset for state in self._states.values() if state.batches), default=-1)

    def check(self, header: BatchHeader) -> ProducedBatch | None:
        """Decides about a batch that a client sent: None to append it, or what it is a duplicate of.

        Raises KafkaError: INVALID_TXN_STATE, INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER.
        """
        state = self._states.get(header.producer_id)
        if state is not None and state.epoch == header.producer_epoch:
            first, last = header.base_sequence, header.last_sequence
            for batch in state.batches:
                if batch.base_sequence == first and batch.last_sequence == last:
                    return batch
        if header.is_transactional:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, "no transaction is open: this broker has no coordinator yet")
        if state is None:
            return None
        if header.producer_epoch < state.epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {header.producer_id} has epoch {state.epoch}, the batch {header.producer_epoch}",
            )
        expected = 0 if header.producer_epoch > state.epoch else _next_sequence(state.last_sequence)
        if header.base_sequence != expected:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id}, epoch {header.producer_epoch}: "
                f"sequence {header.base_sequence} came where {expected} was expected",
            )
        return None

    def update(self, header: BatchHeader, base_offset: int) -> None:
        """Remembers a batch that stands in the log, whoever wrote it; nothing is checked."""
        if header.producer_id == NO_PRODUCER_ID:
            return
        state = self._states.get(header.producer_id)
        if state is None or state.epoch != header.producer_epoch:
            state = self._states[header.producer_id] = ProducerState(header.producer_epoch)
        state.last_timestamp_ms = header.max_timestamp
        if not header.is_control:  # a marker carries the epoch and no sequence
            sequences = header.base_sequence, header.last_sequence
            offsets = base_offset, base_offset + header.last_offset_delta
            state.batches.append(ProducedBatch(*sequences, *offsets, header.max_timestamp))


def _next_sequence(sequence: int) -> int:
    return 0 if sequence == SEQUENCE_MAX else sequence + 1
