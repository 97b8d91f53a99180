"""A `.log` file and the index of its offsets: finding a batch, and reading whole batches.

The index is opened with its first use, so that a start touches the files of the last segment only. Nobody has looked
at its entries then. But an entry says where a batch starts, and that batch says its offsets. So each entry that is used
is checked: it stands in order between the two beside it, its position is within the log, and a batch begins there that
bears it out. An index that is wrong, missing or cut short is built anew from the log, which costs a walk and loses
nothing; so is one that has no entry for a long stretch of the log, where every search would walk.
"""

import logging
from contextlib import suppress
from typing import NamedTuple, cast

from odradek.broker.disk.disk import Disk, File
from odradek.broker.disk.file_slice import SLICE_BYTES_MIN
from odradek.broker.log.batches import BOUNDS, LENGTH_OVERHEAD, Damage
from odradek.broker.log.index import CorruptIndex, OffsetEntry, OffsetIndex
from odradek.protocol.batches.batch import HEADER_SIZE, MAGIC
from odradek.protocol.primitives import Buffer

logger = logging.getLogger(__name__)

# A search for an offset reads this much at a time: an index interval and the next header.
_LOCATE_BYTES = 4096 + 2 * HEADER_SIZE
# Readers that go on where they stopped find their position here instead of in the index.
_RESUME_POINTS = 16
_MAGIC_POSITION = 16
# So many headers are walked rather than looking into the index, which takes some reads, too.
_WALKED_BATCHES = 16
# A search that walks further than this behind an entry finds an index that lacks some: Kafka's followers write one for
# each answer of a Fetch, by default for 1 MiB.
_WALKED_BYTES_MAX = 4 << 20


class FetchData(NamedTuple):
    """What a read found: whole batches, and why there are no more of them (Kafka's FetchDataInfo)."""

    records: Buffer
    """Where the caller takes slices it may be a `FileSlice`: of that an answer needs nothing but the length."""
    is_cut: bool
    """Whether nothing makes the same read any longer, neither appends nor an end that moves: it stopped at a limit, at
    the end of a segment that has a successor, or at what is not in the page cache. Most often the log holds more."""


NOTHING = FetchData(b"", is_cut=False)


