"""A segment: some consecutive batches of a log in one file, with its two indexes (LogSegment.java).

    00000000000000000000.log        the batches, each as it goes over the wire
    00000000000000000000.index      where to begin looking for an offset    (index.py)
    00000000000000000000.timeindex  where to begin looking for a timestamp

The name is the base offset: the first offset that may stand in it. A log appends to its last segment, the active one.
State in memory changes only after the write that it describes.
"""

import logging
from collections.abc import Sequence
from contextlib import ExitStack, suppress

from broker.disk import Disk, File
from broker.log.batches import BOUNDS, LENGTH_OVERHEAD, walk
from broker.log.index import OffsetIndex, TimeIndex
from protocol.batch import HEADER_SIZE, BatchHeader
from protocol.primitives import Buffer

logger = logging.getLogger(__name__)

LOG_SUFFIX = ".log"
OFFSET_INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
DELETED_SUFFIX = ".deleted"
# Everything of a segment; the last two are not written yet but may have come from Kafka.
SUFFIXES = (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, ".txnindex", ".snapshot")

RELATIVE_OFFSET_MAX = 2**31 - 1
# A search for an offset reads this much at a time: an index interval and the next header.
_LOCATE_BYTES = 4096 + 2 * HEADER_SIZE
# Readers that go on where they stopped find their position here instead of in the index.
_RESUME_POINTS = 16


def segment_path(directory: str, base_offset: int, suffix: str) -> str:
    return f"{directory}/{base_offset:020d}{suffix}"


