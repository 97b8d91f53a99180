"""Compaction's work on files: reads the segments of a round, and writes what takes their place.

It runs in a worker (compaction_worker.py), on files by their paths and on values that the broker has collected; the
state of the log is never touched. What it writes has names that no log has (`.cleaned`, behind the round's nonce), is
synced before it is used, and is removed by the next start if it never is. `Segments.begin_swap` takes it from there.

A segment that is deleted meanwhile shows as FileNotFoundError: the round ends without effect.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from odradek.broker.disk.disk import Disk
from odradek.broker.log.aborted import encode_row
from odradek.broker.log.batches import LENGTH_OVERHEAD
from odradek.broker.log.compaction import Cleaning
from odradek.broker.log.index_rows import IndexRows
from odradek.broker.log.leftovers import cleaned_path
from odradek.broker.log.offset_map import OffsetMapBuilder
from odradek.broker.log.segment import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SUFFIXES,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
)
from odradek.broker.log.segments import Source, Written
from odradek.broker.log.uncleanable import UncleanableLog
from odradek.protocol.batches.batch import HEADER_SIZE, BatchHeader, read_header
from odradek.protocol.primitives import Buffer
from odradek.runtime.worker import GiveWay

WRITE_BYTES: Final = 256 * 1024


def build_map(
    disk: Disk, sources: Sequence[Source], builder: OffsetMapBuilder, io_bytes: int, give_way: GiveWay
) -> None:
    """Fills the map with the keys of the dirty segments, as far as it goes. Raises UncleanableLog, OSError."""
    for source in sources:
        builder.add_aborted(source.aborted)
        for header, data in batches_of(disk, source, io_bytes):
            if not builder.feed(header, data):
                return
            give_way()
        builder.end_segment(source.next_offset)


def write_group(
    disk: Disk,
    directory: str,
    sources: Sequence[Source],
    cleaning: Cleaning,
    index_interval_bytes: int,
    io_bytes: int,
    give_way: GiveWay,
    nonce: str,
) -> Written:
    """Writes the segment that takes the place of `sources`, on the device when this returns.

    Raises UncleanableLog, Stopped, OSError; nothing of it is left then but, at most, files that the next start removes.
    """
    base_offset = sources[0].base_offset
    index_rows = IndexRows(base_offset, index_interval_bytes)
    suffixes = [LOG_SUFFIX]
    try:
        path = cleaned_path(directory, base_offset, LOG_SUFFIX, nonce)
        size_bytes = disk.write_new(path, _cleaned(disk, sources, cleaning, index_rows, io_bytes, give_way))
        rows = {
            OFFSET_INDEX_SUFFIX: bytes(index_rows.offsets),
            TIME_INDEX_SUFFIX: index_rows.complete_times(),
            TXN_INDEX_SUFFIX: b"".join(map(encode_row, cleaning.take_aborted())),
        }
        for suffix, content in rows.items():
            if content or suffix != TXN_INDEX_SUFFIX:
                disk.write_new(cleaned_path(directory, base_offset, suffix, nonce), [content])
                suffixes.append(suffix)
    except Exception:
        discard(disk, directory, base_offset, nonce)
        raise
    return Written(base_offset, [source.base_offset for source in sources], size_bytes, suffixes, nonce)


def discard(disk: Disk, directory: str, base_offset: int, nonce: str) -> None:
    """Removes what `write_group` wrote, if it is not wanted. What cannot be removed, the next start removes."""
    for suffix in SUFFIXES:
        with suppress(OSError):
            disk.remove(cleaned_path(directory, base_offset, suffix, nonce))


def _cleaned(
    disk: Disk,
    sources: Sequence[Source],
    cleaning: Cleaning,
    index_rows: IndexRows,
    io_bytes: int,
    give_way: GiveWay,
) -> Iterator[Buffer]:
    """What stays of the segments, some batches at a time, each of which `index_rows` has seen."""
    pending: list[Buffer] = []
    pending_bytes = 0
    for source in sources:
        cleaning.add_aborted(source.aborted)
        for header, data in batches_of(disk, source, io_bytes):
            kept = cleaning.feed(header, data)
            give_way()
            if kept is None:
                continue
            index_rows.note(header if kept is data else read_header(kept), len(kept))
            pending.append(kept)
            pending_bytes += len(kept)
            if pending_bytes >= WRITE_BYTES:
                yield b"".join(pending)
                pending, pending_bytes = [], 0
    yield b"".join(pending)


def batches_of(disk: Disk, source: Source, io_bytes: int) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Every batch of a segment. Raises UncleanableLog where it does not hold what its size promises, OSError."""
    position, data, start = 0, memoryview(b""), 0  # `start`: where in `data` the position of the file is
    next_offset, size_bytes = source.base_offset, source.size_bytes
    while position < size_bytes:
        header = read_header(data, start) if start + HEADER_SIZE <= len(data) else None
        wanted = HEADER_SIZE if header is None else max(HEADER_SIZE, header.batch_length + LENGTH_OVERHEAD)
        if header is None or start + wanted > len(data):
            ahead = min(max(wanted, io_bytes), size_bytes - position)
            data, start = memoryview(disk.read_range(source.path, position, ahead)), 0
            if len(data) < wanted:
                raise UncleanableLog(next_offset, f"{source.path} ends within it, at position {position}")
            continue
        yield header, data[start : start + wanted]
        next_offset = header.last_offset + 1
        position += wanted
        start += wanted
