"""A segment: some consecutive batches of a log in one file, with its indexes (LogSegment.java).

    00000000000000000000.log        the batches, each as it goes over the wire
    00000000000000000000.index      where to begin looking for an offset        (index.py)
    00000000000000000000.timeindex  where to begin looking for a timestamp
    00000000000000000000.txnindex   the aborted transactions, if there are any  (aborted.py)

The name is the base offset: the first offset that may stand in it. A log appends to its last segment, the active one.
State in memory changes only after the write that it describes.

A segment holds its parts, the later ones of which use those before: `indexes` (segment_indexes.py), `locator`
(batch_locator.py), `timestamps` (segment_timestamps.py) and `reader` (segment_reader.py).
"""

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress

from odradek.broker.disk.disk import Disk, File
from odradek.broker.log.aborted import TransactionIndex
from odradek.broker.log.batch_locator import BatchLocator, bounds
from odradek.broker.log.batches import walk_segment
from odradek.broker.log.config import LogConfig
from odradek.broker.log.index import OffsetIndex, TimeIndex
from odradek.broker.log.markers import read_marker
from odradek.broker.log.producers import AbortedTxn
from odradek.broker.log.segment_facts import NO_TIMESTAMP, RELATIVE_OFFSET_MAX
from odradek.broker.log.segment_indexes import SegmentIndexes
from odradek.broker.log.segment_reader import FetchData, SegmentReader
from odradek.broker.log.segment_timestamps import SegmentTimestamps
from odradek.protocol.batches.batch import HEADER_SIZE, BatchHeader, read_header
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.primitives import Buffer

logger = logging.getLogger(__name__)

LOG_SUFFIX = ".log"
OFFSET_INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TXN_INDEX_SUFFIX = ".txnindex"
DELETED_SUFFIX = ".deleted"
# Everything of a segment. The log comes first: once it has another name the segment is gone.
SUFFIXES = (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)

# A segment that has grown to the first of these gets room for what comes next: as much again, up to the second.
RESERVE_FROM_BYTES = 1 << 20
RESERVE_BYTES_MAX = 16 << 20
NO_EPOCH = -1


def segment_path(directory: str, base_offset: int, suffix: str) -> str:
    return f"{directory}/{base_offset:020d}{suffix}"


