"""Whether the two sparse indexes of a segment say what its log says. Each is shown all batches, in order.

An offset entry names the last offset of the batch at its position. Kafka's followers before 4.1 appended several
batches at once and named the last offset of all: a search begins at that position and finds what it looks for, so such
an entry is a note. A time entry names the last offset of the first batch that has this timestamp, larger than any
before; older leaders named the very record, which is a note, too.

Entries may be missing anywhere, for `index.interval.bytes` says how many there are, and those of an active segment wait
in memory. Only the last time entry must be there once a segment takes no more batches.

Source: LogSegment.append, OffsetIndex.java, TimeIndex.java.
"""

from struct import Struct

from odradek.broker.log.index import OffsetEntry, OffsetIndex, TimeEntry, TimeIndex
from odradek.broker.offline.dump.batch_check import RECORDS_BYTES_MAX
from odradek.broker.offline.dump.findings import Inconsistency, Note
from odradek.broker.offline.dump.rows import rows_of
from odradek.broker.offline.dump.stored import Stored
from odradek.protocol.batches.records import iterate_records

NO_TIMESTAMP = -1


class IndexCheck:
    """What both have in common: rows of two columns that only increase."""

    def __init__(self, path: str, data: bytes, row: Struct) -> None:
        """Raises Inconsistency for what needs no log."""
        found = rows_of(data, row)
        self._path = path
        self._row_bytes = row.size
        self._rows = [(first, second) for first, second in found.rows]
        self._zero_rows = found.zero_rows
        self._number: int = 0  # of the next entry to be borne out
        self.notes: list[Note] = []
        before = (NO_TIMESTAMP, -1)
        for number, entry in enumerate(self._rows):
            if entry[0] <= before[0] or entry[1] <= before[1]:
                raise self._inconsistency(number, f"is {entry}, behind {before}: both numbers must increase")
            before = entry
        if found.rest_bytes:
            raise self._inconsistency(len(data) // row.size, f"is cut: {found.rest_bytes} bytes of {row.size}")

    def __len__(self) -> int:
        return len(self._rows)

    def _inconsistency(self, number: int, text: str) -> Inconsistency:
        return Inconsistency(self._path, f"entry {number} {text}", position=number * self._row_bytes)


class OffsetIndexCheck(IndexCheck):
    """An `.index` file."""

    def __init__(self, path: str, data: bytes, base_offset: int) -> None:
        super().__init__(path, data, OffsetIndex.ROW)
        self._base_offset = base_offset
        self._later: tuple[int, OffsetEntry] | None = None  # an entry that names a later batch, and its number

    def take(self, stored: Stored) -> None:
        """Raises Inconsistency."""
        last_offset = stored.header.last_offset
        entry = self._next()
        if entry is not None and entry.position < stored.position:
            raise self._wrong(entry, f"where no batch starts; the next one does at {stored.position}")
        is_named = entry is not None and entry.position == stored.position
        if self._later is not None:
            self._resolve(*self._later, last_offset, is_named=is_named)
        if entry is None or not is_named:
            return
        if entry.offset < last_offset:
            raise self._wrong(entry, f"and the batch there ends with {last_offset}")
        if entry.offset > last_offset:
            self._later = self._number, entry
        self._number += 1

    def _next(self) -> OffsetEntry | None:
        if self._number == len(self._rows):
            return None
        relative_offset, position = self._rows[self._number]
        return OffsetEntry(relative_offset + self._base_offset, position)

    def _resolve(self, number: int, entry: OffsetEntry, last_offset: int, *, is_named: bool) -> None:
        """Looks whether this is the later batch that an entry named. The next entry must come behind it."""
        if is_named or last_offset > entry.offset:
            raise self._unresolved(number, entry)
        if last_offset == entry.offset:
            self._later = None
            text = f"entry {number} names the last offset of a later batch, as Kafka's followers once wrote them"
            self.notes.append(Note(self._path, text))

    def _unresolved(self, number: int, entry: OffsetEntry) -> Inconsistency:
        return self._wrong(entry, "and neither the batch there nor one appended with it ends so", number)

    def _wrong(self, entry: OffsetEntry, text: str, number: int | None = None) -> Inconsistency:
        number = self._number if number is None else number
        return self._inconsistency(number, f"says that offset {entry.offset} is at {entry.position}, {text}")

    def finish(self, size_bytes: int) -> None:
        """Behind the last batch, with which the log ends at `size_bytes`. Raises Inconsistency."""
        if self._later is not None:
            raise self._unresolved(*self._later)
        if (entry := self._next()) is not None:
            raise self._wrong(entry, f"and the log ends at {size_bytes}")


class TimeIndexCheck(IndexCheck):
    """A `.timeindex` file."""

    def __init__(self, path: str, data: bytes, base_offset: int) -> None:
        super().__init__(path, data, TimeIndex.ROW)
        self._base_offset = base_offset
        self._largest = NO_TIMESTAMP

    def take(self, stored: Stored) -> None:
        """Raises Inconsistency."""
        while (entry := self._next()) is not None and entry.offset <= stored.header.last_offset:
            self._bear_out(stored, entry)
            self._number += 1
        self._largest = max(self._largest, stored.header.max_timestamp)

    def _next(self) -> TimeEntry | None:
        if self._number == len(self._rows):
            return None
        timestamp_ms, relative_offset = self._rows[self._number]
        return TimeEntry(timestamp_ms, relative_offset + self._base_offset)

    def _bear_out(self, stored: Stored, entry: TimeEntry) -> None:
        header = stored.header
        if entry.offset < header.base_offset:
            reason = "no batch holds that offset"
        elif entry.timestamp_ms != header.max_timestamp:
            reason = f"the largest timestamp of its batch is {header.max_timestamp}"
        elif entry.timestamp_ms <= self._largest:
            reason = f"a batch before it has {self._largest} already"
        elif entry.offset == header.last_offset:
            return
        elif _has_record(stored, entry):
            text = f"entry {self._number} names the record with the timestamp, as older versions of Kafka did"
            self.notes.append(Note(self._path, f"{text}, and not the last of its batch"))
            return
        else:
            reason = f"its batch ends with {header.last_offset}"
        claim = f"says that {entry.timestamp_ms} is the largest timestamp up to offset {entry.offset}"
        raise self._inconsistency(self._number, f"{claim}, and {reason}")

    def finish(self, end_offset: int, *, is_complete: bool) -> None:
        """Behind the last batch. `is_complete`: the segment takes no more. Raises Inconsistency."""
        if (entry := self._next()) is not None:
            raise self._inconsistency(self._number, f"names offset {entry.offset}, and the log ends at {end_offset}")
        last = self._rows[-1][0] if self._rows else 0 if self._zero_rows else NO_TIMESTAMP
        if is_complete and last < self._largest:
            text = f"is missing: the last one should have the largest timestamp of the segment, {self._largest}"
            raise self._inconsistency(len(self._rows), text)


def _has_record(stored: Stored, entry: TimeEntry) -> bool:
    records = iterate_records(stored.data, size_bytes_max=RECORDS_BYTES_MAX)
    return any((record.timestamp_ms, record.offset) == entry for record in records)
