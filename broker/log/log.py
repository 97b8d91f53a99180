"""The log of one partition: its records in order, on disk in Kafka's own format (UnifiedLog.scala, LocalLog.scala).

    log_start_offset <= everything that may be read < log_end_offset (the offset that the next record gets)
    recovery_point (no start looks before it) <= durable_offset (all before is on the device) <= log_end_offset
    durable_log_start_offset: where the log starts at least after a loss of power, for a checkpoint says so

It consists of segments (segment.py), of which the last one grows, and knows its idempotent producers (producers.py)
and leader epochs (epochs.py). How far consumers may read, the high watermark, is the replica's business.

How it grows and is cut at its end stands in log_end.py. Here it is opened, read, deleted from its beginning, and made
durable. All calls come from one thread and none suspends. After a failed sync the page cache cannot be trusted, so that
the log takes no more appends until the next start, which copies what is in doubt.
"""

import logging
from collections.abc import Callable

from odradek.broker.disk.disk import Disk
from odradek.broker.disk.file_slice import SLICE_BYTES_MIN
from odradek.broker.log.batch_epochs import BatchEpochs
from odradek.broker.log.config import LogConfig
from odradek.broker.log.flush import DataNotSynced, Flush
from odradek.broker.log.leftovers import UNSYNCED
from odradek.broker.log.log_end import LogEnd
from odradek.broker.log.log_state import LogEvent
from odradek.broker.log.lookup import TimestampOffset, first_at_or_after, with_max_timestamp
from odradek.broker.log.producers import AbortedTxn
from odradek.broker.log.recovery import Recovered, check_end, merge_epochs, recover
from odradek.broker.log.segment import Segment
from odradek.broker.log.segment_reader import NOTHING, FetchData
from odradek.broker.log.segments import Written
from odradek.broker.log.storage_errors import guarded, watched
from odradek.protocol.batches.batch import iterate_batches
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.primitives import Buffer

logger = logging.getLogger(__name__)


def _no_chance() -> float:
    return 0.0


