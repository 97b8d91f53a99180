"""The log of one partition: its records in order, on disk in Kafka's own format (UnifiedLog.scala, LocalLog.scala).

    log_start_offset <= everything that may be read < log_end_offset (the offset that the next record gets)
    recovery_point (no start looks before it) <= durable_offset (all before is on the device) <= log_end_offset

It consists of segments (segment.py), of which the last one grows, and knows its idempotent producers (producers.py)
and leader epochs (epochs.py). How far consumers may read, the high watermark, is the replica's business.

All calls come from one thread and none suspends. A failed write changes nothing: the bytes are cut off again and the
append raises KAFKA_STORAGE_ERROR, as do all later ones until the disk takes writes again. After a failed sync the page
cache cannot be trusted, so that the log takes no more appends until the next start, which copies what is in doubt.
"""

import logging
from collections.abc import Callable
from functools import wraps
from typing import NamedTuple, ParamSpec, TypeVar

from broker.disk import Disk
from broker.log.batches import LENGTH_OVERHEAD, Damage
from broker.log.config import LogConfig
from broker.log.epochs import EpochCache
from broker.log.flush import DataNotSynced, Flush
from broker.log.leftovers import UNSYNCED
from broker.log.lookup import TimestampOffset, first_at_or_after, with_max_timestamp
from broker.log.markers import Marker, read_marker
from broker.log.producers import NO_PRODUCER_ID, AbortedTxn, Producers
from broker.log.recovery import Recovered, check_end, merge_epochs, recover, replay
from broker.log.segment import Segment
from broker.log.segments import Segments, Written
from protocol.batch import BatchHeader, iterate_batches, patched_prefix
from protocol.errors import ErrorCode, KafkaError
from protocol.primitives import Buffer

logger = logging.getLogger(__name__)

NO_TIMESTAMP = -1
_TRUNCATING = "a truncation has not been completed"


