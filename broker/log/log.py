"""The log of one partition: its records in order, on disk in Kafka's own format (UnifiedLog.scala, LocalLog.scala).

    log_start_offset <= everything that may be read < log_end_offset (the offset that the next record gets)
    recovery_point (no start looks before it) <= durable_offset (all before is on the device) <= log_end_offset
    durable_log_start_offset: where the log starts at least after a loss of power, for a checkpoint says so

It consists of segments (segment.py), of which the last one grows, and knows its idempotent producers (producers.py)
and leader epochs (epochs.py). How far consumers may read, the high watermark, is the replica's business.

It holds its end (log_end.py), where it grows and is cut, and what is known of its durability (log_durability.py). Here
it is opened, read, and deleted from its beginning. All calls come from one thread and none suspends.
"""

import logging
from collections.abc import Callable

from odradek.broker.disk.disk import Disk
from odradek.broker.disk.file_slice import SLICE_BYTES_MIN
from odradek.broker.log.batch_epochs import BatchEpochs
from odradek.broker.log.config import LogConfig
from odradek.broker.log.flush import Flush
from odradek.broker.log.log_end import Appended, LogEnd
from odradek.broker.log.log_state import LogEvent
from odradek.broker.log.lookup import TimestampOffset, first_at_or_after, with_max_timestamp
from odradek.broker.log.producers import AbortedTxn, Producers
from odradek.broker.log.recovery import check_end, merge_epochs, recover
from odradek.broker.log.segment import Segment
from odradek.broker.log.segment_reader import NOTHING, FetchData
from odradek.broker.log.segments import Written
from odradek.broker.log.storage_errors import guarded, watched
from odradek.broker.log.verifications import NO_PROOF, Proof
from odradek.protocol.batches.batch import BatchHeader, iterate_batches
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.primitives import Buffer

logger = logging.getLogger(__name__)


def _no_chance() -> float:
    return 0.0