class Log(LogEnd):
    """One partition's log. Every method may raise KafkaError KAFKA_STORAGE_ERROR."""

    __slots__ = ("_has_mark", "_passed_over", "_synced_changes", "is_distrusted")

    def __init__(
        self, disk: Disk, directory: str, config: LogConfig, recovered: Recovered, random: Callable[[], float]
    ) -> None:
        """Use `Log.open`."""
        super().__init__(disk, directory, config, recovered, random)
        self.is_distrusted = False  # a sync failed
        self._has_mark = False  # which the next start will find
        self._synced_changes = -1  # of the segments' names: as far as the directory was synced
        self._passed_over: set[int] = set()  # segments behind which offsets are missing, of which was told

    @classmethod
    @guarded
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
        log.durable_log_start_offset = log_start_offset
        merge_epochs(log.epochs, recovered, log.log_start_offset, log.log_end_offset)
        log.epochs.doubt(log.batch_epochs)
        return log

    def batch_epochs(self) -> BatchEpochs:
        """What the batches say of leader epochs."""
        return BatchEpochs(self.segments.all, self.log_start_offset, self.log_end_offset)

    @property
    def size_bytes(self) -> int:
        """All segments together, without their indexes."""
        return self.segments.size_bytes

    @property
    def base_offsets(self) -> list[int]:
        """The base offsets of the segments."""
        return list(self.segments.base_offsets)

    # -- reading --------------------------------------------------------------------------------------------------

    def read(self, offset: int, size_bytes_max: int, end_offset: int, at_least_one_batch: bool) -> Buffer:
        """The records of `fetch`."""
        return self.fetch(offset, size_bytes_max, end_offset, at_least_one_batch).records

    @watched
    def fetch(
        self, offset: int, size_bytes_max: int, end_offset: int, at_least_one_batch: bool, *, as_slice: bool = False
    ) -> FetchData:
        """Whole batches from the one with `offset` on, which may begin before it, all before `end_offset`.

        At most `size_bytes_max` bytes, but the first batch in any case if `at_least_one_batch`; out of one segment.
        With `as_slice` they may be a slice of its file, where they are many and nobody has to look at them for aborted
        transactions.

        Raises KafkaError: OFFSET_OUT_OF_RANGE when `offset` is neither in the log nor its end.
        """
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is not between {self.log_start_offset} and {self.log_end_offset}",
            )
        if offset >= end_offset:
            return NOTHING
        segments = self.segments
        as_slice = as_slice and size_bytes_max >= SLICE_BYTES_MIN and not segments.have_aborted(offset)
        for segment in segments.from_offset(offset):
            if offset < segment.next_offset:
                found = segment.read(offset, size_bytes_max, end_offset, at_least_one_batch, as_slice=as_slice)
                if len(found.records):
                    # The end of a segment that grows no more cuts a read, too.
                    is_all = found.is_cut or segment is segments.active or end_offset < segment.next_offset
                    return found if is_all else found._replace(is_cut=True)
                if segment.locate(offset) < segment.size_bytes:
                    return found
                self._pass_over(offset, segment)
        return NOTHING

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

    @watched
    def aborted_transactions(self, offset: int, data: Buffer) -> list[AbortedTxn]:
        """The aborted transactions that have records in `data`, which `fetch` answered for `offset`."""
        if not len(data) or not self.segments.have_aborted(offset):
            return []
        return self.segments.aborted(offset, max(header.last_offset for _, header in iterate_batches(data)) + 1)

    @watched
    def offset_for_timestamp(self, timestamp_ms: int, end_offset: int) -> TimestampOffset | None:
        """The first record with at least this timestamp, if it stands before `end_offset`."""
        return first_at_or_after(self.segments.all, self.log_start_offset, timestamp_ms, end_offset)

    @watched
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

    @watched
    def complete_swap(self, written: Written) -> None:
        """Puts a compacted segment into its place, after `segments.begin_swap` and a sync of the directory.

        If it fails half-way the log takes no more appends, and the next start completes it.
        """
        try:
            self.segments.complete_swap(written, self.config)
        except OSError as error:
            self.condition.fail(f"a compacted segment could not take its place; the next start completes it: {error}")
            logger.error("%s: %s", self.directory, self.condition.why_given_up)
            raise

    # -- durability -----------------------------------------------------------------------------------------------

    @watched
    def begin_flush(self, *, settle: bool, with_active: bool = True) -> Flush | None:
        """What has to be waited for until everything appended so far is durable, or settled (flush.py).

        None when nothing has to. `end_flush` must follow, in this thread. Without the active segment it syncs nothing
        that still grows.
        """
        segments = self.segments.all
        end_offset = self.log_end_offset if with_active else segments[-1].base_offset
        if self.is_distrusted:
            self._leave_mark()
            raise OSError(self.condition.why_given_up)
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
        if error is not None:
            self.on_disk_error(error)
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
        self.condition.fail(f"the log could not be synced: {error}")
        logger.error("%s: no more appends until the next start: %s", self.directory, self.condition.why_given_up)
        self._leave_mark()

    def _leave_mark(self) -> None:
        """Has the next start copy what is in doubt; tried again with each flush and at the end, until the device
        takes it."""
        if self._has_mark:
            return
        path = f"{self.directory}/{UNSYNCED}"
        try:
            # Not synced, for the device may take nothing at all now. Only a start under the same boot of the machine
            # needs it: with the page cache what is in doubt is gone, too.
            marker = self._disk.open(path)
            self._has_mark = True
            try:
                marker.append([self.condition.why_given_up.encode()])
            finally:
                marker.close()
        except OSError as error:
            if not self._has_mark:
                text = "%s could not be written; while it is not there, restart the machine before the broker: %s"
                logger.error(text, path, error)

    @watched
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
        if self.is_distrusted:
            self._leave_mark()
        self.condition.move(LogEvent.CLOSES)
        self.segments.close()
