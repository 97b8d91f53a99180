"""The two sparse indexes of a segment, in Kafka's format (OffsetIndex.java, TimeIndex.java).

    <base offset>.index      entries of 8 bytes    i32 offset - base offset, i32 position in the .log file
    <base offset>.timeindex  entries of 12 bytes   i64 timestamp, i32 offset - base offset

An offset entry names a batch: its *last* offset, and where it starts. A time entry (t, o) says: the largest timestamp
up to here is t, and the batch that ends with offset o was the first to have it. An entry of each is added with every
`index.interval.bytes` of log. Both columns only ever increase, so both are searched by halves.

Indexes are derived data, and nobody believes them: an entry that is used must stand in order between the two beside it,
or CorruptIndex is raised; and the batch that it points at must bear it out, which its user looks at (batch_locator.py,
segment_timestamps.py). An index that is wrong is built anew from the log. So new entries wait in memory and go to the
file a page at a time (Kafka's are in a memory map, which the kernel writes when it likes), and an entry that could not
be written stays in memory until it can: no append fails because of its index.
"""

import logging
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from odradek.broker.disk.disk import Disk, File

logger = logging.getLogger(__name__)

# Entries that wait in memory before they are written, and entries that a search reads at once.
PAGE_ENTRIES = 512


class OffsetEntry(NamedTuple):
    """The batch that ends with `offset` starts at `position`."""

    offset: int
    position: int


class TimeEntry(NamedTuple):
    """No timestamp is larger than `timestamp_ms` up to the batch that ends with `offset`, the first to have it."""

    timestamp_ms: int
    offset: int


class CorruptIndex(Exception):
    """Rows that no log can have brought forth; the text names the file and the row."""


class Index:
    """What both have in common: rows of two columns in a file, of which the newest wait in memory."""

    ROW: Struct
    ROWLESS_BYTES_MAX = 1 << 20
    """Up to this size a log may do without a row; above, an index without any counts as lost. (With an
    `index.interval.bytes` above it nothing is found to add, which costs a walk over the log's headers.)"""

    __slots__ = ("_file", "_flushed", "_pending", "base_offset", "count", "last_row")

    def __init__(self, disk: Disk, path: str, base_offset: int) -> None:
        self.base_offset = base_offset
        self._file: File = disk.open(path)
        self._pending = bytearray()
        self._flushed = self._file.size_bytes // self.ROW.size if self.is_whole else 0  # rows in the file
        self.count = self._flushed
        """How many rows there are, those that wait included."""
        self.last_row: tuple[int, int] | None = self._row(self._flushed - 1) if self._flushed else None

    @property
    def path(self) -> str:
        return self._file.path

    @property
    def is_whole(self) -> bool:
        """Whether the file holds a whole number of rows. If not, `replace` before any other use."""
        return self._file.size_bytes % self.ROW.size == 0

    def rows(self) -> Iterator[tuple[int, int]]:
        """All rows as they stand in the file: offsets are relative to the base offset."""
        for low in range(0, self.count, PAGE_ENTRIES):
            yield from self.ROW.iter_unpack(self._read(low, min(low + PAGE_ENTRIES, self.count)))

    def replace(self, rows: bytes | bytearray) -> None:
        """Throws all rows away and takes these, as bytes. Raises OSError."""
        self._file.truncate(0)
        self._flushed = 0
        self._pending = bytearray(rows)
        self.count = len(rows) // self.ROW.size
        self.last_row = self._row(self.count - 1) if rows else None
        self.write_out()

    def write_out(self) -> None:
        """Writes the rows that wait. If that fails they go on waiting, and a line in the log says so."""
        if not self._pending:
            return
        assert self._file.size_bytes == self._flushed * self.ROW.size
        try:
            self._file.append([self._pending])
        except OSError as error:
            logger.warning("%s: %d entries wait in memory: %s", self.path, self.count - self._flushed, error)
            return
        self._flushed = self.count
        self._pending = bytearray()  # a new one, for the old one may be held by the write

    def is_plausible(self, log_size_bytes: int) -> bool:
        """Whether it may be the index of a log of this size; what its rows say is not looked at."""
        return self.is_whole and (self.count > 0 or log_size_bytes <= self.ROWLESS_BYTES_MAX)

    @property
    def file(self) -> File:
        return self._file

    @property
    def has_pending(self) -> bool:
        """Whether rows wait in memory."""
        return len(self._pending) > 0

    @property
    def is_page_due(self) -> bool:
        """Whether as many rows wait as are written together."""
        return len(self._pending) >= PAGE_ENTRIES * self.ROW.size

    def is_ordered(self) -> bool:
        """Whether both columns increase from row to row, as they must."""
        before = (-1, -1)
        for row in self.rows():
            if row[0] <= before[0] or row[1] <= before[1]:
                return False
            before = row
        return True

    def close(self) -> None:
        self._file.close()

    def _append(self, row: tuple[int, int]) -> None:
        assert self.last_row is None or (row[0] > self.last_row[0] and row[1] > self.last_row[1]), (self.path, row)
        self._pending += self.ROW.pack(*row)
        self.count += 1
        self.last_row = row

    def _truncate(self, count: int) -> None:
        """Keeps the first `count` rows."""
        if count >= self.count:
            return
        if count < self._flushed:
            self._file.truncate(count * self.ROW.size)
            self._flushed = count
            self._pending = bytearray()
        else:
            del self._pending[(count - self._flushed) * self.ROW.size :]
        self.count = count
        self.last_row = self._row(count - 1) if count else None

    def _floor(self, column: int, value: int) -> int:
        """The number of the last row whose column is at most `value`, or -1."""
        low, high = 0, self.count
        if self.last_row is None or self.last_row[column] <= value:
            return high - 1
        while high - low > PAGE_ENTRIES:
            middle = (low + high) // 2
            if self._row(middle)[column] <= value:
                low = middle
            else:
                high = middle
        data, first = self._read(low, high), low
        while low < high:
            middle = (low + high) // 2
            if self.ROW.unpack_from(data, (middle - first) * self.ROW.size)[column] <= value:
                low = middle + 1
            else:
                high = middle
        return low - 1

    def _ordered_row(self, number: int) -> tuple[int, int]:
        """The row, which must stand in order between the two beside it. Raises CorruptIndex, OSError."""
        first = max(0, number - 1)
        rows = list(self.ROW.iter_unpack(self._read(first, min(number + 2, self.count))))
        before = (-1, -1)
        for at, row in enumerate(rows, first):
            if row[0] < 0 or row[1] < 0 or (at > first and (row[0] <= before[0] or row[1] <= before[1])):
                raise CorruptIndex(f"{self.path} holds {row} in row {at}, which cannot follow {before}")
            before = row
        first_column, second_column = rows[number - first]
        return first_column, second_column

    def _row(self, number: int) -> tuple[int, int]:
        first, second = self.ROW.unpack(self._read(number, number + 1))
        return first, second

    def _read(self, low: int, high: int) -> bytes | bytearray:
        """The bytes of the rows from `low` up to `high`. Raises OSError, also when the file has shrunk under us."""
        size, flushed = self.ROW.size, self._flushed
        if low >= flushed:
            return self._pending[(low - flushed) * size : (high - flushed) * size]
        data = self._file.pread((min(high, flushed) - low) * size, low * size)
        if high > flushed:
            data += self._pending[: (high - flushed) * size]
        if len(data) != (high - low) * size:
            raise OSError(f"{self.path} has lost its end")
        return data


