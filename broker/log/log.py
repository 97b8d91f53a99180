"""The log of one partition: its records in order, on disk in Kafka's own format (UnifiedLog.scala, LocalLog.scala).

    log_start_offset <= everything that may be read < log_end_offset (the offset that the next record gets)

It consists of segments (segment.py), of which the last one grows, and knows its idempotent producers (producers.py)
and leader epochs (epochs.py). How far consumers may read, the high watermark, is the replica's business.

All calls come from one thread and none suspends. A failed write changes nothing: the bytes are cut off again and the
append raises KAFKA_STORAGE_ERROR, as do all later ones until the disk takes writes again. After a failed fsync the page
cache cannot be trusted, so that the log takes no more appends until the next start.
"""

import logging
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import NamedTuple, ParamSpec, TypeVar

from broker.disk import Disk
from broker.log.batches import walk
from broker.log.epochs import EpochCache
from broker.log.producers import NO_PRODUCER_ID, Producers
from broker.log.recovery import merge_epochs, recover
from broker.log.segment import Segment
from protocol.batch import BatchHeader, patched_prefix
from protocol.errors import ErrorCode, KafkaError, MalformedMessage
from protocol.primitives import Buffer
from protocol.records import iterate_records

logger = logging.getLogger(__name__)

NO_TIMESTAMP = -1
NO_OFFSET = -1
_TRUNCATING = "a truncation has not been completed"


@dataclass(frozen=True, slots=True)
class LogConfig:
    """The options of a topic that its logs obey, under Kafka's names and with Kafka's defaults."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 3600 * 1000
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096


class Appended(NamedTuple):
    """Where a batch stands. For a duplicate: where it was put the first time, with its max_timestamp, as in Kafka."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    is_duplicate: bool


class TimestampOffset(NamedTuple):
    """A record found by its timestamp. `leader_epoch` is that of its batch."""

    timestamp_ms: int
    offset: int
    leader_epoch: int


P = ParamSpec("P")
R = TypeVar("R")


def _guarded(method: Callable[P, R]) -> Callable[P, R]:
    """Turns what a disk raises into KAFKA_STORAGE_ERROR."""

    @wraps(method)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    return guarded


