"""The two indexes of a segment, and what the next entries are made of: all that memory derives from the `.log` file.

An index is opened with its first use, so that a start touches the files of the last segment only. One that is missing
or cut short is rebuilt from the log then; one whose entries the log does not bear out, when somebody uses such an entry
(batch_locator.py, segment_timestamps.py). Both are rebuilt together, in one walk, which loses nothing.
"""

import logging
from contextlib import suppress

from odradek.broker.disk.disk import Disk, File
from odradek.broker.log.batches import Damage, walk_segment
from odradek.broker.log.config import LogConfig
from odradek.broker.log.index import OffsetIndex, TimeIndex
from odradek.broker.log.index_rows import IndexRows
from odradek.broker.log.segment_facts import NO_TIMESTAMP

logger = logging.getLogger(__name__)

_NOT_COUNTED = 0


class SegmentIndexes:
    """The offset index and the time index of one segment. Every method may raise OSError."""

    __slots__ = (
        "_disk",
        "_index_interval_bytes",
        "_offset_index",
        "_offset_index_path",
        "_time_index",
        "_time_index_path",
        "base_offset",
        "file",
        "first_timestamp_ms",
        "indexed_position",
        "is_ready",
        "is_rebuilt",
        "largest",
        "resume_points",
        "size_bytes_with_next",
    )

    def __init__(
        self,
        disk: Disk,
        file: File,
        offset_index_path: str,
        time_index_path: str,
        base_offset: int,
        index_interval_bytes: int,
    ) -> None:
        self._disk = disk
        self._index_interval_bytes = index_interval_bytes
        self._offset_index: OffsetIndex | None = None
        self._offset_index_path = offset_index_path
        self._time_index: TimeIndex | None = None
        self._time_index_path = time_index_path
        self.file = file
        self.base_offset = base_offset
        self.is_rebuilt = False
        self.resume_points: dict[int, int] = {}
        """Positions that no index has to be asked for: where readers will go on, by offset. Always the same dict."""
        self.size_bytes_with_next = _NOT_COUNTED
        """The least `segment.index.bytes` with which both indexes take one more row; 0: `count_size_bytes` tells."""
        self.first_timestamp_ms: int | None = None
        """max_timestamp of the first batch, -1 when it has none; None: nobody has looked."""
        self.largest = (NO_TIMESTAMP, base_offset)
        """The largest timestamp, and the last offset of the first batch that has it."""
        self.indexed_position = 0
        """Where the last batch with an entry starts, 0 without any."""
        self.is_ready = False
        """Whether these two are what the log says: both indexes are open, and an append needs no file but its own."""

    @property
    def offset_index(self) -> OffsetIndex:
        """The index, as its file has it; one that is not whole is rebuilt first."""
        if self._offset_index is None:
            index = OffsetIndex(self._disk, self._offset_index_path, self.base_offset)
            if index.is_plausible(self.file.size_bytes):
                self._offset_index = index
            else:
                index.close()
                self.rebuild(f"{self._offset_index_path} is missing or cut short")
        assert self._offset_index is not None
        return self._offset_index

    @property
    def time_index(self) -> TimeIndex:
        """The index, as its file has it; one that is not whole is rebuilt first."""
        if self._time_index is None:
            index = TimeIndex(self._disk, self._time_index_path, self.base_offset)
            if index.is_plausible(self.file.size_bytes):
                self._time_index = index
            else:
                index.close()
                self.rebuild(f"{self._time_index_path} is missing or cut short")
        assert self._time_index is not None
        return self._time_index

    @property
    def opened(self) -> list[TimeIndex | OffsetIndex]:
        """Those that were used so far. That of time first: an entry for an offset says that the largest timestamp up to
        there is known, too."""
        return [index for index in (self._time_index, self._offset_index) if index is not None]

    def take(self, offset_index: OffsetIndex, time_index: TimeIndex) -> None:
        """Takes over indexes that were opened before the log's file."""
        self._offset_index, self._time_index = offset_index, time_index

    def _both(self) -> tuple[OffsetIndex, TimeIndex]:
        """Both, whatever their files hold."""
        if self._offset_index is None:
            self._offset_index = OffsetIndex(self._disk, self._offset_index_path, self.base_offset)
        if self._time_index is None:
            self._time_index = TimeIndex(self._disk, self._time_index_path, self.base_offset)
        return self._offset_index, self._time_index

    # -- growing --------------------------------------------------------------------------------------------------

    def count_size_bytes(self) -> int:
        """Brings `size_bytes_with_next` up to date, and returns it."""
        counted = max(self.offset_index.size_bytes_with_next, self.time_index.size_bytes_with_next)
        self.size_bytes_with_next = counted
        return counted

    def note(self, position: int, last_offset: int, max_timestamp: int, config: LogConfig) -> bool:
        """Takes the batch at `position`, the last one so far, into account: its timestamp, and an entry when due.

        `largest` and `indexed_position` are known up to the batch before. Returns whether so many entries wait that
        they are to be written.
        """
        if position == 0:
            self.first_timestamp_ms = max_timestamp
        largest, indexed = self.largest, self.indexed_position
        if max_timestamp > largest[0]:
            largest = self.largest = (max_timestamp, last_offset)
        if position - indexed <= config.index_interval_bytes:
            return False
        if config.segment_index_bytes < (self.size_bytes_with_next or self.count_size_bytes()):
            return False
        offset_index = self.offset_index
        self.time_index.append_if_larger(*largest)
        offset_index.append(last_offset, position)
        self.indexed_position = position
        self.count_size_bytes()
        return offset_index.is_page_due

    def complete(self, largest: tuple[int, int]) -> None:
        """For a segment that takes no more batches, with its largest timestamp. What cannot be written now waits in
        memory."""
        self.time_index.append_if_larger(*largest)
        self.size_bytes_with_next = _NOT_COUNTED
        self.write_out()

    def write_out(self) -> None:
        """Writes the entries that wait in memory."""
        for index in self.opened:
            index.write_out()

    # -- mending --------------------------------------------------------------------------------------------------

    def clear(self) -> None:
        """Drops all entries, for a segment without batches.

        Whatever the rows are: they need not be whole, nor in an order that a search could rely on.
        """
        self._forget()
        for index in self._both():
            index.replace(b"")
        self.first_timestamp_ms = NO_TIMESTAMP
        self.settle((NO_TIMESTAMP, self.base_offset))

    def truncate(self, position: int, offset: int) -> None:
        """Drops the entries of the batches from `position` on, the first of which has the base offset `offset`."""
        self._forget()
        self.time_index.truncate_to_offset(offset)
        self.offset_index.truncate_to_position(position)

    def trust_last_entries(self) -> None:
        """Takes what the last entries say, which the log bears out: batches behind them are not known."""
        time = self.time_index.last
        self.settle((NO_TIMESTAMP, self.base_offset) if time is None else (time.timestamp_ms, time.offset))
        self.is_ready = False

    def settle(self, largest: tuple[int, int]) -> None:
        """Takes note of the largest timestamp of all, and of the last entry, which the log bears out."""
        entry = self.offset_index.last
        self.largest, self.indexed_position = largest, 0 if entry is None else entry.position
        self.is_ready = True

    def rebuild(self, why: str) -> None:
        """Rebuilds both indexes from the log. What stands behind its first damage is not indexed.

        Nothing is changed before all of it was read: within `Disk.cached_only()` that may be refused half-way.
        """
        rows = IndexRows(self.base_offset, self._index_interval_bytes)
        with suppress(Damage):  # recovery cuts it off, or a reader meets it
            for _, header in walk_segment(self.file, 0, self.base_offset):
                rows.note(header, header.size_bytes)
        directory = self._offset_index_path.rpartition("/")[0]
        logger.warning("%s, segment %d: the indexes are built anew: %s", directory, self.base_offset, why)
        offset_index, time_index = self._both()
        offset_index.replace(rows.offsets)
        time_index.replace(rows.complete_times())
        self._forget()
        self.first_timestamp_ms = rows.first_timestamp_ms
        self.settle(rows.max_timestamp)
        self.is_rebuilt = True

    def _forget(self) -> None:
        self.resume_points.clear()
        self.is_ready = False
        self.size_bytes_with_next = _NOT_COUNTED

    def close(self) -> None:
        for index in self.opened:
            index.close()
