"""What a partition knows of its idempotent and transactional producers (KIP-98; ProducerStateManager.java,
ProducerAppendInfo.java).

A producer numbers its records, and sends a batch again when it got no answer. The partition keeps for each producer id
the epoch and the last five batches (clients have at most five requests in flight), and decides for the next one:

    same epoch, same first and last sequence as one of the five     duplicate: answer as for the first append
    epoch lower than the known one                                  INVALID_PRODUCER_EPOCH
    epoch higher                                                    must start with sequence 0
    same epoch                                                      must go on where the last batch ended
    nothing known (new, expired, or its batches were deleted)       any sequence

Everything else is OUT_OF_ORDER_SEQUENCE_NUMBER, a batch older than the five, too. Sequences run from 0 to 2^31-1 and
then from 0 again, and a batch may cross that border. Batches of a coordinator have no sequence.

A transaction begins with a producer's first transactional batch, of which its coordinator must know (verifications.py),
and ends with the coordinator's marker. From its first offset on nothing is stable: not before the marker stands, nor
before the high watermark has passed the marker.

    last stable offset = the smaller of the high watermark and the first unstable offset

Pure: the log calls `check` before it writes and `update` after. `snapshots.py` keeps all of this in a file.
"""

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from odradek.broker.log.markers import Marker
from odradek.broker.log.verifications import Verification, Verifications
from odradek.protocol.batches.batch import BatchHeader
from odradek.protocol.errors import ErrorCode, KafkaError

BATCHES_KEPT = 5
SEQUENCE_MAX = 2**31 - 1
BUMPED_FOR_EACH_SINCE = 2
"""The transaction version from which on each transaction has an epoch of its own (KIP-890)."""
NO_PRODUCER_ID = -1
NO_SEQUENCE = -1
NO_EPOCH = -1
NO_OFFSET = -1


class ProducedBatch(NamedTuple):
    """What is remembered of a batch."""

    base_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp_ms: int


class CompletedTxn(NamedTuple):
    """A transaction whose marker was appended at `last_offset`."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class AbortedTxn(NamedTuple):
    """A transaction that was aborted: its records lie between the two offsets, its marker at the last."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class OpenTxn(NamedTuple):
    """A transaction that no marker has ended yet."""

    producer_id: int
    epoch: int
    first_offset: int
    opened_ms: int
    """When its first batch was appended, by this broker's clock, if it has led since; else by the records' time, as in
    Kafka: of the first batch, or after a start with a snapshot of the last one before."""