class Log:
    """One partition's log. Every method may raise KafkaError KAFKA_STORAGE_ERROR."""

    __slots__ = (
        "_passed_over",
        "condition",
        "directory",
        "durability",
        "durable_log_start_offset",
        "end",
        "epochs",
        "segments",
    )

    def __init__(self, end: LogEnd) -> None:
        """Use `Log.open`."""
        self._passed_over: set[int] = set()  # segments behind which offsets are missing, of which was told
        self.end = end
        self.durability = end.durability
        self.condition = end.condition
        self.directory = end.directory
        self.epochs = end.epochs
        self.segments = end.segments
        self.durable_log_start_offset = 0  # what the checkpoint says, wherever the log starts

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
        end = LogEnd(disk, directory, config, recovered, random)
        point = end.log_end_offset if recovered.is_clean else min(recovery_point, end.log_end_offset)
        end.durability.opened(point, is_clean=recovered.is_clean)
        if log_start_offset > end.log_end_offset:
            logger.warning(
                "%s: all %d bytes are dropped, for they end at offset %d and the log starts at %d",
                *(directory, end.segments.size_bytes, end.log_end_offset, log_start_offset),
            )
            end.truncate_fully_and_start_at(log_start_offset)
        end.log_start_offset = max(log_start_offset, end.log_start_offset)
        merge_epochs(end.epochs, recovered, end.log_start_offset, end.log_end_offset)
        log = cls(end)
        log.durable_log_start_offset = log_start_offset
        log.epochs.doubt(log.batch_epochs)
        return log

    # -- what is known --------------------------------------------------------------------------------------------

    @property
    def log_start_offset(self) -> int:
        """Where the log starts; nothing before it may be read."""
        return self.end.log_start_offset

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record gets."""
        return self.end.log_end_offset

    @property
    def durable_offset(self) -> int:
        """All before it is on the device."""
        return self.durability.durable_offset

    @property
    def recovery_point(self) -> int:
        """No start looks before it."""
        return self.durability.recovery_point

    @property
    def is_distrusted(self) -> bool:
        """Whether a sync failed."""
        return self.durability.is_distrusted

    @property
    def producers(self) -> Producers:
        """The idempotent and transactional producers, as they stand at the log end."""
        return self.end.producers

    @property
    def config(self) -> LogConfig:
        return self.end.config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self.end.config = config

    @property
    def has_rolled(self) -> bool:
        """Whether a segment was closed; for the owner to see, who syncs that and clears this."""
        return self.end.has_rolled

    @has_rolled.setter
    def has_rolled(self, has_rolled: bool) -> None:
        self.end.has_rolled = has_rolled

    @property
    def on_disk_error(self) -> Callable[[OSError], None]:
        """Whom to tell what the disk raises: the owner, who may have more on that disk."""
        return self.end.on_disk_error

    @on_disk_error.setter
    def on_disk_error(self, on_disk_error: Callable[[OSError], None]) -> None:
        self.end.on_disk_error = on_disk_error

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

    # -- the end: log_end.py says more ----------------------------------------------------------------------------

    def begin_epoch(self, leader_epoch: int) -> None:
        """From now on the leader of this epoch appends."""
        self.end.begin_epoch(leader_epoch)

    def append(
        self, batch: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int, proof: Proof = NO_PROOF
    ) -> Appended:
        """Appends a batch that passed `check_batch`, as the leader of `leader_epoch` (`LogEnd.append`)."""
        return self.end.append(batch, header, leader_epoch, now_ms, proof)

    def append_replicated(self, data: Buffer, leader_epoch: int, now_ms: int) -> int:
        """Appends what the leader of `leader_epoch` has, byte for byte; returns how many bytes that were
        (`LogEnd.append_replicated`)."""
        return self.end.append_replicated(data, leader_epoch, now_ms)

    def roll(self, now_ms: int) -> None:
        """Begins a new segment, unless the last one is empty."""
        self.end.roll(now_ms)

    def truncate_to(self, offset: int) -> None:
        """Cuts off the batch with `offset` and all behind it (`LogEnd.truncate_to`)."""
        self.end.truncate_to(offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Throws everything away; the log is empty and goes on at `offset` (`LogEnd.truncate_fully_and_start_at`)."""
        self.end.truncate_fully_and_start_at(offset)

    # -- reading --------------------------------------------------------------------------------------------------

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
        end = self.end
        if not end.log_start_offset <= offset <= end.log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is not between {end.log_start_offset} and {end.log_end_offset}",
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

        The caller has written the checkpoint before, or deletes one segment a call and syncs the directory after each:
        else a loss of power may leave a log with a hole. A segment that cannot be deleted now goes with the next call.
        Raises KafkaError: OFFSET_OUT_OF_RANGE behind the log end.
        """
        if offset > self.log_end_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} lies behind {self.log_end_offset}")
        if offset > self.log_start_offset:
            self.end.log_start_offset = offset
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
        end = self.end
        return self.durability.begin(end.log_end_offset, end.producers, settle=settle, with_active=with_active)

    def end_flush(self, flush: Flush, error: OSError | None = None) -> None:
        """Takes note of how `flush.run` ended: with `error`, if it raised that.

        If the device did not take the batches, the log takes no more appends, and the next start copies them.
        """
        self.durability.end(flush, error)
        if error is not None and not self.durability.is_dropped:
            self.on_disk_error(error)

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

    @watched
    def complete(self) -> None:
        """For a log that takes no more appends: completes the indexes, and gives back what was preallocated."""
        self.segments.active.deactivate()

    def close(self) -> None:
        """Completes the indexes, makes everything durable, waiting for the device, and gives the files back."""
        try:
            self.complete()
            self.flush()
        finally:
            self.close_without_flush()

    def close_without_flush(self) -> None:
        """Gives the files back. A flush that is under way ends with `end_flush` all the same."""
        self.durability.leave_mark()
        self.condition.move(LogEvent.CLOSES)
        self.segments.close()

    def drop(self) -> None:
        """Gives the files back before the directory gets another name, or goes. How a flush ends counts no more."""
        self.close_without_flush()
        self.durability.is_dropped = True
