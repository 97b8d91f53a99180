"""The timestamps of one segment: the largest of all, and where a search for one begins.

    <base offset>.timeindex    the largest timestamp up to a batch, now and then (index.py)

Nobody has looked at the entries of the index before they are used. Each one that is used stands in order between the
two beside it, and the batch that it names has that timestamp. Whether entries are missing at the end, which would make
the segment look older than it is, the batches behind the last one tell.
"""

from contextlib import suppress

from odradek.broker.log.batch_locator import BatchLocator
from odradek.broker.log.batches import Damage, walk
from odradek.broker.log.index import CorruptIndex, TimeEntry
from odradek.broker.log.segment_facts import NO_TIMESTAMP
from odradek.broker.log.segment_indexes import SegmentIndexes
from odradek.protocol.batches.batch import HEADER_SIZE, read_header

# So much of the log behind the last entry of a time index is asked whether the index lacks entries.
_CHECKED_BYTES = 1 << 20


class SegmentTimestamps:
    """The timestamps of one segment's batches. Every method may raise OSError."""

    __slots__ = ("_file", "_indexes", "_locator")

    def __init__(self, indexes: SegmentIndexes, locator: BatchLocator) -> None:
        self._file = indexes.file
        self._indexes = indexes
        self._locator = locator

    @property
    def first_timestamp_ms(self) -> int:
        """max_timestamp of the first batch, from which rolling by time counts; -1 when it has none."""
        first_ms = self._indexes.first_timestamp_ms
        if first_ms is None:
            header = self._file.pread(HEADER_SIZE, 0)
            if 0 < len(header) < HEADER_SIZE:
                raise Damage(self._file.path, 0, f"{len(header)} bytes are no whole batch header")
            first_ms = read_header(header).max_timestamp if header else NO_TIMESTAMP
            self._indexes.first_timestamp_ms = first_ms
        return first_ms

    @property
    def largest(self) -> tuple[int, int]:
        """The largest timestamp in the segment, or -1; and the last offset of the first batch that has it, or the base
        offset."""
        if not self._indexes.is_ready:
            self.get_ready()
        return self._indexes.largest

    def get_ready(self) -> None:
        """Finds out the largest timestamp, and makes the indexes ready for appends.

        Asks the time index, whose last entry covers all up to the last entry of the other index, and the log.

        The entry's batch must bear it out, and of those behind it none that it covers may have a larger timestamp: else
        entries are missing. That is seen at once where timestamps rise, so that no more than a part of them is read.
        """
        indexes = self._indexes
        last = indexes.time_index.last
        if last is not None and not self.bears_out(*last):
            indexes.rebuild(f"{indexes.time_index.path} does not know the largest timestamp")
            return
        largest = (NO_TIMESTAMP, indexes.base_offset) if last is None else (last.timestamp_ms, last.offset)
        covered = self._locator.last_indexed_position()
        start = 0 if last is None else self._locator.locate(last.offset)
        found = self._largest_behind(largest, start, min(covered, start + _CHECKED_BYTES))
        if found != largest:
            indexes.rebuild(f"{indexes.time_index.path} lacks an entry for timestamp {found[0]}")
            return
        indexes.settle(self._largest_behind(largest, max(covered, start), self._file.size_bytes))

    def _largest_behind(self, largest: tuple[int, int], start: int, end: int) -> tuple[int, int]:
        """The largest timestamp of all that is known, `largest`, and of the batches that begin in [start, end)."""
        with suppress(Damage):  # a reader meets it
            for at, header in walk(self._file, start, self._file.size_bytes) if start < end else ():
                if at >= end:
                    break
                if header.max_timestamp > largest[0]:
                    largest = (header.max_timestamp, header.last_offset)
        return largest

    def bears_out(self, timestamp_ms: int, offset: int) -> bool:
        """Whether the batch that holds `offset` has this largest timestamp, as an entry of the time index says."""
        try:
            data = self._file.pread(HEADER_SIZE, self._locator.locate(offset))
        except Damage:
            return False
        if len(data) < HEADER_SIZE:
            return False
        header = read_header(data)
        return header.base_offset <= offset <= header.last_offset and header.max_timestamp == timestamp_ms

    def floor_pair(self, timestamp_ms: int) -> list[TimeEntry]:
        """The last entry of the time index that is no later than `timestamp_ms`, and the one before it, both of which
        the log bears out."""
        indexes = self._indexes
        try:
            entries = indexes.time_index.floor_pair(timestamp_ms)
            if all(self.bears_out(*entry) for entry in entries):
                return entries
            why = f"an entry of {indexes.time_index.path} is wrong: one of {entries}"
        except CorruptIndex as error:
            why = str(error)
        indexes.rebuild(why)
        return indexes.time_index.floor_pair(timestamp_ms)
