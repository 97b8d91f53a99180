"""The end of a log, where it grows and where it is cut (UnifiedLog.append, LocalLog.scala).

A leader appends what clients send, one batch at a time, and gives it offsets and its own epoch. A follower appends what
its leader sends, as it is (replicated.py). What a deposed leader had and its successor has not is cut off again.

`Log` holds it, and everybody else asks the log.

A failed write changes nothing: the bytes are cut off again and the append raises KAFKA_STORAGE_ERROR, as do all later
ones until the disk takes writes again.
"""

import logging
from collections.abc import Callable
from typing import NamedTuple

from odradek.broker.disk.disk import Disk
from odradek.broker.log.batches import LENGTH_OVERHEAD
from odradek.broker.log.config import LogConfig
from odradek.broker.log.epochs import EpochCache
from odradek.broker.log.log_durability import LogDurability
from odradek.broker.log.log_state import LogCondition, LogEvent
from odradek.broker.log.markers import Marker, read_marker
from odradek.broker.log.producers import NO_PRODUCER_ID, Producers
from odradek.broker.log.recovery import Recovered
from odradek.broker.log.replicated import LogBounds, Replicated, check_replicated
from odradek.broker.log.segment import Segment
from odradek.broker.log.segment_facts import RELATIVE_OFFSET_MAX
from odradek.broker.log.segments import Segments
from odradek.broker.log.storage_errors import storage_error, watched
from odradek.broker.log.verifications import NO_PROOF, Proof
from odradek.protocol.batches.batch import BatchHeader, patched_prefix
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.primitives import Buffer

logger = logging.getLogger(__name__)

NO_TIMESTAMP = -1