class Segment:
    """One segment, open for reading and appending. Every method that touches files may raise OSError."""

    __slots__ = (
        "_cut_at",
        "_directory",
        "_disk",
        "_has_reserve",
        "_reserved_bytes",
        "base_offset",
        "config",
        "created_ms",
        "cuts",
        "cuts_synced",
        "file",
        "indexes",
        "jitter_ms",
        "last_leader_epoch",
        "locator",
        "next_offset",
        "reader",
        "timestamps",
        "txn_index",
    )

    def __init__(
        self, disk: Disk, directory: str, base_offset: int, config: LogConfig, now_ms: int, sizes: Mapping[str, int]
    ) -> None:
        """The files of a segment that is there; `sizes` is what the directory holds. Recovery sets what is known."""
        path = segment_path(directory, base_offset, LOG_SUFFIX)
        self.file = disk.open(path, sizes.get(path.rpartition("/")[2]))
        self.base_offset = self.next_offset = base_offset
        interval_bytes = config.index_interval_bytes
        self.indexes = SegmentIndexes(
            disk,
            self.file,
            segment_path(directory, base_offset, OFFSET_INDEX_SUFFIX),
            segment_path(directory, base_offset, TIME_INDEX_SUFFIX),
            base_offset,
            interval_bytes,
        )
        self.locator = BatchLocator(self.indexes, interval_bytes)
        self.timestamps = SegmentTimestamps(self.indexes, self.locator)
        self.reader = SegmentReader(self.indexes, self.locator)
        self._disk = disk
        self._directory = directory
        self._reserved_bytes = RESERVE_FROM_BYTES
        self._cut_at: tuple[int, int] | None = None  # a truncation that has not been completed
        path = segment_path(directory, base_offset, TXN_INDEX_SUFFIX)
        self.txn_index = TransactionIndex(disk, path, base_offset, exists=path.rpartition("/")[2] in sizes)
        self.config = config
        self.cuts = self.cuts_synced = 0
        """How often the file was cut, and how many of these cuts are on the device: before, the tail may come back."""
        self._has_reserve = False
        self.created_ms = now_ms
        self.jitter_ms = 0
        self.last_leader_epoch = NO_EPOCH
        """That of the last batch which a walk came by; -1 where none did."""

    @classmethod
    def create(cls, disk: Disk, directory: str, base_offset: int, config: LogConfig, now_ms: int) -> "Segment":
        """Makes an empty segment; leftovers of an earlier attempt under its name are emptied."""
        try:
            # The log comes last: if one of the files cannot be made there is no segment, only an index to be removed.
            with ExitStack() as undo:
                path = segment_path(directory, base_offset, OFFSET_INDEX_SUFFIX)
                offset_index = OffsetIndex(disk, path, base_offset)
                undo.callback(offset_index.close)
                path = segment_path(directory, base_offset, TIME_INDEX_SUFFIX)
                time_index = TimeIndex(disk, path, base_offset)
                undo.callback(time_index.close)
                offset_index.replace(b"")
                time_index.replace(b"")
                if disk.exists(path := segment_path(directory, base_offset, TXN_INDEX_SUFFIX)):
                    disk.remove(path)
                segment = cls(disk, directory, base_offset, config, now_ms, {})
                undo.pop_all()
            segment.indexes.take(offset_index, time_index)
            segment.file.truncate(0)
            segment.resume(0, base_offset)
            if config.preallocate:
                segment.file.preallocate(config.segment_bytes)
                segment._reserved_bytes, segment._has_reserve = config.segment_bytes, True
        except OSError:
            with suppress(OSError):  # the next attempt, or the next start, removes what is left
                remove_files(disk, retire_files(disk, directory, base_offset))
            raise
        return segment

    # -- reading --------------------------------------------------------------------------------------------------

    @property
    def size_bytes(self) -> int:
        return self.file.size_bytes

    @property
    def first_timestamp_ms(self) -> int:
        """max_timestamp of the first batch, from which rolling by time counts; -1 when it has none."""
        return self.timestamps.first_timestamp_ms

    @property
    def max_timestamp_ms(self) -> int:
        """The largest timestamp in the segment, or -1."""
        return self.timestamps.largest[0]

    @property
    def max_timestamp_offset(self) -> int:
        """The last offset of the first batch that has the largest timestamp; the base offset without any."""
        return self.timestamps.largest[1]

    def read(
        self, offset: int, size_bytes_max: int, end_offset: int, at_least_one_batch: bool, *, as_slice: bool = False
    ) -> FetchData:
        """What `SegmentReader.read` says, up to the last batch."""
        return self.reader.read(
            offset, size_bytes_max, end_offset, at_least_one_batch, self.next_offset, as_slice=as_slice
        )

    def locate(self, offset: int) -> int:
        """The position of the first batch that ends at or after `offset`; the size when there is none."""
        return self.locator.locate(offset)

    def header_at(self, offset: int) -> BatchHeader | None:
        """The header of the batch with `offset`, or of the first behind it; None at the end."""
        data = self.file.pread(HEADER_SIZE, self.locate(offset))
        return read_header(data) if len(data) == HEADER_SIZE else None

    def bears_out_abort(self, txn: AbortedTxn) -> bool:
        """Whether a marker stands where a row of the transaction index says that this transaction was aborted."""
        if not self.base_offset <= txn.last_offset < self.next_offset:
            return False
        header = self.header_at(txn.last_offset)
        if header is None or not header.is_control or header.base_offset != txn.last_offset:
            return False
        try:
            marker = read_marker(self.file.pread(header.size_bytes, self.locate(txn.last_offset)), header)
        except MalformedMessage:
            return False
        return marker is not None and marker.is_abort and header.producer_id == txn.producer_id

    # -- appending ------------------------------------------------------------------------------------------------

    def should_roll(
        self, size_bytes: int, last_offset: int, max_timestamp: int, config: LogConfig, now_ms: int
    ) -> bool:
        """Whether a batch of this size, last offset and timestamp belongs into a new segment (LogSegment.shouldRoll).

        Time is that of the records, measured from the first batch; where it has none, that since the segment was made.
        """
        if last_offset - self.base_offset > RELATIVE_OFFSET_MAX:
            return True
        size_bytes_before = self.file.size_bytes
        if not size_bytes_before:
            return False
        indexes = self.indexes
        first_ms = indexes.first_timestamp_ms
        if first_ms is None:
            first_ms = self.timestamps.first_timestamp_ms
        age_ms = max_timestamp - first_ms if first_ms >= 0 else now_ms - self.created_ms
        return (
            size_bytes_before + size_bytes > config.segment_bytes
            or age_ms > config.segment_ms - self.jitter_ms
            or config.segment_index_bytes < (indexes.size_bytes_with_next or indexes.count_size_bytes())
        )

    def append(self, parts: Sequence[Buffer], last_offset: int, max_timestamp: int, config: LogConfig) -> None:
        """Appends one batch, given in parts."""
        assert 0 <= last_offset - self.base_offset <= RELATIVE_OFFSET_MAX, "roll first"
        assert last_offset >= self.next_offset, "offsets only grow"
        indexes = self.indexes
        if not indexes.is_ready:
            self.timestamps.get_ready()  # nothing may fail once the batch is in the file
        position = self.file.append(parts)
        if position > self._reserved_bytes:
            self._reserve(position, config.segment_bytes)
        self.next_offset = last_offset + 1
        if indexes.note(position, last_offset, max_timestamp, config):
            self.write_indexes()

    def run_length(self, headers: Sequence[BatchHeader], config: LogConfig, now_ms: int) -> int:
        """How many of these batches go into this segment in one write, the first of which belongs there: those that
        would, came they one by one, and no more than both indexes surely have room for."""
        if not self.file.size_bytes:
            return 1  # by which the age of those behind it is measured
        indexes = self.indexes
        free_bytes = config.segment_index_bytes - (indexes.size_bytes_with_next or indexes.count_size_bytes())
        count_max = 1 + max(0, free_bytes) // TimeIndex.ROW.size
        size_bytes = headers[0].size_bytes
        for count, header in enumerate(headers[1:count_max], 1):
            size_bytes += header.size_bytes
            if self.should_roll(size_bytes, header.last_offset, header.max_timestamp, config, now_ms):
                return count
        return min(count_max, len(headers))

    def append_run(self, data: Buffer, headers: Sequence[BatchHeader], config: LogConfig) -> None:
        """Appends several batches, as they are, in one write: all of them, or none."""
        assert headers[0].base_offset >= self.next_offset, "offsets only grow"
        assert headers[-1].last_offset - self.base_offset <= RELATIVE_OFFSET_MAX, "roll first"
        indexes = self.indexes
        if not indexes.is_ready:
            self.timestamps.get_ready()  # nothing may fail once the batch is in the file
        position = self.file.append([data])
        if position > self._reserved_bytes:
            self._reserve(position, config.segment_bytes)
        for header in headers:
            self.next_offset = header.last_offset + 1
            if indexes.note(position, header.last_offset, header.max_timestamp, config):
                self.write_indexes()
            position += header.size_bytes

    def _reserve(self, position: int, segment_bytes: int) -> None:
        """Reserves room for what comes next: as much as there is, within bounds.

        A write into reserved room costs the kernel 13 % (16 KiB) to 27 % (1 MB) less than one that lengthens the file,
        and so does syncing it. Where the file system cannot, or has no more room, everything goes on without.
        """
        self._reserved_bytes = position + min(position, RESERVE_BYTES_MAX)
        self._has_reserve = True
        with suppress(OSError):
            self.file.preallocate(min(self._reserved_bytes, segment_bytes))

    # -- mending --------------------------------------------------------------------------------------------------

    def resume(self, position: int, offset: int) -> None:
        """Forgets all that is known of the batches from `position` on, where the one with base offset `offset` starts.

        Whoever calls this notes them anew: `indexes.note`, and sets `next_offset`.
        """
        self._reserved_bytes = RESERVE_FROM_BYTES
        indexes = self.indexes
        if position == 0:
            indexes.clear()
            return
        if not self._keep_entries(position, offset):
            indexes.rebuild("their last entries before the end are wrong")
            self._keep_entries(position, offset)
        indexes.trust_last_entries()

    def _keep_entries(self, position: int, offset: int) -> bool:
        """Drops the entries of the batches from there on; whether the log bears out the last that are left."""
        indexes = self.indexes
        indexes.truncate(position, offset)
        entry, time = indexes.offset_index.last, indexes.time_index.last
        if entry is not None and (entry.offset >= offset or self.locator.borne_out(entry) is None):
            return False
        return time is None or (time.offset < offset and self.timestamps.bears_out(*time))

    def truncate(self, offset: int) -> int:
        """Cuts off the batch that holds `offset` and all behind it, and returns how many bytes went.

        If it raises OSError, what is before the offset can be read, and nothing is appended before it was done again.
        """
        position = self.locate(offset)
        cut_bytes = self.file.size_bytes - position
        if cut_bytes and position:
            self._cut_at = position, bounds(self.file, self.file.pread(HEADER_SIZE, position), 0, position)[0]
        elif cut_bytes:
            self._cut_at = 0, self.base_offset  # compaction may have taken what stood before the first batch
        if self._cut_at is not None:
            self._cut(*self._cut_at)
        elif self.next_offset > offset:  # and what stood behind the last one
            self.next_offset = self.base_offset
            self.note_from_last_entry()
        return cut_bytes

    def clear(self) -> None:
        """Cuts off everything."""
        self._cut(0, self.base_offset)

    def _cut(self, position: int, offset: int) -> None:
        """Cuts everything from `position` on, where the batch with base offset `offset` starts."""
        self._cut_at = position, offset
        self.file.truncate(position)
        self.cuts += 1
        self.next_offset = offset
        self.resume(position, offset)
        self.txn_index.truncate(offset)
        self.note_from_last_entry()
        self._cut_at = None

    def note_from_last_entry(self) -> None:
        """Reads the headers behind the last entry of the indexes: for `next_offset`, the largest timestamp, the epoch.

        The last entry of the time index knows the largest timestamp up to there. Raises Damage at what is no batch.
        """
        indexes = self.indexes
        if (known := indexes.time_index.last) is not None and not self.timestamps.bears_out(*known):
            indexes.rebuild(f"{indexes.time_index.path} does not know the largest timestamp")
        last = indexes.time_index.last
        position = self.locator.last_indexed_position()
        # At least the last batch comes by, and leaves next_offset as the next start would find it.
        largest = (NO_TIMESTAMP, self.base_offset) if last is None else (last.timestamp_ms, last.offset)
        indexes.is_ready = False
        next_offset, first_ms = self.next_offset, indexes.first_timestamp_ms
        for at, header in walk_segment(self.file, position, self.base_offset):
            self.last_leader_epoch = header.partition_leader_epoch
            if header.max_timestamp > largest[0]:
                largest = (header.max_timestamp, header.last_offset)
            next_offset = header.last_offset + 1
            if at == 0:
                first_ms = header.max_timestamp
        self.next_offset, indexes.first_timestamp_ms, indexes.largest = next_offset, first_ms, largest

    def complete_indexes(self) -> None:
        """For a segment that takes no more batches. What cannot be written now waits in memory."""
        self.indexes.complete(self.timestamps.largest)
        self.txn_index.write_out()

    def write_indexes(self) -> None:
        """Writes the entries that wait in memory."""
        self.indexes.write_out()
        self.txn_index.write_out()

    # -- end ------------------------------------------------------------------------------------------------------

    def deactivate(self) -> None:
        """The segment takes no more batches: completes the indexes, and gives back what was preallocated."""
        self.complete_indexes()
        if self._has_reserve:
            self.file.truncate(self.file.size_bytes)
            self._has_reserve = False
            self.cuts += 1

    def index_files(self) -> list[File]:
        """The files of the indexes that were touched, with all rows written. Raises OSError where some still wait."""
        self.write_indexes()
        for index in (*self.indexes.opened, self.txn_index):
            if index.has_pending:
                raise OSError(f"{index.path}: entries wait in memory, for they could not be written")
        files = [index.file for index in self.indexes.opened]
        if self.txn_index.file is not None:
            files.append(self.txn_index.file)
        return files

    def close(self) -> None:
        self.file.close()
        self.indexes.close()
        self.txn_index.close()

    def retire(self) -> list[str]:
        """Closes the files and gives them names that no log has (`.deleted`); returns these, for removal.

        Raises OSError only if the segment still stands, open and unchanged.
        """
        path = self.file.path
        self._disk.rename(path, path + DELETED_SUFFIX)
        self.close()
        try:
            return [path + DELETED_SUFFIX, *retire_files(self._disk, self._directory, self.base_offset)]
        except OSError as error:
            logger.warning("%s: the next start removes what is left of it: %s", path, error)
            return [path + DELETED_SUFFIX]


def retire_files(disk: Disk, directory: str, base_offset: int) -> list[str]:
    """Renames the files of a segment, or what is left of them, and returns their new names. Raises OSError."""
    retired: list[str] = []
    for suffix in SUFFIXES:
        path = segment_path(directory, base_offset, suffix)
        if disk.exists(path):
            disk.rename(path, path + DELETED_SUFFIX)
            retired.append(path + DELETED_SUFFIX)
    return retired


def remove_files(disk: Disk, paths: Sequence[str]) -> None:
    """Removes files that were retired. Raises OSError."""
    for path in paths:
        disk.remove(path)
