"""The timestamps of one segment: the largest of all, and where a search for one begins.

    <base offset>.timeindex    the largest timestamp up to a batch, now and then (index.py)

Nobody has looked at the entries of the index before they are used. Each one that is used stands in order between the
two beside it, and the batch that it names has that timestamp. Whether entries are missing at the end, which would make
the segment look older than it is, the batches behind the last one tell.
"""

from contextlib import suppress

from odradek.broker.disk.disk import Disk, File
from odradek.broker.log.batches import Damage, walk
from odradek.broker.log.index import CorruptIndex, TimeEntry, TimeIndex
from odradek.broker.log.segment_reader import SegmentReader
from odradek.protocol.batches.batch import HEADER_SIZE, read_header

NO_TIMESTAMP = -1
# So much of the log behind the last entry of a time index is asked whether the index lacks entries.
_CHECKED_BYTES = 1 << 20


class TimedFile(SegmentReader):
    """The batches of one segment, and their timestamps. Every method may raise OSError."""

    __slots__ = ("_first_timestamp_ms", "_is_max_sure", "_max_timestamp", "_time_index", "_time_index_path")

    def __init__(self, disk: Disk, file: File, offset_index_path: str, time_index_path: str, base_offset: int) -> None:
        super().__init__(disk, file, offset_index_path, base_offset)
        self._time_index: TimeIndex | None = None
        self._time_index_path = time_index_path
        self._first_timestamp_ms: int | None = None
        self._max_timestamp: tuple[int, int] | None = None
        self._is_max_sure = False  # whether the log was asked, too, and not the index alone

    @property
    def time_index(self) -> TimeIndex:
        """The index, as its file has it; one that is not whole is built anew first."""
        if self._time_index is None:
            index = TimeIndex(self._disk, self._time_index_path, self.base_offset)
            if index.is_plausible(self.file.size_bytes):
                self._time_index = index
            else:
                index.close()
                self.rebuild_indexes(f"{index.path} is missing or cut short")
        assert self._time_index is not None
        return self._time_index

    @property
    def first_timestamp_ms(self) -> int:
        """max_timestamp of the first batch, from which rolling by time counts; -1 when it has none."""
        if self._first_timestamp_ms is None:
            header = self.file.pread(HEADER_SIZE, 0)
            if 0 < len(header) < HEADER_SIZE:
                raise Damage(self.file.path, 0, f"{len(header)} bytes are no whole batch header")
            self._first_timestamp_ms = read_header(header).max_timestamp if header else NO_TIMESTAMP
        return self._first_timestamp_ms

    @property
    def max_timestamp_ms(self) -> int:
        """The largest timestamp in the segment, or -1."""
        return self._known_max_timestamp()[0]

    @property
    def max_timestamp_offset(self) -> int:
        """The last offset of the first batch that has the largest timestamp; the base offset without any."""
        return self._known_max_timestamp()[1]

    def _known_max_timestamp(self) -> tuple[int, int]:
        if self._max_timestamp is None or not self._is_max_sure:
            self._make_sure_of_max_timestamp()
        assert self._max_timestamp is not None
        return self._max_timestamp

    def _make_sure_of_max_timestamp(self) -> None:
        """Asks the time index, whose last entry covers all up to the last entry of the other index, and the log.

        The entry's batch must bear it out, and of those behind it none that it covers may have a larger timestamp: else
        entries are missing. That is seen at once where timestamps rise, so that no more than a part of them is read.
        """
        last = self.time_index.last
        if last is not None and not self.bears_out(*last):
            self.rebuild_indexes(f"{self.time_index.path} does not know the largest timestamp")
            return
        largest = (NO_TIMESTAMP, self.base_offset) if last is None else (last.timestamp_ms, last.offset)
        covered = self._last_indexed()
        start = 0 if last is None else self.locate(last.offset)
        found = self._largest_behind(largest, start, min(covered, start + _CHECKED_BYTES))
        if found != largest:
            self.rebuild_indexes(f"{self.time_index.path} lacks an entry for timestamp {found[0]}")
            return
        self._max_timestamp = self._largest_behind(largest, max(covered, start), self.file.size_bytes)
        self._is_max_sure = True

    def _largest_behind(self, largest: tuple[int, int], start: int, end: int) -> tuple[int, int]:
        """The largest timestamp of all that is known, `largest`, and of the batches that begin in [start, end)."""
        with suppress(Damage):  # a reader meets it
            for at, header in walk(self.file, start, self.file.size_bytes) if start < end else ():
                if at >= end:
                    break
                if header.max_timestamp > largest[0]:
                    largest = (header.max_timestamp, header.last_offset)
        return largest

    def bears_out(self, timestamp_ms: int, offset: int) -> bool:
        """Whether the batch that holds `offset` has this largest timestamp, as an entry of the time index says."""
        try:
            data = self.file.pread(HEADER_SIZE, self.locate(offset))
        except Damage:
            return False
        if len(data) < HEADER_SIZE:
            return False
        header = read_header(data)
        return header.base_offset <= offset <= header.last_offset and header.max_timestamp == timestamp_ms

    def floor_times(self, timestamp_ms: int) -> list[TimeEntry]:
        """The last entry of the time index that is no later than `timestamp_ms`, and the one before it, both of which
        the log bears out."""
        try:
            entries = self.time_index.floor_pair(timestamp_ms)
            if all(self.bears_out(*entry) for entry in entries):
                return entries
            why = f"an entry of {self.time_index.path} is wrong: one of {entries}"
        except CorruptIndex as error:
            why = str(error)
        self.rebuild_indexes(why)
        return self.time_index.floor_pair(timestamp_ms)

    def _last_indexed(self) -> int:
        last = self.offset_index.last
        return 0 if last is None else self.indexed_position(last.offset)