class Appended(NamedTuple):
    """Where a batch stands. For a duplicate: where it was put the first time, with its max_timestamp, as in Kafka."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    is_duplicate: bool


class LogEnd:
    """What of a log moves with its end. Every method may raise KafkaError KAFKA_STORAGE_ERROR."""

    __slots__ = (
        "_is_ailing",
        "_random",
        "condition",
        "config",
        "directory",
        "durability",
        "epochs",
        "has_rolled",
        "log_end_offset",
        "log_start_offset",
        "on_disk_error",
        "producers",
        "segments",
    )

    def __init__(
        self, disk: Disk, directory: str, config: LogConfig, recovered: Recovered, random: Callable[[], float]
    ) -> None:
        segments = Segments(disk, directory, recovered.segments, recovered.snapshots)
        self._random = random
        self._is_ailing = False  # the last append failed
        self.on_disk_error: Callable[[OSError], None] = _nothing  # the owner's, who may have more on that disk
        self.has_rolled = False  # for the owner to see, who syncs the segment before and clears this
        self.condition = LogCondition()
        self.directory = directory
        self.config = config
        self.epochs = EpochCache(disk, directory)
        self.producers = recovered.producers
        self.segments = segments
        self.log_start_offset = segments[0].base_offset
        self.log_end_offset = segments.active.next_offset
        self.durability = LogDurability(disk, directory, segments, self.epochs, self.condition)

    # -- appending ------------------------------------------------------------------------------------------------

    def begin_epoch(self, leader_epoch: int) -> None:
        """From now on the leader of this epoch appends."""
        self.epochs.forget_above(leader_epoch)

    def append(
        self,
        batch: memoryview,
        header: BatchHeader,
        leader_epoch: int,
        now_ms: int,
        proof: Proof = NO_PROOF,
    ) -> Appended:
        """Appends a batch that passed `check_batch`, as the leader of `leader_epoch`. Its bytes are not copied.

        A control batch is a coordinator's.

        Raises KafkaError: RECORD_LIST_TOO_LARGE (larger than a segment), OUT_OF_ORDER_SEQUENCE_NUMBER,
        INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE, TRANSACTION_COORDINATOR_FENCED (producers.py), KAFKA_STORAGE_ERROR;
        nothing is appended then.
        """
        config = self.config
        size_bytes = header.batch_length + LENGTH_OVERHEAD
        assert len(batch) == size_bytes, "exactly one batch"
        if size_bytes > config.segment_bytes:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"the batch has {size_bytes} bytes, a segment {config.segment_bytes}",
            )
        marker = read_marker(batch, header) if header.is_control else None
        if marker is not None:
            self.producers.check_marker(header, marker, proof.transaction_version)
        elif header.producer_id != NO_PRODUCER_ID or header.is_transactional:
            first = self.producers.check(header, proof.verification, is_coordinators=proof.is_coordinators)
            if first is not None:
                return Appended(first.base_offset, first.last_offset, first.timestamp_ms, True)
        if not self.condition.is_open:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self.condition.refusal)
        base_offset = self.log_end_offset
        last_offset = base_offset + header.last_offset_delta
        try:
            segment = self.segments.active
            if segment.should_roll(size_bytes, last_offset, header.max_timestamp, config, now_ms):
                segment = self._roll(now_ms)
            latest_epoch = self.epochs.latest
            assert leader_epoch >= latest_epoch, "a leader's epoch never goes back"
            parts = (patched_prefix(header, base_offset, leader_epoch), batch[16:])
            segment.append(parts, last_offset, header.max_timestamp, config)
        except OSError as error:
            raise self._ailing(error) from error
        self.log_end_offset = last_offset + 1
        if leader_epoch != latest_epoch:
            self.epochs.assign(leader_epoch, base_offset)
        if header.producer_id != NO_PRODUCER_ID:
            self._note_producer(segment, header, base_offset, marker, proof.transaction_version, now_ms)
        if self._is_ailing:
            self._recovered(base_offset)
        append_time_ms = header.max_timestamp if header.is_log_append_time else NO_TIMESTAMP
        return Appended(base_offset, last_offset, append_time_ms, False)

    def _note_producer(
        self,
        segment: Segment,
        header: BatchHeader,
        base_offset: int,
        marker: Marker | None,
        transaction_version: int = 0,
        appended_ms: int | None = None,
    ) -> None:
        completed = self.producers.update(header, base_offset, marker, transaction_version, appended_ms)
        if completed is not None and completed.is_aborted:
            segment.txn_index.append(self.producers.aborted_txn(completed))

    def _ailing(self, error: OSError) -> KafkaError:
        """An append has failed."""
        self.on_disk_error(error)
        if not self._is_ailing:
            self._is_ailing = True
            logger.error("%s: appends fail from offset %d on: %s", self.directory, self.log_end_offset, error)
        return storage_error(error)

    def _recovered(self, base_offset: int) -> None:
        """An append after one that failed has not."""
        self._is_ailing = False
        logger.warning("%s: appends work again, from offset %d on", self.directory, base_offset)

    def append_replicated(self, data: Buffer, leader_epoch: int, now_ms: int) -> int:
        """Appends what the leader of `leader_epoch` has from here on, byte for byte; returns how many bytes that were.

        Not all, where the data ends in a part of a batch, or goes on with batches of later epochs (replicated.py).
        Raises KafkaError: CORRUPT_MESSAGE, OFFSET_OUT_OF_RANGE, and nothing is appended then; KAFKA_STORAGE_ERROR, and
        what was appended before it stays.
        """
        if not self.condition.is_open:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self.condition.refusal)
        view, first_offset, start_offset = memoryview(data), self.log_end_offset, self.log_start_offset
        batches = check_replicated(view, LogBounds(start_offset, first_offset, self.epochs.latest), leader_epoch)
        if batches and batches[0].header.base_offset < first_offset:
            self.truncate_fully_and_start_at(batches[0].header.base_offset)
        headers = [batch.header for batch in batches]
        position = done = 0
        try:
            while done < len(batches):
                segment = self._segment_for(headers[done], now_ms)
                run = headers[done : done + segment.run_length(headers[done:], self.config, now_ms)]
                end = batches[done + len(run) - 1].end
                segment.append_run(view[position:end], run, self.config)
                for batch in batches[done : done + len(run)]:
                    self._note_replicated(segment, batch)
                position, done = end, done + len(run)
        except OSError as error:
            raise self._ailing(error) from error
        finally:  # what was deleted of the first batch stays so
            self.log_start_offset = min(max(start_offset, self.log_start_offset), self.log_end_offset)
        if self._is_ailing and position:
            self._recovered(first_offset)
        return position

    def _segment_for(self, header: BatchHeader, now_ms: int) -> Segment:
        """The segment that takes this batch of the leader's."""
        segment = self.segments.active
        if segment.should_roll(header.size_bytes, header.last_offset, header.max_timestamp, self.config, now_ms):
            if header.last_offset - self.log_end_offset > RELATIVE_OFFSET_MAX:
                # Compaction took more away than an index can say. What is missing at the leader is missing here.
                self.log_end_offset = header.base_offset
            return self._roll(now_ms)
        return segment

    def _note_replicated(self, segment: Segment, batch: Replicated) -> None:
        header = batch.header
        self.log_end_offset = header.last_offset + 1
        if header.partition_leader_epoch > self.epochs.latest:
            self.epochs.assign(header.partition_leader_epoch, header.base_offset)
        if header.producer_id != NO_PRODUCER_ID:
            # Where batches are compacted away, sequences are missing.
            if not self.config.is_compacted and (surprise := self.producers.surprise(header)) is not None:
                logger.warning("%s: the leader appended at offset %d: %s", self.directory, header.base_offset, surprise)
            self._note_producer(segment, header, header.base_offset, batch.marker)

    def _roll(self, now_ms: int) -> Segment:
        """Begins a new segment at the log end."""
        config = self.config
        self.segments.active.deactivate()  # first: if the rest fails it goes on, and nothing else has happened
        segment = self.segments.create(self.log_end_offset, config, now_ms)
        segment.jitter_ms = int(self._random() * min(config.segment_jitter_ms, config.segment_ms))
        self.has_rolled = True
        self.segments.snapshots.take(self.producers, segment.base_offset)
        return segment

    @watched
    def roll(self, now_ms: int) -> None:
        """Begins a new segment, unless the last one is empty."""
        if self.segments.active.size_bytes:
            self._roll(now_ms)

    # -- truncating -----------------------------------------------------------------------------------------------

    @watched
    def truncate_to(self, offset: int) -> None:
        """Cuts off the batch with `offset` and all behind it. The log end may be lower than `offset` then.

        The caller writes the recovery point's checkpoint afterwards. If it fails, the log takes no appends until a
        truncation succeeds.
        """
        segments = self.segments
        if offset < segments.base_offsets[0]:
            self.truncate_fully_and_start_at(offset)
            return
        if offset >= self.log_end_offset and not self.condition.is_half_cut:
            # A leader that was deposed before its first append left an epoch there, which contradicts the next one.
            self.epochs.truncate_from_end(self.log_end_offset)
            return
        self.condition.move(LogEvent.CUT_BEGINS)
        # From the end on: what is left is a log at every moment. The segment that begins at `offset` stays, emptied:
        # the one before it may be compacted, and a start that walks it would not find what the checkpoints know.
        while len(segments) > 1 and segments.active.base_offset > offset:
            segments.retire(-1)
            self.log_end_offset = segments.active.next_offset
        segments.check_txn_index(segments.active)
        try:
            segments.active.truncate(offset)
        finally:
            self.log_end_offset = segments.active.next_offset  # also where only its indexes could not be cut
        self._after_truncation()

    @watched
    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Throws everything away, what is known of producers and epochs too; the log is empty and goes on at
        `offset`."""
        self.condition.move(LogEvent.CUT_BEGINS)
        segments = self.segments
        # A segment named `offset` stands before the others go, so that a restart does not begin at 0. If it has stood
        # there before, it is emptied last: what is left is a log at every moment.
        if offset not in segments.base_offsets:
            segments.create(offset, self.config, segments.active.created_ms)
        try:
            while segments.active.base_offset != offset:
                segments.retire(-1)
            while segments.base_offsets[0] != offset:
                segments.retire(0)
            if segments.active.size_bytes:
                segments.active.clear()
        finally:
            self.log_end_offset = min(self.log_end_offset, segments.active.next_offset)
        self.log_start_offset = offset
        self.segments.snapshots.forget_all()
        self.producers = Producers()
        self.epochs.clear()
        self._after_truncation()

    def _after_truncation(self) -> None:
        self.log_end_offset = self.segments.active.next_offset
        self.log_start_offset = min(self.log_start_offset, self.log_end_offset)
        self.durability.truncated(self.log_end_offset)
        self.segments.snapshots.forget_after(self.log_end_offset)
        self.producers = self.segments.replayed(self.log_end_offset)
        self.epochs.truncate_from_end(self.log_end_offset)
        self.condition.move(LogEvent.CUT_ENDS)


def _nothing(error: OSError) -> None: ...