class ProducerState:
    """One producer id."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "current_txn_first_offset",
        "epoch",
        "last_timestamp_ms",
        "txn_opened_ms",
    )

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: deque[ProducedBatch] = deque(maxlen=BATCHES_KEPT)
        self.last_timestamp_ms = -1
        self.coordinator_epoch = NO_EPOCH
        self.current_txn_first_offset = NO_OFFSET  # -1: no transaction is open
        self.txn_opened_ms = 0  # of the open one

    @property
    def last_sequence(self) -> int:
        """The last sequence under this epoch, or -1 when the epoch has brought no records yet."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def move_to(self, epoch: int) -> None:
        """Takes the epoch of the newest batch. Sequences of another one mean nothing any more; a transaction stays
        open, for only a marker ends it."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()


class Producers:
    """All producer ids of a partition."""

    def __init__(self, states: Iterable[tuple[int, ProducerState]] = ()) -> None:
        """With what a snapshot held: pairs of producer id and state."""
        self._states: dict[int, ProducerState] = dict(states)
        open_txns = [
            (state.current_txn_first_offset, producer_id)
            for producer_id, state in self._states.items()
            if state.current_txn_first_offset != NO_OFFSET
        ]
        # First offset -> producer id, in the order of the log: offsets only grow, and so do these.
        self._open_txns: dict[int, int] = dict(sorted(open_txns))
        # First offset -> offset of the marker, which the high watermark has not passed yet.
        self._unreplicated_txns: dict[int, int] = {}
        self.verifications = Verifications()

    def __len__(self) -> int:
        return len(self._states)

    def get(self, producer_id: int) -> ProducerState | None:
        return self._states.get(producer_id)

    def states(self) -> Iterable[tuple[int, ProducerState]]:
        """Every producer id with its state."""
        return self._states.items()

    # -- appending ------------------------------------------------------------------------------------------------

    def check(
        self, header: BatchHeader, verification: Verification | None = None, *, is_coordinators: bool = False
    ) -> ProducedBatch | None:
        """Decides about a batch that a client sent, or a coordinator for it: None to append it, or what it is a
        duplicate of.

        Raises KafkaError: INVALID_TXN_STATE, INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER.
        """
        state = self._states.get(header.producer_id)
        if state is not None and state.epoch == header.producer_epoch and not is_coordinators:
            first, last = header.base_sequence, header.last_sequence
            for batch in state.batches:
                if batch.base_sequence == first and batch.last_sequence == last:
                    return batch
        if header.is_transactional and not self.has_open_transaction(header.producer_id, header.producer_epoch):
            self._require_verified(header, verification)
        if state is not None:
            _check_epoch(header, state)
            if not is_coordinators:
                _check_sequence(header, state)
            if not header.is_transactional and state.current_txn_first_offset != NO_OFFSET:
                raise KafkaError(
                    ErrorCode.INVALID_TXN_STATE,
                    f"producer {header.producer_id} has a transaction open since offset "
                    f"{state.current_txn_first_offset}, and the batch belongs to none",
                )
        return None

    def has_open_transaction(self, producer_id: int, epoch: int) -> bool:
        """Whether batches of it are here."""
        state = self._states.get(producer_id)
        return state is not None and state.epoch == epoch and state.current_txn_first_offset != NO_OFFSET

    def _require_verified(self, header: BatchHeader, verification: Verification | None) -> None:
        producer_id = header.producer_id
        if verification is None or not self.verifications.stands(producer_id, verification):
            why = "nobody has asked its coordinator" if verification is None else "it has ended meanwhile"
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE, f"producer {producer_id} has no transaction open here, and {why}"
            )
        if header.base_sequence > verification.lowest_sequence:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer_id}: sequence {header.base_sequence} came before {verification.lowest_sequence}",
            )

    def check_marker(self, header: BatchHeader, marker: Marker, transaction_version: int) -> None:
        """Decides about a coordinator's marker. `transaction_version`: that of the transaction; from 2 on its epoch is
        beyond that of the transaction's batches.

        Raises KafkaError: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED.
        """
        state = self._states.get(header.producer_id)
        if state is None:
            return
        if marker.coordinator_epoch < state.coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"producer {header.producer_id}: a marker of coordinator epoch {marker.coordinator_epoch}, where the "
                f"last one was of {state.coordinator_epoch}",
            )
        is_repeated = transaction_version >= BUMPED_FOR_EACH_SINCE and header.producer_epoch == state.epoch
        if is_repeated and state.current_txn_first_offset != NO_OFFSET:
            raise _stale_epoch(header, state)
        _check_epoch(header, state)

    def surprise(self, header: BatchHeader) -> str | None:
        """What does not fit in a batch that a leader accepted, which a follower appends all the same. None: nothing."""
        state = self._states.get(header.producer_id)
        if state is None:
            return None
        named = f"producer {header.producer_id} with epoch {header.producer_epoch}"
        if header.producer_epoch < state.epoch:
            return f"{named}, where its epoch was {state.epoch} already"
        expected = 0 if header.producer_epoch > state.epoch else _next_sequence(state.last_sequence)
        if header.is_control or header.base_sequence == expected or not state.batches:
            return None
        return f"{named} and sequence {header.base_sequence}, where {expected} was expected"

    def update(
        self,
        header: BatchHeader,
        base_offset: int,
        marker: Marker | None = None,
        transaction_version: int = 0,
        appended_ms: int | None = None,
    ) -> CompletedTxn | None:
        """Remembers a batch that stands in the log, whoever wrote it; nothing is checked.

        `marker` is what a control batch holds, `transaction_version` that of the transaction, where it is known;
        `appended_ms` is None where it is not known, and the records' time counts.
        Returns the transaction that the marker ends, if one was open.
        """
        producer_id = header.producer_id
        if producer_id == NO_PRODUCER_ID or (header.is_control and marker is None):
            return None
        state = self._states.get(producer_id)
        if state is None:
            state = self._states[producer_id] = ProducerState(header.producer_epoch)
        else:
            state.move_to(header.producer_epoch)
        state.last_timestamp_ms = header.max_timestamp
        if marker is not None and transaction_version >= BUMPED_FOR_EACH_SINCE:
            # The producer goes on with the marker's epoch, and may have asked about its next transaction already.
            self.verifications.end(producer_id, before_epoch=header.producer_epoch)
        elif header.is_transactional:
            self.verifications.end(producer_id)
        if marker is not None:
            return self._end_txn(producer_id, state, base_offset, marker)
        offsets = base_offset, base_offset + header.last_offset_delta
        sequences = header.base_sequence, header.last_sequence
        state.batches.append(ProducedBatch(*sequences, *offsets, header.max_timestamp))
        if header.is_transactional and state.current_txn_first_offset == NO_OFFSET:
            state.current_txn_first_offset = base_offset
            state.txn_opened_ms = max(0, header.max_timestamp) if appended_ms is None else appended_ms
            self._open_txns[base_offset] = producer_id
        return None

    def _end_txn(self, producer_id: int, state: ProducerState, offset: int, marker: Marker) -> CompletedTxn | None:
        state.coordinator_epoch = marker.coordinator_epoch
        first_offset = state.current_txn_first_offset
        if first_offset == NO_OFFSET:
            return None  # nothing of the transaction came to this partition
        state.current_txn_first_offset = NO_OFFSET
        del self._open_txns[first_offset]
        self._unreplicated_txns[first_offset] = offset
        return CompletedTxn(producer_id, first_offset, offset, marker.is_abort)

    # -- stability ------------------------------------------------------------------------------------------------

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of an open transaction, or of one whose marker may still be lost; None without any."""
        first = self.first_undecided_offset
        if not self._unreplicated_txns:
            return first
        unreplicated = min(self._unreplicated_txns)
        return unreplicated if first is None else min(first, unreplicated)

    @property
    def first_undecided_offset(self) -> int | None:
        """The first offset of an open transaction; None without any."""
        return next(iter(self._open_txns), None)

    @property
    def oldest_open_txn(self) -> OpenTxn | None:
        """The one that `first_undecided_offset` is of."""
        for first_offset, producer_id in self._open_txns.items():
            state = self._states[producer_id]
            return OpenTxn(producer_id, state.epoch, first_offset, state.txn_opened_ms)
        return None

    def aborted_txn(self, completed: CompletedTxn) -> AbortedTxn:
        """The row of the transaction index for one that was aborted just now."""
        undecided = self.first_undecided_offset
        last_stable_offset = completed.last_offset + 1 if undecided is None else undecided
        return AbortedTxn(completed.producer_id, completed.first_offset, completed.last_offset, last_stable_offset)

    def high_watermark_moved(self, high_watermark: int) -> None:
        """Markers before `high_watermark` cannot be lost any more."""
        if self._unreplicated_txns:
            self._unreplicated_txns = {
                first: last for first, last in self._unreplicated_txns.items() if last >= high_watermark
            }

    # -- forgetting -----------------------------------------------------------------------------------------------

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forgets who appended nothing for `producer.id.expiration.ms`, by the records' time, and has no transaction
        open. Returns how many."""
        idle = [
            producer_id
            for producer_id, state in self._states.items()
            if state.current_txn_first_offset == NO_OFFSET and now_ms - state.last_timestamp_ms >= expiration_ms
        ]
        for producer_id in idle:
            del self._states[producer_id]
        self.verifications.expire(now_ms, expiration_ms)
        return len(idle)


def _next_sequence(sequence: int) -> int:
    return 0 if sequence == SEQUENCE_MAX else sequence + 1


def _check_epoch(header: BatchHeader, state: ProducerState) -> None:
    if header.producer_epoch < state.epoch:
        raise _stale_epoch(header, state)


def _stale_epoch(header: BatchHeader, state: ProducerState) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        f"producer {header.producer_id} has epoch {state.epoch}, the batch {header.producer_epoch}",
    )


def _check_sequence(header: BatchHeader, state: ProducerState) -> None:
    expected = 0 if header.producer_epoch > state.epoch else _next_sequence(state.last_sequence)
    if header.base_sequence != expected:
        raise KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {header.producer_id}, epoch {header.producer_epoch}: "
            f"sequence {header.base_sequence} came where {expected} was expected",
        )
