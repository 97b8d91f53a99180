"""Reading whole batches out of a `.log` file, or slices of it that the kernel sends.

How far a read goes, and whether something else would end it: `Log.fetch` answers what is found here.
"""

from contextlib import suppress
from typing import NamedTuple, cast

from odradek.broker.disk.file_slice import SLICE_BYTES_MIN
from odradek.broker.log.batch_locator import LOCATE_BYTES, WALKED_BATCHES, BatchLocator, bounds
from odradek.broker.log.batches import BOUNDS, LENGTH_OVERHEAD
from odradek.broker.log.segment_indexes import SegmentIndexes
from odradek.protocol.batches.batch import HEADER_SIZE
from odradek.protocol.primitives import Buffer


class FetchData(NamedTuple):
    """What a read found: whole batches, and why there are no more of them (Kafka's FetchDataInfo)."""

    records: Buffer
    """Where the caller takes slices it may be a `FileSlice`: of that an answer needs nothing but the length."""
    is_cut: bool
    """Whether nothing makes the same read any longer, neither appends nor an end that moves: it stopped at a limit, at
    the end of a segment that has a successor, or at what is not in the page cache. Most often the log holds more."""


NOTHING = FetchData(b"", is_cut=False)


class SegmentReader:
    """The batches of one segment, for reading. Every method may raise OSError.

    `next_offset` is the offset behind the last batch of the file.
    """

    __slots__ = ("_file", "_indexes", "_locator")

    def __init__(self, indexes: SegmentIndexes, locator: BatchLocator) -> None:
        self._file = indexes.file
        self._indexes = indexes
        self._locator = locator

    def read(
        self,
        offset: int,
        size_bytes_max: int,
        end_offset: int,
        at_least_one_batch: bool,
        next_offset: int,
        *,
        as_slice: bool = False,
    ) -> FetchData:
        """Whole batches from the one that holds `offset` on, as many as fit and end before `end_offset`; with
        `as_slice` they may be a slice of the file, which nobody has read.

        `is_cut` tells of this file alone: a read that ends where the file ends is not cut.

        Within `Disk.cached_only()` they are those that are in the page cache, if one is; else it raises NotCached.
        """
        start = self._locator.locate(offset)
        if as_slice:
            with suppress(OSError):
                if (found := self._slice(start, size_bytes_max, end_offset, next_offset)) is not None:
                    return found
        return self._read(start, size_bytes_max, end_offset, at_least_one_batch, next_offset)

    def _read(
        self, start: int, size_bytes_max: int, end_offset: int, at_least_one_batch: bool, next_offset: int
    ) -> FetchData:
        file_end = self._file.size_bytes
        limit = start + max(size_bytes_max, 0)
        end = min(file_end, limit)
        is_rest = end == file_end and end_offset >= next_offset
        # One header more than asked for: it tells the size of a first batch that does not fit, and the offset at
        # which this reader will go on.
        size_bytes = end - start if is_rest else min(end + HEADER_SIZE, file_end) - start
        data = self._file.pread(size_bytes, start, HEADER_SIZE)
        if is_rest and len(data) == size_bytes:
            stop = end
        else:
            stop = self._end_of_whole(data, start, min(end, start + len(data)), end_offset, next_offset)
        is_cut = False
        if stop == start and len(data):
            base_offset, first_size_bytes, last_offset_delta = bounds(self._file, data, 0, start)
            fits = at_least_one_batch or start + first_size_bytes <= end
            is_readable = base_offset + last_offset_delta < end_offset
            is_cut = is_readable or not fits
            if fits and is_readable:
                stop = start + first_size_bytes
                data = self._file.pread(min(stop + HEADER_SIZE, file_end) - start, start, first_size_bytes)
        if len(data) < stop - start:
            raise OSError(f"{self._file.path} has lost its end")
        if stop == start:
            return FetchData(b"", is_cut)
        is_cut = stop != file_end
        if not is_cut:
            self._locator.remember(next_offset, stop)
        elif stop - start + HEADER_SIZE <= len(data):  # else the page cache holds no more
            following, batch_length, last_offset_delta = BOUNDS.unpack_from(data, stop - start)
            self._locator.remember(following, stop)
            is_cut = following + last_offset_delta < end_offset or stop + batch_length + LENGTH_OVERHEAD > limit
        if len(data) == stop - start:
            return FetchData(data, is_cut)
        # A view keeps all of `data` alive, which is only worth it where most of it is asked for.
        whole = memoryview(data)[: stop - start] if 2 * (stop - start) > len(data) else data[: stop - start]
        return FetchData(whole, is_cut)

    def _slice(self, start: int, size_bytes_max: int, end_offset: int, next_offset: int) -> FetchData | None:
        """None where it is little, and is better read, or where the file has no slices."""
        file_end = self._file.size_bytes
        limit = start + size_bytes_max
        stop = min(file_end, limit)
        if stop - start < SLICE_BYTES_MIN:
            return None
        if stop < file_end or end_offset < next_offset:
            stop = self._end_of_whole(b"", start, stop, end_offset, next_offset)
            if stop - start < SLICE_BYTES_MIN:
                return None
        found = self._file.slice(stop - start, start)
        if found is None:
            return None
        if stop == file_end:
            self._locator.remember(next_offset, stop)
            return FetchData(cast(Buffer, found), is_cut=False)
        following, size_bytes, last_offset_delta = bounds(self._file, self._file.pread(HEADER_SIZE, stop), 0, stop)
        self._locator.remember(following, stop)
        return FetchData(cast(Buffer, found), following + last_offset_delta < end_offset or stop + size_bytes > limit)

    def _end_of_whole(self, data: Buffer, start: int, end: int, end_offset: int, next_offset: int) -> int:
        """Where the last of the batches from `start` on ends that end before `end` and `end_offset`.

        `data` was read at `start`; if it is empty, what is needed is read.
        """
        data = data or self._file.pread(HEADER_SIZE, start)
        data_position = position = start
        if start + HEADER_SIZE <= end and bounds(self._file, data, 0, start)[1] * WALKED_BATCHES < end - start:
            entry = self._locator.indexed_before(end, end_offset if end_offset < next_offset else None)
            if entry is not None and start < entry.position <= end:
                at = entry.position - start
                if at + HEADER_SIZE > len(data):
                    data, data_position, at = self._file.pread(LOCATE_BYTES, entry.position), entry.position, 0
                if not self._locator.is_true(entry, data, at):
                    path = self._indexes.offset_index.path
                    self._indexes.rebuild(f"{path} says that {entry.offset} is at {entry.position}")
                    return self._end_of_whole(b"", start, end, end_offset, next_offset)
                if BOUNDS.unpack_from(data, at)[0] <= end_offset:
                    position = entry.position
        while position + HEADER_SIZE <= end:
            at = position - data_position
            if not 0 <= at <= len(data) - HEADER_SIZE:
                data, data_position, at = self._file.pread(LOCATE_BYTES, position), position, 0
            base_offset, size_bytes, last_offset_delta = bounds(self._file, data, at, position)
            if position + size_bytes > end or base_offset + last_offset_delta >= end_offset:
                break
            position += size_bytes
        return position