class Appended(NamedTuple):
    """Where a batch stands. For a duplicate: where it was put the first time, with its max_timestamp, as in Kafka."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    is_duplicate: bool


P = ParamSpec("P")
R = TypeVar("R")


def _guarded(method: Callable[P, R]) -> Callable[P, R]:
    """Turns what a disk raises into KAFKA_STORAGE_ERROR."""

    @wraps(method)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except OSError as error:
            raise _storage_error(error) from error

    return guarded


def _storage_error(error: OSError) -> KafkaError:
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))


def _no_chance() -> float:
    return 0.0


class Log:
    """One partition's log. Every method may raise KafkaError KAFKA_STORAGE_ERROR."""

    __slots__ = (
        "_disk",
        "_is_ailing",
        "_passed_over",
        "_random",
        "_refusal",
        "_synced_changes",
        "_truncations",
        "config",
        "directory",
        "durable_offset",
        "epochs",
        "has_rolled",
        "is_distrusted",
        "log_end_offset",
        "log_start_offset",
        "producers",
        "recovery_point",
        "segments",
    )

    def __init__(
        self, disk: Disk, directory: str, config: LogConfig, recovered: Recovered, random: Callable[[], float]
    ) -> None:
        """Use `Log.open`."""
        segments = Segments(disk, directory, recovered.segments, recovered.snapshots)
        self._disk = disk
        self._random = random
        self._refusal = ""  # why no appends are taken at the moment
        self._is_ailing = False  # the last append failed
        self.is_distrusted = False  # a sync failed
        self._synced_changes = -1  # of the segments' names: as far as the directory was synced
        self._truncations = 0
        self._passed_over: set[int] = set()  # segments behind which offsets are missing, of which was told
        self.has_rolled = False  # for the owner to see, who syncs the segment before and clears this
        self.directory = directory
        self.config = config
        self.epochs = EpochCache(disk, directory)
        self.producers = recovered.producers
        self.segments = segments
        self.log_start_offset = segments[0].base_offset
        self.log_end_offset = segments.active.next_offset
        self.durable_offset = self.recovery_point = self.log_start_offset

    @classmethod
    @_guarded
    def open(
        cls,
        disk: Disk,
        directory: str,
        config: LogConfig,
        now_ms: int,
        *,
        log_start_offset: int = 0,
        recovery_point: int = 0,
        is_clean: bool = False,
        random: Callable[[], float] = _no_chance,
    ) -> "Log":
        """Opens the log in `directory`, made when missing, and mends it after a crash (recovery.py).

        `log_start_offset` and `recovery_point` are what the checkpoints say; the log starts later when its older
        segments are gone. `is_clean`: the last process closed it. `random` gives numbers from 0 to 1, for
        `segment.jitter.ms`.
        """
        disk.make_dir(directory)
        recovered = recover(disk, directory, config, now_ms, recovery_point=recovery_point, is_clean=is_clean)
        check_end(recovered, recovery_point, log_start_offset)
        if not recovered.segments:
            recovered.segments = [Segment.create(disk, directory, log_start_offset, config, now_ms)]
        log = cls(disk, directory, config, recovered, random)
        point = log.log_end_offset if recovered.is_clean else min(recovery_point, log.log_end_offset)
        log.durable_offset = log.recovery_point = max(point, log.recovery_point)
        if recovered.is_clean:
            log._synced_changes = log.segments.changes
        if log_start_offset > log.log_end_offset:
            logger.warning(
                "%s: all %d bytes are dropped, for they end at offset %d and the log starts at %d",
                *(directory, log.segments.size_bytes, log.log_end_offset, log_start_offset),
            )
            log.truncate_fully_and_start_at(log_start_offset)
        log.log_start_offset = max(log_start_offset, log.log_start_offset)
        merge_epochs(log.epochs, recovered, log.log_start_offset, log.log_end_offset)
        return log

    @property
    def size_bytes(self) -> int:
        """All segments together, without their indexes."""
        return self.segments.size_bytes

    @property
    def base_offsets(self) -> list[int]:
        """The base offsets of the segments."""
        return list(self.segments.base_offsets)

    # -- appending ------------------------------------------------------------------------------------------------

    def begin_epoch(self, leader_epoch: int) -> None:
        """From now on the leader of this epoch appends."""
        self.epochs.forget_above(leader_epoch)

    def append(self, batch: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int) -> Appended:
        """Appends a batch that passed `check_batch`, as the leader of `leader_epoch`. Its bytes are not copied.

        A control batch is the coordinator's, and passes without a check of its sequence.

        Raises KafkaError: RECORD_LIST_TOO_LARGE (larger than a segment), OUT_OF_ORDER_SEQUENCE_NUMBER,
        INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE (producers.py), KAFKA_STORAGE_ERROR; nothing is appended then.
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
        if (header.producer_id != NO_PRODUCER_ID or header.is_transactional) and marker is None:
            first = self.producers.check(header)
            if first is not None:
                return Appended(first.base_offset, first.last_offset, first.timestamp_ms, True)
        if self._refusal:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self._refusal)
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
            if not self._is_ailing:
                self._is_ailing = True
                logger.error("%s: appends fail from offset %d on: %s", self.directory, base_offset, error)
            raise _storage_error(error) from error
        self.log_end_offset = last_offset + 1
        if leader_epoch != latest_epoch:
            self.epochs.assign(leader_epoch, base_offset)
        if header.producer_id != NO_PRODUCER_ID:
            self._note_producer(segment, header, base_offset, marker)
        if self._is_ailing:
            self._is_ailing = False
            logger.warning("%s: appends work again, from offset %d on", self.directory, base_offset)
        return Appended(base_offset, last_offset, NO_TIMESTAMP, False)

    def _note_producer(self, segment: Segment, header: BatchHeader, base_offset: int, marker: Marker | None) -> None:
        completed = self.producers.update(header, base_offset, marker)
        if completed is not None and completed.is_aborted:
            segment.txn_index.append(self.producers.aborted_txn(completed))

    def _roll(self, now_ms: int) -> Segment:
        """Begins a new segment at the log end."""
        config = self.config
        self.segments.active.deactivate()  # first: if the rest fails it goes on, and nothing else has happened
        segment = self.segments.create(self.log_end_offset, config, now_ms)
        segment.jitter_ms = int(self._random() * min(config.segment_jitter_ms, config.segment_ms))
        self.has_rolled = True
        self.segments.snapshots.take(self.producers, segment.base_offset)
        return segment

    @_guarded
    def roll(self, now_ms: int) -> None:
        """Begins a new segment, unless the last one is empty."""
        if self.segments.active.size_bytes:
            self._roll(now_ms)

    # -- reading --------------------------------------------------------------------------------------------------

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
        for segment in self.segments.from_offset(offset):
            if offset < segment.next_offset:
                data = segment.read(offset, size_bytes_max, end_offset, at_least_one_batch)
                if len(data) or segment.locate(offset) < segment.size_bytes:
                    return data
                self._pass_over(offset, segment)
        return b""

    def _pass_over(self, offset: int, segment: Segment) -> None:
        """The segment ends before `offset`, which is the next one's business. Compaction takes its last batches, and
        nothing else does: then a file is missing, which is said once."""
        if not self.config.is_compacted and segment.base_offset not in self._passed_over:
            self._passed_over.add(segment.base_offset)
            logger.error(
                "%s: no batch holds offset %d, and the next segment begins at %d, where readers go on: is the file of "
                "a segment missing? Restore the directory from a backup if it is needed",
                *(self.directory, offset, segment.next_offset),
            )

    @_guarded
    def aborted_transactions(self, offset: int, data: Buffer) -> list[AbortedTxn]:
        """The aborted transactions that have records in `data`, which `read` answered for `offset`."""
        if not len(data) or not self.segments.have_aborted(offset):
            return []
        return self.segments.aborted(offset, max(header.last_offset for _, header in iterate_batches(data)) + 1)

    @_guarded
    def offset_for_timestamp(self, timestamp_ms: int, end_offset: int) -> TimestampOffset | None:
        """The first record with at least this timestamp, if it stands before `end_offset`."""
        return first_at_or_after(self.segments.all, self.log_start_offset, timestamp_ms, end_offset)

    @_guarded
    def offset_of_max_timestamp(self, end_offset: int) -> TimestampOffset | None:
        """The first record with the largest timestamp; None where that is not before `end_offset`, as in Kafka."""
        return with_max_timestamp(self.segments.all, self.log_start_offset, end_offset)

    # -- deleting -------------------------------------------------------------------------------------------------

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
        segments = self.segments
        while len(segments) > 1 and segments.base_offsets[1] <= self.log_start_offset:
            try:
                self.epochs.flush()  # its batches may be the only ones that say where an epoch began
                segments.retire(0)
            except OSError as error:
                logger.warning("%s: cannot be deleted yet: %s", segments[0].file.path, error)
                return

    @_guarded
    def truncate_to(self, offset: int) -> None:
        """Cuts off the batch with `offset` and all behind it. The log end may be lower than `offset` then.

        The caller writes the recovery point's checkpoint afterwards. If it fails, the log takes no appends until a
        truncation succeeds.
        """
        segments = self.segments
        if offset < segments.base_offsets[0]:
            self.truncate_fully_and_start_at(offset)
            return
        if offset >= self.log_end_offset and self._refusal != _TRUNCATING:
            # A leader that was deposed before its first append left an epoch there, which contradicts the next one.
            self.epochs.truncate_from_end(self.log_end_offset)
            return
        self._refusal = self._refusal or _TRUNCATING
        # From the end on: what is left is a log at every moment.
        while len(segments) > 1 and segments.active.base_offset >= offset:
            segments.retire(-1)
            self.log_end_offset = segments.active.next_offset
        segments.check_txn_index(segments.active)
        segments.active.truncate(offset)
        self._after_truncation()

    @_guarded
    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Throws everything away, what is known of producers and epochs too; the log is empty and goes on at
        `offset`."""
        self._refusal = self._refusal or _TRUNCATING
        segments = self.segments
        # A segment named `offset` stands before the others go, so that a restart does not begin at 0.
        if offset in segments.base_offsets:
            segments[segments.base_offsets.index(offset)].clear()
        else:
            segments.create(offset, self.config, segments.active.created_ms)
        while segments.active.base_offset != offset:
            segments.retire(-1)
        while segments.base_offsets[0] != offset:
            segments.retire(0)
        self.log_start_offset = offset
        self.segments.snapshots.forget_all()
        self.producers = Producers()
        self.epochs.clear()
        self._after_truncation()

    def _after_truncation(self) -> None:
        self._truncations += 1
        self.log_end_offset = self.segments.active.next_offset
        self.log_start_offset = min(self.log_start_offset, self.log_end_offset)
        self.durable_offset = min(self.durable_offset, self.log_end_offset)
        self.recovery_point = min(self.recovery_point, self.segments.active.base_offset)
        self.segments.snapshots.forget_after(self.log_end_offset)
        self.producers = self._replayed()
        self.epochs.truncate_from_end(self.log_end_offset)
        if self._refusal == _TRUNCATING:
            self._refusal = ""

    def _replayed(self) -> Producers:
        """The producers as snapshots and batches leave them at the log end."""
        segments = self.segments
        producers, offset = segments.snapshots.load(self.log_end_offset) or (Producers(), segments.base_offsets[0])
        try:
            for _ in replay(producers, segments.all, offset, self.log_end_offset):
                continue
        except Damage as damage:
            logger.error("%s: the producers are known up to damaged batches only: %s", self.directory, damage.reason)
        return producers

    @_guarded
    def complete_swap(self, written: Written) -> None:
        """Puts a compacted segment into its place, after `segments.begin_swap` and a sync of the directory.

        If it fails half-way the log takes no more appends, and the next start completes it.
        """
        try:
            self.segments.complete_swap(written, self.config)
        except OSError as error:
            self._refusal = f"a compacted segment could not take its place; the next start completes it: {error}"
            logger.error("%s: %s", self.directory, self._refusal)
            raise

    # -- durability -----------------------------------------------------------------------------------------------

    @_guarded
    def begin_flush(self, *, settle: bool, with_active: bool = True) -> Flush | None:
        """What has to be waited for until everything appended so far is durable, or settled (flush.py).

        None when nothing has to. `end_flush` must follow, in this thread. Without the active segment it syncs nothing
        that still grows.
        """
        segments = self.segments.all
        end_offset = self.log_end_offset if with_active else segments[-1].base_offset
        if self.is_distrusted:
            raise OSError(self._refusal)
        since = self.recovery_point if settle else self.durable_offset
        if settle and with_active:
            self.segments.take_snapshot(self.producers, end_offset)
        has_new_names = self.segments.changes != self._synced_changes
        involved = segments if with_active else segments[:-1]
        cuts = [(segment, segment.cuts) for segment in involved if segment.cuts != segment.cuts_synced]
        if end_offset <= since and not has_new_names and not cuts and not (settle and self.epochs.is_stale):
            return None
        touched = [segment for segment in involved if segment.next_offset > self.recovery_point]
        data = [
            segment.file.syncer()
            for segment in involved
            if segment.next_offset > self.durable_offset or segment.cuts != segment.cuts_synced
        ]
        derived = [file.syncer() for segment in touched for file in segment.index_files()] if settle else []
        if settle:
            for file in self.segments.snapshots.files_from(self.recovery_point):
                derived.append(file.syncer())
                file.close()
        return Flush(
            self._disk,
            end_offset,
            data,
            derived,
            [self.epochs.writing()] if settle and self.epochs.is_stale else [],
            [self.directory, f"{self.directory}/.."] if has_new_names else [],
            self.segments.changes,
            cuts,
            self._truncations,
            settles=settle,
        )

    def end_flush(self, flush: Flush, error: OSError | None = None) -> None:
        """Takes note of how `flush.run` ended: with `error`, if it raised that.

        If the device did not take the batches, the log takes no more appends, and the next start copies them.
        """
        if isinstance(error, DataNotSynced):
            self._distrust(error)
        if error is not None or self.is_distrusted:
            return
        for segment, count in flush.cuts:
            segment.cuts_synced = max(segment.cuts_synced, count)
        if flush.truncations != self._truncations:
            return  # other batches may stand before the offset that was flushed
        self.durable_offset = max(self.durable_offset, flush.end_offset)
        self._synced_changes = max(self._synced_changes, flush.changes)
        if flush.settles:
            self.recovery_point = max(self.recovery_point, flush.end_offset)

    def _distrust(self, error: OSError) -> None:
        self.is_distrusted = True
        self._refusal = f"the log could not be synced: {error}"
        logger.error("%s: no more appends until the next start: %s", self.directory, self._refusal)
        path = f"{self.directory}/{UNSYNCED}"
        try:
            self._disk.write_whole(path, str(error).encode())
        except OSError as second:
            logger.error("%s could not be written: copy this partition from a backup before a start: %s", path, second)

    @_guarded
    def flush(self) -> None:
        """Makes everything appended so far durable, and what is derived from it, waiting for the device."""
        flush = self.begin_flush(settle=True)
        if flush is None:
            return
        try:
            flush.run()
        except OSError as error:
            self.end_flush(flush, error)
            raise
        self.end_flush(flush)

    def close(self) -> None:
        """Completes the indexes, makes everything durable and gives the files back."""
        try:
            self.segments.active.deactivate()
            self.flush()
        finally:
            self.close_without_flush()

    def close_without_flush(self) -> None:
        """Gives the files back, for instance before the directory is renamed and deleted."""
        self._refusal = "the log is closed"
        self.segments.close()