class Log:
    """One partition's log. Every method may raise KafkaError KAFKA_STORAGE_ERROR."""

    __slots__ = (
        "_base_offsets",
        "_disk",
        "_has_new_names",
        "_is_ailing",
        "_refusal",
        "_segments",
        "config",
        "directory",
        "epochs",
        "log_end_offset",
        "log_start_offset",
        "producers",
        "recovery_point",
    )

    def __init__(self, disk: Disk, directory: str, config: LogConfig, segments: list[Segment]) -> None:
        """Use `Log.open`."""
        self._disk = disk
        self._segments = segments
        self._base_offsets = [segment.base_offset for segment in segments]
        self._refusal = ""  # why no appends are taken at the moment
        self._is_ailing = False  # the last append failed
        self._has_new_names = True  # files came or went since the directory was synced
        self.directory = directory
        self.config = config
        self.epochs = EpochCache(disk, directory)
        self.producers = Producers()
        self.log_start_offset = segments[0].base_offset
        self.log_end_offset = segments[-1].next_offset
        self.recovery_point = segments[0].base_offset  # everything before it has been synced

    @classmethod
    @_guarded
    def open(cls, disk: Disk, directory: str, config: LogConfig, now_ms: int, *, log_start_offset: int = 0) -> "Log":
        """Opens the log in `directory`, made when missing, and mends it after a crash (recovery.py).

        `log_start_offset` is what the checkpoint says; the log starts later when its older segments are gone.
        """
        disk.make_dir(directory)
        recovered = recover(disk, directory, config.index_interval_bytes, config.segment_index_bytes, now_ms)
        segments = recovered.segments or [Segment.create(disk, directory, log_start_offset, now_ms)]
        log = cls(disk, directory, config, segments)
        log.producers = recovered.producers
        if log_start_offset > log.log_end_offset:
            logger.warning(
                "%s: all %d bytes are dropped, for they end at offset %d and the log starts at %d",
                *(directory, log.size_bytes, log.log_end_offset, log_start_offset),
            )
            log.truncate_fully_and_start_at(log_start_offset)
        log.log_start_offset = max(log_start_offset, log.log_start_offset)
        merge_epochs(log.epochs, recovered.epochs, log.log_start_offset, log.log_end_offset)
        return log

    @property
    def size_bytes(self) -> int:
        """All segments together, without their indexes."""
        return sum(segment.size_bytes for segment in self._segments)

    @property
    def base_offsets(self) -> list[int]:
        """The base offsets of the segments."""
        return list(self._base_offsets)

    @_guarded
    def append(self, batch: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int) -> Appended:
        """Appends a batch that passed `check_batch`, as the leader of `leader_epoch`. Its bytes are not copied.

        Raises KafkaError: RECORD_LIST_TOO_LARGE (larger than a segment), OUT_OF_ORDER_SEQUENCE_NUMBER,
        INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE (producers.py); nothing is appended then.
        """
        config = self.config
        assert len(batch) == header.batch_length + 12, "exactly one batch"
        if len(batch) > config.segment_bytes:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"the batch has {len(batch)} bytes, a segment {config.segment_bytes}",
            )
        if header.producer_id != NO_PRODUCER_ID or header.is_transactional:
            first = self.producers.check(header)
            if first is not None:
                return Appended(first.base_offset, first.last_offset, first.timestamp_ms, True)
        if self._refusal:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self._refusal)
        base_offset = self.log_end_offset
        last_offset = base_offset + header.last_offset_delta
        try:
            segment = self._segments[-1]
            if segment.should_roll(
                header, last_offset, config.segment_bytes, config.segment_ms, config.segment_index_bytes, now_ms
            ):
                segment = self._roll(now_ms)
            assert leader_epoch >= self.epochs.latest, "a leader's epoch never goes back"
            parts = (patched_prefix(header, base_offset, leader_epoch), batch[16:])
            segment.append(parts, last_offset, header.max_timestamp, config.index_interval_bytes)
        except OSError as error:
            if not self._is_ailing:
                self._is_ailing = True
                logger.error("%s: appends fail from offset %d on: %s", self.directory, base_offset, error)
            raise
        self.log_end_offset = last_offset + 1
        if leader_epoch != self.epochs.latest:
            self.epochs.assign(leader_epoch, base_offset)
        if header.producer_id != NO_PRODUCER_ID:
            self.producers.update(header, base_offset)
        if self._is_ailing:
            self._is_ailing = False
            logger.warning("%s: appends work again, from offset %d on", self.directory, base_offset)
        return Appended(base_offset, last_offset, NO_TIMESTAMP, False)

    @_guarded
    def read(self, offset: int, size_bytes_max: int, end_offset: int, at_least_one_batch: bool) -> Buffer:
        """Whole batches from the one with `offset` on, which may begin before it, all before `end_offset`.

        At most `size_bytes_max` bytes, but the first batch in any case if `at_least_one_batch`; out of one segment.
        Raises KafkaError: OFFSET_OUT_OF_RANGE when `offset` is neither in the log nor its end.
        """
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is not between {self.log_start_offset} and {self.log_end_offset}",
            )
        if offset >= end_offset:
            return b""
        for number in range(bisect_right(self._base_offsets, offset) - 1, len(self._segments)):
            segment = self._segments[number]
            if offset < segment.next_offset:
                return segment.read(offset, size_bytes_max, end_offset, at_least_one_batch)
        return b""

    @_guarded
    def offset_for_timestamp(self, timestamp_ms: int, end_offset: int) -> TimestampOffset | None:
        """The first record with at least this timestamp, if it stands before `end_offset`."""
        for segment in self._segments:
            if segment.max_timestamp_ms < timestamp_ms or segment.next_offset <= self.log_start_offset:
                continue
            entry = segment.time_index.floor_timestamp(timestamp_ms)
            indexed = None if entry is None else segment.offset_index.floor_offset(entry.offset)
            position = 0 if indexed is None else indexed.position
            if segment.base_offset < self.log_start_offset:
                position = max(position, segment.locate(self.log_start_offset))
            for at, header in walk(segment.file, position, segment.size_bytes):
                if header.base_offset >= end_offset:
                    return None
                if header.max_timestamp >= timestamp_ms:
                    found = self._first_record(segment, at, header, timestamp_ms)
                    if found is not None:
                        return found if found.offset < end_offset else None
        return None

    @_guarded
    def offset_of_max_timestamp(self, end_offset: int) -> TimestampOffset | None:
        """The first record with the largest timestamp; None where that is not before `end_offset`, as in Kafka."""
        best, best_ms, best_offset = self._segments[-1], NO_TIMESTAMP, NO_OFFSET
        for segment in self._segments:
            max_ms, offset = segment.max_timestamp_ms, segment.max_timestamp_offset
            if offset < self.log_start_offset:
                # The batch with the maximum has been deleted: look at those that are left.
                max_ms = NO_TIMESTAMP
                for _, header in walk(segment.file, segment.locate(self.log_start_offset), segment.size_bytes):
                    if header.max_timestamp > max_ms:
                        max_ms, offset = header.max_timestamp, header.last_offset
            if max_ms > best_ms:
                best, best_ms, best_offset = segment, max_ms, offset
        if best_ms == NO_TIMESTAMP:
            return None
        at, header = next(walk(best.file, best.locate(best_offset), best.size_bytes))
        found = self._first_record(best, at, header, best_ms)
        if found is None:  # no record has the timestamp that the header claims
            offset = max(header.base_offset, self.log_start_offset)
            found = TimestampOffset(best_ms, offset, header.partition_leader_epoch)
        return found if found.offset < end_offset else None

    def _first_record(
        self, segment: Segment, position: int, header: BatchHeader, timestamp_ms: int
    ) -> TimestampOffset | None:
        """The first record of the batch with at least this timestamp.

        Where the records cannot be read (a producer may send nonsense, see `record.validation`) it is the first one:
        according to the header the right one is in this batch, so that nobody who starts here misses it.
        """
        epoch = header.partition_leader_epoch
        try:
            for record in iterate_records(segment.file.pread(header.size_bytes, position)):
                if record.timestamp_ms >= timestamp_ms and record.offset >= self.log_start_offset:
                    return TimestampOffset(record.timestamp_ms, record.offset, epoch)
        except (KafkaError, MalformedMessage) as error:
            logger.warning("%s: the batch at offset %d cannot be read: %s", self.directory, header.base_offset, error)
            return TimestampOffset(header.max_timestamp, max(header.base_offset, self.log_start_offset), epoch)
        return None

    def advance_log_start(self, offset: int) -> None:
        """Moves the log start forward and deletes the segments before it, never the active one.

        The caller has written the checkpoint before. A segment that cannot be deleted now goes with the next call.
        Raises KafkaError: OFFSET_OUT_OF_RANGE behind the log end.
        """
        if offset > self.log_end_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} lies behind {self.log_end_offset}")
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.epochs.truncate_from_start(offset)
        while len(self._segments) > 1 and self._base_offsets[1] <= self.log_start_offset:
            try:
                self._delete(0)
            except OSError as error:
                logger.warning("%s: cannot be deleted yet: %s", self._segments[0].file.path, error)
                return

    @_guarded
    def truncate_to(self, offset: int) -> None:
        """Cuts off the batch with `offset` and all behind it. The log end may be lower than `offset` then.

        If it fails, the log takes no appends until a truncation succeeds.
        """
        if offset < self._base_offsets[0]:
            self.truncate_fully_and_start_at(offset)
            return
        if offset >= self.log_end_offset and self._refusal != _TRUNCATING:
            # A leader that was deposed before its first append left an epoch there, which contradicts the next one.
            self.epochs.truncate_from_end(self.log_end_offset)
            return
        self._refusal = self._refusal or _TRUNCATING
        # From the end on: what is left is a log at every moment.
        while len(self._segments) > 1 and self._base_offsets[-1] >= offset:
            self._delete(-1)
            self.log_end_offset = self._segments[-1].next_offset
        self._segments[-1].truncate(offset)
        self._after_truncation()

    @_guarded
    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Throws everything away; the log is empty and goes on at `offset`."""
        self._refusal = self._refusal or _TRUNCATING
        # A segment named `offset` stands before the others go, so that a restart does not begin at 0.
        if offset in self._base_offsets:
            self._segments[self._base_offsets.index(offset)].clear()
        else:
            number = bisect_right(self._base_offsets, offset)
            created_ms = self._segments[-1].created_ms
            self._segments.insert(number, Segment.create(self._disk, self.directory, offset, created_ms))
            self._base_offsets.insert(number, offset)
        while self._base_offsets[-1] != offset:
            self._delete(-1)
        while self._base_offsets[0] != offset:
            self._delete(0)
        self.log_start_offset = offset
        self._after_truncation()

    def _after_truncation(self) -> None:
        self._has_new_names = True
        self.log_end_offset = self._segments[-1].next_offset
        self.log_start_offset = min(self.log_start_offset, self.log_end_offset)
        self.recovery_point = min(self.recovery_point, self.log_end_offset)
        if self.producers.last_offset >= self.log_end_offset:
            self.producers = self._replay()
        self.epochs.truncate_from_end(self.log_end_offset)
        if self._refusal == _TRUNCATING:
            self._refusal = ""

    def _replay(self) -> Producers:
        """The producers as the batches in the log leave them."""
        producers = Producers()
        for segment in self._segments:
            for _, header in walk(segment.file, 0, segment.size_bytes):
                producers.update(header, header.base_offset)
        return producers

    def _roll(self, now_ms: int) -> Segment:
        """Begins a new segment at the log end."""
        segment = Segment.create(self._disk, self.directory, self.log_end_offset, now_ms)
        self._segments[-1].deactivate()
        self._segments.append(segment)
        self._base_offsets.append(segment.base_offset)
        self._has_new_names = True
        return segment

    def _delete(self, number: int) -> None:
        """Deletes the first (0) or the last (-1) segment. Raises OSError, and then it still stands."""
        if number == 0:
            self.epochs.flush()  # its batches may be the only ones that say where an epoch began
        self._segments[number].delete()
        del self._segments[number], self._base_offsets[number]
        self._has_new_names = True

    @_guarded
    def flush(self) -> None:
        """Makes everything appended so far durable.

        If that fails the log takes no more appends: which pages were lost cannot be known, and a second fsync would
        succeed without having written them.
        """
        self.epochs.flush()
        try:
            for segment in self._segments[:-1]:
                if segment.next_offset > self.recovery_point:
                    segment.sync_all()
            if self.log_end_offset > self.recovery_point:
                self._segments[-1].sync()
            if self._has_new_names:
                self._disk.sync_dir(self.directory)
                self._disk.sync_dir(f"{self.directory}/..")
        except OSError as error:
            self._refusal = f"the log could not be synced: {error}"
            logger.error("%s: no more appends until the next start: %s", self.directory, self._refusal)
            raise
        self._has_new_names = False
        self.recovery_point = self.log_end_offset

    def close(self) -> None:
        """Completes the indexes, makes everything durable and gives the files back."""
        self._segments[-1].deactivate()
        try:
            self.flush()
        finally:
            self.close_without_flush()

    def close_without_flush(self) -> None:
        """Gives the files back, for instance before the directory is renamed and deleted."""
        self._refusal = "the log is closed"
        for segment in self._segments:
            segment.close()