class Segment:
    """One segment, open for reading and appending. Every method that touches files may raise OSError."""

    __slots__ = (
        "_directory",
        "_disk",
        "_indexed_position",
        "_resume_points",
        "base_offset",
        "created_ms",
        "file",
        "first_timestamp_ms",
        "max_timestamp_ms",
        "max_timestamp_offset",
        "next_offset",
        "offset_index",
        "time_index",
    )

    def __init__(self, disk: Disk, directory: str, base_offset: int, now_ms: int) -> None:
        """Opens the files, or makes them. Recovery then walks the batches and sets what is known of them."""
        self._disk = disk
        self._directory = directory
        self.base_offset = base_offset
        # The log comes last: if one of the three cannot be made there is no segment, only an index to be removed.
        with ExitStack() as undo:
            index_path = segment_path(directory, base_offset, OFFSET_INDEX_SUFFIX)
            self.offset_index = OffsetIndex(disk, index_path, base_offset)
            undo.callback(self.offset_index.close)
            index_path = segment_path(directory, base_offset, TIME_INDEX_SUFFIX)
            self.time_index = TimeIndex(disk, index_path, base_offset)
            undo.callback(self.time_index.close)
            self.file: File = disk.open(segment_path(directory, base_offset, LOG_SUFFIX))
            undo.pop_all()
        self.created_ms = now_ms
        self.next_offset = base_offset
        self.first_timestamp_ms = -1  # max_timestamp of the first batch: rolling by time counts from there
        self.max_timestamp_ms = -1
        self.max_timestamp_offset = base_offset  # last offset of the first batch that has it
        self._indexed_position = 0
        self._resume_points: dict[int, int] = {}

    @classmethod
    def create(cls, disk: Disk, directory: str, base_offset: int, now_ms: int) -> "Segment":
        """Makes an empty segment; leftovers of an earlier attempt under its name are emptied."""
        try:
            segment = cls(disk, directory, base_offset, now_ms)
            segment.file.truncate(0)
            segment.offset_index.replace(b"")
            segment.time_index.replace(b"")
        except OSError:
            with suppress(OSError):  # the next attempt, or the next start, removes what is left
                remove_segment(disk, directory, base_offset)
            raise
        return segment

    @property
    def size_bytes(self) -> int:
        return self.file.size_bytes

    def should_roll(
        self, header: BatchHeader, last_offset: int, segment_bytes: int, segment_ms: int, index_bytes: int, now_ms: int
    ) -> bool:
        """Whether this batch belongs into a new segment (LogSegment.shouldRoll).

        Time is that of the records, measured from the first batch; where it has none, that since the segment was made.
        """
        if last_offset - self.base_offset > RELATIVE_OFFSET_MAX:
            return True
        size_bytes = self.file.size_bytes
        if size_bytes == 0:
            return False
        first = self.first_timestamp_ms
        waited_ms = header.max_timestamp - first if first >= 0 else now_ms - self.created_ms
        return (
            size_bytes > segment_bytes - header.size_bytes
            or waited_ms > segment_ms
            or self.offset_index.is_full(index_bytes)
            or self.time_index.is_full(index_bytes)
        )

    def append(self, parts: Sequence[Buffer], last_offset: int, max_timestamp: int, index_interval_bytes: int) -> None:
        """Appends one batch, given in parts."""
        assert 0 <= last_offset - self.base_offset <= RELATIVE_OFFSET_MAX, "roll first"
        assert last_offset >= self.next_offset, "offsets only grow"
        position = self.file.append(parts)
        self.next_offset = last_offset + 1
        self.note(position, last_offset, max_timestamp)
        if position - self._indexed_position > index_interval_bytes:
            self.offset_index.append(last_offset, position)
            self.time_index.append_if_larger(self.max_timestamp_ms, self.max_timestamp_offset)
            self._indexed_position = position

    def note(self, position: int, last_offset: int, max_timestamp: int) -> None:
        """Takes the timestamp of the batch at `position` into account."""
        if position == 0:
            self.first_timestamp_ms = max_timestamp
        if max_timestamp > self.max_timestamp_ms:
            self.max_timestamp_ms = max_timestamp
            self.max_timestamp_offset = last_offset

    def indexed(self) -> None:
        """The offset index was rebuilt or cut: the next entry is due an interval after its last one."""
        last = self.offset_index.last
        self._indexed_position = 0 if last is None else last.position

    def locate(self, offset: int) -> int:
        """The position of the first batch that ends at or after `offset`; the size when there is none."""
        position = self._resume_points.get(offset)
        if position is not None:
            return position
        entry = self.offset_index.floor_offset(offset)
        position = 0 if entry is None else entry.position
        end = self.file.size_bytes
        data, data_position = b"", position
        while position < end:
            start = position - data_position
            if start + HEADER_SIZE > len(data):
                data, data_position, start = self.file.pread(_LOCATE_BYTES, position), position, 0
            base_offset, size_bytes, last_offset_delta = _bounds(self.file, data, start, position)
            if base_offset + last_offset_delta >= offset:
                return position
            position += size_bytes
        return end

    def read(self, offset: int, size_bytes_max: int, end_offset: int, at_least_one_batch: bool) -> Buffer:
        """Whole batches from the one that holds `offset` on, as many as fit and end before `end_offset`."""
        start = self.locate(offset)
        file_end = self.file.size_bytes
        end = min(file_end, start + max(size_bytes_max, 0))
        if end == file_end and end_offset >= self.next_offset:
            stop = end
            data = self.file.pread(end - start, start)
        else:
            # One header more than asked for: it tells the size of a first batch that does not fit, and the offset at
            # which this reader will go on.
            data = self.file.pread(end - start + HEADER_SIZE, start)
            stop = start + self._whole_batches(data, start, end, end_offset)
            if stop == start and data and at_least_one_batch:
                base_offset, size_bytes, last_offset_delta = _bounds(self.file, data, 0, start)
                if base_offset + last_offset_delta < end_offset:
                    stop = start + size_bytes
                    data = self.file.pread(size_bytes + HEADER_SIZE, start)
        if len(data) < stop - start:
            raise OSError(f"{self.file.path} has lost its end")
        if stop == start:
            return b""
        self._remember(data, start, stop)
        if len(data) == stop - start:
            return data
        # A view keeps all of `data` alive, which is only worth it where most of it is asked for.
        return memoryview(data)[: stop - start] if 2 * (stop - start) > len(data) else data[: stop - start]

    def _whole_batches(self, data: bytes, start: int, end: int, end_offset: int) -> int:
        """How many bytes of `data`, read at `start`, are whole batches that end before `end` and `end_offset`."""
        position = start
        by_position = self.offset_index.floor_position(end)
        by_offset = self.offset_index.floor_offset(end_offset - 1)
        if by_position is not None and by_offset is not None:
            # Both start a batch that ends before end_offset or starts before end: everything before it is whole.
            position = max(start, min(by_position.position, by_offset.position))
        while position + HEADER_SIZE <= end:
            base_offset, size_bytes, last_offset_delta = _bounds(self.file, data, position - start, position)
            if position + size_bytes > end or base_offset + last_offset_delta >= end_offset:
                break
            position += size_bytes
        return position - start

    def _remember(self, data: bytes, start: int, stop: int) -> None:
        """Notes where a reader that took the batches from `start` to `stop` will go on."""
        if stop == self.file.size_bytes:
            next_offset = self.next_offset
        elif stop - start + HEADER_SIZE <= len(data):
            next_offset = BOUNDS.unpack_from(data, stop - start)[0]
        else:
            return
        points = self._resume_points
        if next_offset not in points and len(points) >= _RESUME_POINTS:
            del points[next(iter(points))]
        points[next_offset] = stop

    def truncate(self, offset: int) -> int:
        """Cuts off the batch that holds `offset` and all behind it, and returns how many bytes went."""
        position = self.locate(offset)
        cut_bytes = self.file.size_bytes - position
        if cut_bytes:
            self._cut(position, _bounds(self.file, self.file.pread(HEADER_SIZE, position), 0, position)[0])
        return cut_bytes

    def clear(self) -> None:
        """Cuts off everything."""
        self._cut(0, self.base_offset)

    def _cut(self, position: int, offset: int) -> None:
        """Cuts everything from `position` on, where the batch with base offset `offset` starts."""
        # Indexes first: entries that are missing cost time, entries that point behind the end cost a rebuild.
        self._resume_points.clear()
        self.time_index.truncate_to_offset(offset)
        self.offset_index.truncate_to_position(position)
        self.indexed()
        self.file.truncate(position)
        last = self.time_index.last
        self.max_timestamp_ms, self.max_timestamp_offset = (-1, self.base_offset) if last is None else last
        entry = None if last is None else self.offset_index.floor_offset(last.offset)
        # At least the batch before the cut comes by, and leaves next_offset as the next start would find it.
        self.next_offset = self.base_offset
        for at, header in walk(self.file, 0 if entry is None else entry.position, position):
            self.note(at, header.last_offset, header.max_timestamp)
            self.next_offset = header.last_offset + 1

    def deactivate(self) -> None:
        """Completes the indexes: the segment takes no more batches. What cannot be written now waits in memory."""
        self.time_index.append_if_larger(self.max_timestamp_ms, self.max_timestamp_offset)
        self.offset_index.write_out()
        self.time_index.write_out()

    def sync(self) -> None:
        self.file.sync()

    def sync_all(self) -> None:
        """For a segment that takes no more batches: the indexes, too."""
        self.file.sync()
        self.offset_index.sync()
        self.time_index.sync()

    def close(self) -> None:
        self.file.close()
        self.offset_index.close()
        self.time_index.close()

    def delete(self) -> None:
        """Closes and removes all files. Raises OSError only if the segment still stands, open and unchanged."""
        path = self.file.path
        self._disk.rename(path, path + DELETED_SUFFIX)
        self.close()
        try:
            remove_segment(self._disk, self._directory, self.base_offset)
        except OSError as error:
            logger.warning("%s: the next start removes what is left of it: %s", path, error)


def remove_segment(disk: Disk, directory: str, base_offset: int) -> None:
    """Removes the files of a segment, or what is left of them. The log is renamed first: then the segment is gone."""
    paths = [segment_path(directory, base_offset, suffix) for suffix in SUFFIXES]
    for path in paths:
        if disk.exists(path):
            disk.rename(path, path + DELETED_SUFFIX)
    for path in paths:
        if disk.exists(path + DELETED_SUFFIX):
            disk.remove(path + DELETED_SUFFIX)


def _bounds(file: File, data: bytes, start: int, position: int) -> tuple[int, int, int]:
    """Base offset, size in bytes and last offset delta of the batch at `data[start:]`, which is at `position`."""
    if start + HEADER_SIZE > len(data):
        raise OSError(f"{file.path} has lost its end")
    base_offset, batch_length, last_offset_delta = BOUNDS.unpack_from(data, start)
    if batch_length + LENGTH_OVERHEAD < HEADER_SIZE:
        raise OSError(f"{file.path}: no batch starts at position {position}")
    return base_offset, batch_length + LENGTH_OVERHEAD, last_offset_delta