class SegmentReader:
    """The batches of one segment, open for reading. Every method may raise OSError."""

    __slots__ = (
        "_disk",
        "_is_rebuilt",
        "_offset_index",
        "_offset_index_path",
        "_resume_points",
        "base_offset",
        "file",
        "next_offset",
    )

    def __init__(self, disk: Disk, file: File, offset_index_path: str, base_offset: int) -> None:
        self._disk = disk
        self._is_rebuilt = False
        self._offset_index: OffsetIndex | None = None
        self._offset_index_path = offset_index_path
        self._resume_points: dict[int, int] = {}
        self.file = file
        self.base_offset = base_offset
        self.next_offset = base_offset

    @property
    def size_bytes(self) -> int:
        return self.file.size_bytes

    @property
    def offset_index(self) -> OffsetIndex:
        """The index, as its file has it; one that is not whole is built anew first."""
        if self._offset_index is None:
            index = OffsetIndex(self._disk, self._offset_index_path, self.base_offset)
            if index.is_plausible(self.file.size_bytes):
                self._offset_index = index
            else:
                index.close()
                self.rebuild_indexes(f"{self._offset_index_path} is missing or cut short")
        assert self._offset_index is not None
        return self._offset_index

    def rebuild_indexes(self, why: str) -> None:
        """Makes the indexes what the log calls for."""
        raise NotImplementedError

    def locate(self, offset: int) -> int:
        """The position of the first batch that ends at or after `offset`; the size when there is none."""
        position = self._resume_points.get(offset)
        if position is not None:
            return position
        data, data_position = self._from_before(offset)
        walked_from, count = data_position, 0
        position, end = data_position, self.file.size_bytes
        while position < end:
            start = position - data_position
            if start + HEADER_SIZE > len(data):
                data, data_position, start = self.file.pread(_LOCATE_BYTES, position), position, 0
            base_offset, size_bytes, last_offset_delta = bounds(self.file, data, start, position)
            if base_offset + last_offset_delta >= offset:
                break
            position += size_bytes
            count += 1
        if position - walked_from > self.walked_bytes_max and count > _WALKED_BATCHES and not self._is_rebuilt:
            self.rebuild_indexes(f"{self.offset_index.path} lacks entries behind position {walked_from}")
        return position

    @property
    def walked_bytes_max(self) -> int:
        """How far a search may walk behind an entry of an index that lacks none."""
        return _WALKED_BYTES_MAX

    def indexed_position(self, offset: int) -> int:
        """The position of an indexed batch that ends at or before `offset`, or else 0: all before it ends before."""
        return self._from_before(offset)[1]

    def _from_before(self, offset: int) -> tuple[Buffer, int]:
        """What stands at an indexed batch before which all end before `offset`, and its position.

        Where the index knows none: nothing, and position 0.
        """
        try:
            entry = self.offset_index.floor_offset(offset)
            if entry is None:
                return b"", 0
            if (data := self._borne_out(entry)) is not None:
                return data, entry.position
            why = f"{self.offset_index.path} says that offset {entry.offset} is at {entry.position}"
        except CorruptIndex as error:
            why = str(error)
        self.rebuild_indexes(why)
        entry = self.offset_index.floor_offset(offset)
        return b"", 0 if entry is None else entry.position

    def _borne_out(self, entry: OffsetEntry) -> Buffer | None:
        """What stands where the entry points to, if a batch begins there that bears it out."""
        if not 0 <= entry.position <= self.file.size_bytes - HEADER_SIZE:
            return None
        data = self.file.pread(_LOCATE_BYTES, entry.position)
        return data if self._is_true(entry, data, 0) else None

    def _is_true(self, entry: OffsetEntry, data: Buffer, start: int) -> bool:
        """Whether a batch begins at `data[start:]`, where the entry points to, that bears it out.

        The entry names the last offset of that batch, or of a later one that was appended together with it (Kafka's
        followers write such entries); so the batch begins at or before the entry's offset.
        """
        if start + HEADER_SIZE > len(data) or data[start + _MAGIC_POSITION] != MAGIC:
            return False
        base_offset, batch_length, last_offset_delta = BOUNDS.unpack_from(data, start)
        size_bytes = batch_length + LENGTH_OVERHEAD
        if not HEADER_SIZE <= size_bytes <= self.file.size_bytes - entry.position or last_offset_delta < 0:
            return False
        return bool(self.base_offset <= base_offset and base_offset + last_offset_delta <= entry.offset)

    def read(
        self, offset: int, size_bytes_max: int, end_offset: int, at_least_one_batch: bool, *, as_slice: bool = False
    ) -> FetchData:
        """Whole batches from the one that holds `offset` on, as many as fit and end before `end_offset`; with
        `as_slice` they may be a slice of the file, which nobody has read.

        `is_cut` tells of this file alone: a read that ends where the file ends is not cut.

        Within `Disk.cached_only()` they are those that are in the page cache, if one is; else it raises NotCached.
        """
        start = self.locate(offset)
        if as_slice:
            with suppress(OSError):
                if (found := self._slice(start, size_bytes_max, end_offset)) is not None:
                    return found
        return self._read(start, size_bytes_max, end_offset, at_least_one_batch)

    def _read(self, start: int, size_bytes_max: int, end_offset: int, at_least_one_batch: bool) -> FetchData:
        file_end = self.file.size_bytes
        limit = start + max(size_bytes_max, 0)
        end = min(file_end, limit)
        is_rest = end == file_end and end_offset >= self.next_offset
        # One header more than asked for: it tells the size of a first batch that does not fit, and the offset at
        # which this reader will go on.
        size_bytes = end - start if is_rest else min(end + HEADER_SIZE, file_end) - start
        data = self.file.pread(size_bytes, start, HEADER_SIZE)
        if is_rest and len(data) == size_bytes:
            stop = end
        else:
            stop = self._end_of_whole(data, start, min(end, start + len(data)), end_offset)
        is_cut = False
        if stop == start and len(data):
            base_offset, first_size_bytes, last_offset_delta = bounds(self.file, data, 0, start)
            fits = at_least_one_batch or start + first_size_bytes <= end
            is_readable = base_offset + last_offset_delta < end_offset
            is_cut = is_readable or not fits
            if fits and is_readable:
                stop = start + first_size_bytes
                data = self.file.pread(min(stop + HEADER_SIZE, file_end) - start, start, first_size_bytes)
        if len(data) < stop - start:
            raise OSError(f"{self.file.path} has lost its end")
        if stop == start:
            return FetchData(b"", is_cut)
        is_cut = stop != file_end
        if not is_cut:
            self._remember(self.next_offset, stop)
        elif stop - start + HEADER_SIZE <= len(data):  # else the page cache holds no more
            next_offset, batch_length, last_offset_delta = BOUNDS.unpack_from(data, stop - start)
            self._remember(next_offset, stop)
            is_cut = next_offset + last_offset_delta < end_offset or stop + batch_length + LENGTH_OVERHEAD > limit
        if len(data) == stop - start:
            return FetchData(data, is_cut)
        # A view keeps all of `data` alive, which is only worth it where most of it is asked for.
        whole = memoryview(data)[: stop - start] if 2 * (stop - start) > len(data) else data[: stop - start]
        return FetchData(whole, is_cut)

    def _slice(self, start: int, size_bytes_max: int, end_offset: int) -> FetchData | None:
        """None where it is little, and is better read, or where the file has no slices."""
        file_end = self.file.size_bytes
        limit = start + size_bytes_max
        stop = min(file_end, limit)
        if stop - start < SLICE_BYTES_MIN:
            return None
        if stop < file_end or end_offset < self.next_offset:
            stop = self._end_of_whole(b"", start, stop, end_offset)
            if stop - start < SLICE_BYTES_MIN:
                return None
        found = self.file.slice(stop - start, start)
        if found is None:
            return None
        if stop == file_end:
            self._remember(self.next_offset, stop)
            return FetchData(cast(Buffer, found), is_cut=False)
        next_offset, size_bytes, last_offset_delta = bounds(self.file, self.file.pread(HEADER_SIZE, stop), 0, stop)
        self._remember(next_offset, stop)
        return FetchData(cast(Buffer, found), next_offset + last_offset_delta < end_offset or stop + size_bytes > limit)

    def _end_of_whole(self, data: Buffer, start: int, end: int, end_offset: int) -> int:
        """Where the last of the batches from `start` on ends that end before `end` and `end_offset`.

        `data` was read at `start`; if it is empty, what is needed is read.
        """
        data = data or self.file.pread(HEADER_SIZE, start)
        data_position = position = start
        if start + HEADER_SIZE <= end and bounds(self.file, data, 0, start)[1] * _WALKED_BATCHES < end - start:
            entry = self._indexed_before(end, end_offset)
            if entry is not None and start < entry.position <= end:
                at = entry.position - start
                if at + HEADER_SIZE > len(data):
                    data, data_position, at = self.file.pread(_LOCATE_BYTES, entry.position), entry.position, 0
                if not self._is_true(entry, data, at):
                    self.rebuild_indexes(f"{self.offset_index.path} says that {entry.offset} is at {entry.position}")
                    return self._end_of_whole(b"", start, end, end_offset)
                if BOUNDS.unpack_from(data, at)[0] <= end_offset:
                    position = entry.position
        while position + HEADER_SIZE <= end:
            at = position - data_position
            if not 0 <= at <= len(data) - HEADER_SIZE:
                data, data_position, at = self.file.pread(_LOCATE_BYTES, position), position, 0
            base_offset, size_bytes, last_offset_delta = bounds(self.file, data, at, position)
            if position + size_bytes > end or base_offset + last_offset_delta >= end_offset:
                break
            position += size_bytes
        return position

    def _indexed_before(self, end: int, end_offset: int) -> OffsetEntry | None:
        """One that starts a batch which ends before `end_offset` or starts before `end`: all before it is whole."""
        try:
            return self._last_indexed_before(end, end_offset)
        except CorruptIndex as error:
            self.rebuild_indexes(str(error))
            return self._last_indexed_before(end, end_offset)

    def _last_indexed_before(self, end: int, end_offset: int) -> OffsetEntry | None:
        entry = self.offset_index.floor_position(end)
        if entry is None or end_offset >= self.next_offset:
            return entry
        by_offset = self.offset_index.floor_offset(end_offset - 1)
        return None if by_offset is None else min(entry, by_offset, key=lambda entry: entry.position)

    def _remember(self, next_offset: int, stop: int) -> None:
        """Notes where a reader that took the batches up to `stop` will go on."""
        points = self._resume_points
        if next_offset not in points and len(points) >= _RESUME_POINTS:
            del points[next(iter(points))]
        points[next_offset] = stop


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
