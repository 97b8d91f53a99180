"""Where in a `.log` file the batch with an offset starts, by the offset index.

Nobody has looked at the entries of the index before they are used. But an entry says where a batch starts, and that
batch says its offsets. So each entry that is used is checked: it stands in order between the two beside it, its
position is within the log, and a batch begins there that bears it out. An index that is wrong is rebuilt from the log;
so is one that has no entry for a long stretch of the log, where every search would walk.
"""

from odradek.broker.disk.disk import File
from odradek.broker.log.batches import BOUNDS, LENGTH_OVERHEAD, Damage
from odradek.broker.log.index import CorruptIndex, OffsetEntry
from odradek.broker.log.segment_indexes import SegmentIndexes
from odradek.protocol.batches.batch import HEADER_SIZE, MAGIC
from odradek.protocol.primitives import Buffer

LOCATE_BYTES = 4096 + 2 * HEADER_SIZE
"""A search for an offset reads this much at a time: an index interval and the next header."""
WALKED_BATCHES = 16
"""So many headers are walked rather than looking into the index, which takes some reads, too."""
# Readers that go on where they stopped find their position here instead of in the index.
_RESUME_POINTS = 16
_MAGIC_POSITION = 16
# A search that walks further than this behind an entry finds an index that lacks some: Kafka's followers write one for
# each answer of a Fetch, by default for 1 MiB.
_WALKED_BYTES_MAX = 4 << 20


class BatchLocator:
    """Finds the batches of one segment. Every method may raise OSError."""

    __slots__ = ("_base_offset", "_file", "_indexes", "_resume_points", "_walked_bytes_max")

    def __init__(self, indexes: SegmentIndexes, index_interval_bytes: int) -> None:
        self._indexes = indexes
        self._file = indexes.file
        self._base_offset = indexes.base_offset
        self._resume_points = indexes.resume_points
        # How far a search may walk behind an entry of an index that lacks none.
        self._walked_bytes_max = max(_WALKED_BYTES_MAX, 4 * index_interval_bytes)

    def locate(self, offset: int) -> int:
        """The position of the first batch that ends at or after `offset`; the size when there is none."""
        position = self._resume_points.get(offset)
        if position is not None:
            return position
        data, data_position = self._from_before(offset)
        walked_from, count = data_position, 0
        position, end = data_position, self._file.size_bytes
        while position < end:
            start = position - data_position
            if start + HEADER_SIZE > len(data):
                data, data_position, start = self._file.pread(LOCATE_BYTES, position), position, 0
            base_offset, size_bytes, last_offset_delta = bounds(self._file, data, start, position)
            if base_offset + last_offset_delta >= offset:
                break
            position += size_bytes
            count += 1
        indexes = self._indexes
        if position - walked_from > self._walked_bytes_max and count > WALKED_BATCHES and not indexes.is_rebuilt:
            indexes.rebuild(f"{indexes.offset_index.path} lacks entries behind position {walked_from}")
        return position

    def remember(self, next_offset: int, stop: int) -> None:
        """Notes where a reader that took the batches up to `stop` will go on."""
        points = self._resume_points
        if next_offset not in points and len(points) >= _RESUME_POINTS:
            del points[next(iter(points))]
        points[next_offset] = stop

    def indexed_position(self, offset: int) -> int:
        """The position of an indexed batch that ends at or before `offset`, or else 0: all before it ends before."""
        return self._from_before(offset)[1]

    def last_indexed_position(self) -> int:
        """The position of the last indexed batch, or else 0."""
        last = self._indexes.offset_index.last
        return 0 if last is None else self.indexed_position(last.offset)

    def _from_before(self, offset: int) -> tuple[Buffer, int]:
        """What stands at an indexed batch before which all end before `offset`, and its position.

        Where the index knows none: nothing, and position 0.
        """
        indexes = self._indexes
        try:
            entry = indexes.offset_index.floor_offset(offset)
            if entry is None:
                return b"", 0
            if (data := self.borne_out(entry)) is not None:
                return data, entry.position
            why = f"{indexes.offset_index.path} says that offset {entry.offset} is at {entry.position}"
        except CorruptIndex as error:
            why = str(error)
        indexes.rebuild(why)
        entry = indexes.offset_index.floor_offset(offset)
        return b"", 0 if entry is None else entry.position

    def indexed_before(self, end: int, end_offset: int | None) -> OffsetEntry | None:
        """One that starts a batch which ends before `end_offset`, if given, or starts before `end`: all before it is
        whole."""
        try:
            return self._last_indexed_before(end, end_offset)
        except CorruptIndex as error:
            self._indexes.rebuild(str(error))
            return self._last_indexed_before(end, end_offset)

    def _last_indexed_before(self, end: int, end_offset: int | None) -> OffsetEntry | None:
        offset_index = self._indexes.offset_index
        entry = offset_index.floor_position(end)
        if entry is None or end_offset is None:
            return entry
        by_offset = offset_index.floor_offset(end_offset - 1)
        return None if by_offset is None else min(entry, by_offset, key=lambda entry: entry.position)

    def borne_out(self, entry: OffsetEntry) -> Buffer | None:
        """What stands where the entry points to, if a batch begins there that bears it out."""
        if not 0 <= entry.position <= self._file.size_bytes - HEADER_SIZE:
            return None
        data = self._file.pread(LOCATE_BYTES, entry.position)
        return data if self.is_true(entry, data, 0) else None

    def is_true(self, entry: OffsetEntry, data: Buffer, start: int) -> bool:
        """Whether a batch begins at `data[start:]`, where the entry points to, that bears it out.

        The entry names the last offset of that batch, or of a later one that was appended together with it (Kafka's
        followers write such entries); so the batch begins at or before the entry's offset.
        """
        if start + HEADER_SIZE > len(data) or data[start + _MAGIC_POSITION] != MAGIC:
            return False
        base_offset, batch_length, last_offset_delta = BOUNDS.unpack_from(data, start)
        size_bytes = batch_length + LENGTH_OVERHEAD
        if not HEADER_SIZE <= size_bytes <= self._file.size_bytes - entry.position or last_offset_delta < 0:
            return False
        return bool(self._base_offset <= base_offset and base_offset + last_offset_delta <= entry.offset)


def bounds(file: File, data: Buffer, start: int, position: int) -> tuple[int, int, int]:
    """Base offset, size in bytes and last offset delta of the batch at `data[start:]`, which is at `position`.

    Raises Damage where there is none, or not all of it.
    """
    if start + HEADER_SIZE > len(data):
        raise Damage(file.path, position, "the file has lost its end")
    base_offset, batch_length, last_offset_delta = BOUNDS.unpack_from(data, start)
    size_bytes = batch_length + LENGTH_OVERHEAD
    if not HEADER_SIZE <= size_bytes <= file.size_bytes - position or last_offset_delta < 0:
        raise Damage(file.path, position, "no batch starts here that the file holds as a whole")
    return base_offset, size_bytes, last_offset_delta