class OffsetIndex(Index):
    """From offsets to positions."""

    ROW = Struct(">ii")

    __slots__ = ()

    @property
    def size_bytes_with_next(self) -> int:
        """The size that the index has with one more row."""
        return (self.count + 1) * 8

    def append(self, offset: int, position: int) -> None:
        self._append((offset - self.base_offset, position))

    @property
    def last(self) -> OffsetEntry | None:
        return None if self.last_row is None else self._entry(self.last_row)

    def floor_offset(self, offset: int) -> OffsetEntry | None:
        """The last batch indexed that ends at or before `offset`. Raises CorruptIndex, OSError."""
        number = self._floor(0, offset - self.base_offset)
        return None if number < 0 else self._entry(self._ordered_row(number))

    def floor_position(self, position: int) -> OffsetEntry | None:
        """The last batch indexed that starts at or before `position`. Raises CorruptIndex, OSError."""
        number = self._floor(1, position)
        return None if number < 0 else self._entry(self._ordered_row(number))

    def truncate_to_position(self, position: int) -> None:
        """Forgets the batches that start at `position` or after it."""
        self._truncate(self._floor(1, position - 1) + 1)

    def _entry(self, row: tuple[int, int]) -> OffsetEntry:
        return OffsetEntry(row[0] + self.base_offset, row[1])


class TimeIndex(Index):
    """From timestamps to offsets."""

    ROW = Struct(">qi")

    __slots__ = ()

    @property
    def size_bytes_with_next(self) -> int:
        """The size that the index has with one more row, and that which a segment gets when it is rolled or closed."""
        return (self.count + 2) * 12

    def append_if_larger(self, timestamp_ms: int, offset: int) -> None:
        """Adds the entry unless the last one has the timestamp already; -1, no timestamp, is never added.

        Nor is one that a damaged header claims for a batch before that of the last entry.
        """
        last_ms, last_offset = self.last_row or (-1, -1)
        if timestamp_ms > last_ms and offset - self.base_offset > last_offset:
            self._append((timestamp_ms, offset - self.base_offset))

    @property
    def last(self) -> TimeEntry | None:
        return None if self.last_row is None else self._entry(self.last_row)

    def floor_pair(self, timestamp_ms: int) -> list[TimeEntry]:
        """The last entry whose timestamp is at most `timestamp_ms`, and the one before it.

        Raises CorruptIndex, OSError.
        """
        number = self._floor(0, timestamp_ms)
        return [self._entry(self._ordered_row(each)) for each in (number - 1, number) if each >= 0]

    def truncate_to_offset(self, offset: int) -> None:
        """Forgets the batches that end with `offset` or after it."""
        self._truncate(self._floor(1, offset - self.base_offset - 1) + 1)

    def _entry(self, row: tuple[int, int]) -> TimeEntry:
        return TimeEntry(row[0], row[1] + self.base_offset)
