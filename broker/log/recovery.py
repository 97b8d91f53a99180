"""Opens the directory of a partition, whatever the last process left in it (LogLoader.java, LogSegment.recover).

- Removals under way (`.deleted`), half-written checkpoints (`.tmp`) and indexes without a log are finished off.
- Every segment is walked, header by header: that gives producers, epochs and what the indexes must hold. The last one
  that holds anything is checked by its checksums, too, for only there can a dying process leave half a batch.
- What is no whole batch is cut off, with a line in the log that says what. Should that ever happen before the last
  segment, the ones behind it cannot follow any more: they are renamed (`.unreachable`), never removed.
- An index that contradicts its log, or is sparser than it should be, is built anew.
- Files that no Kafka log has are left alone.
"""

import logging
import re
from dataclasses import dataclass, field

from broker.disk import Disk
from broker.log.batches import Damage, walk
from broker.log.checkpoint import PARTITION_METADATA
from broker.log.epochs import LEADER_EPOCHS, EpochCache
from broker.log.index import Index, OffsetIndex, TimeIndex
from broker.log.producers import Producers
from broker.log.segment import (
    DELETED_SUFFIX,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    RELATIVE_OFFSET_MAX,
    TIME_INDEX_SUFFIX,
    Segment,
    remove_segment,
)
from protocol.batch import BatchHeader

logger = logging.getLogger(__name__)

UNREACHABLE_SUFFIX = ".unreachable"
_TEMPORARY = (LEADER_EPOCHS + ".tmp", PARTITION_METADATA + ".tmp")
_NAME = re.compile(r"(\d{20})(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)")
_OFFSET_MAX = 2**63 - 1


@dataclass(slots=True)
class Recovered:
    """What a directory holds."""

    segments: list[Segment] = field(default_factory=list[Segment])
    producers: Producers = field(default_factory=Producers)
    # (epoch, offset of its first batch) for each batch with a larger epoch than all before it
    epochs: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def take(self, header: BatchHeader) -> None:
        """Learns from a batch that stands in the log."""
        self.producers.update(header, header.base_offset)
        epoch = header.partition_leader_epoch
        if epoch >= 0 and (not self.epochs or epoch > self.epochs[-1][0]):
            self.epochs.append((epoch, header.base_offset))


def recover(disk: Disk, directory: str, index_interval_bytes: int, index_bytes: int, now_ms: int) -> Recovered:
    """Opens all segments and mends what is broken. Raises OSError."""
    recovered = Recovered()
    segments = [Segment(disk, directory, base_offset, now_ms) for base_offset in _tidy(disk, directory)]
    last_with_content = max((segment.base_offset for segment in segments if segment.size_bytes), default=-1)
    next_offset = 0
    is_broken = False
    for segment in segments:
        if is_broken or segment.base_offset < next_offset:
            # An empty segment stays behind where a roll failed half-way and the one before it went on.
            _set_aside(disk, directory, segment, f"the log before it ends at offset {next_offset}")
            continue
        with_crc = segment.base_offset >= last_with_content
        damage = _mend(segment, recovered, index_interval_bytes, index_bytes, with_crc)
        recovered.segments.append(segment)
        next_offset = segment.next_offset
        is_broken = damage is not None and segment.base_offset < last_with_content
    for segment in recovered.segments[:-1]:
        segment.deactivate()
    return recovered


def merge_epochs(epochs: EpochCache, found: list[tuple[int, int]], log_start_offset: int, log_end_offset: int) -> None:
    """Brings the checkpoint in line with the log: nothing behind its end, and every epoch that the batches name."""
    epochs.truncate_from_end(log_end_offset)
    for epoch, offset in found:
        if epoch > epochs.latest:
            epochs.assign(epoch, offset)
    epochs.truncate_from_start(log_start_offset)


def _tidy(disk: Disk, directory: str) -> list[int]:
    """Cleans the directory up and returns the base offsets of its segments, in order."""
    base_offsets: list[int] = []
    indexes: list[tuple[int, str]] = []
    foreign: list[str] = []
    for name in disk.list_dir(directory):
        path = f"{directory}/{name}"
        kafkas = _NAME.fullmatch(name.removesuffix(DELETED_SUFFIX))
        if name in _TEMPORARY or (kafkas and name.endswith(DELETED_SUFFIX)):
            disk.remove(path)
            logger.info("%s: removed, which the last process did not get to", path)
        elif kafkas and int(kafkas[1]) <= _OFFSET_MAX and not disk.is_dir(path):
            if kafkas[2] == LOG_SUFFIX:
                base_offsets.append(int(kafkas[1]))
            elif kafkas[2] in (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX):
                indexes.append((int(kafkas[1]), path))
        elif name not in (LEADER_EPOCHS, PARTITION_METADATA):
            foreign.append(name)
    for offset, path in indexes:
        if offset not in base_offsets:
            disk.remove(path)
            logger.info("%s: removed, for there is no log that it belongs to", path)
    if foreign:
        logger.warning("%s: left alone, for they are no part of a log: %s", directory, ", ".join(foreign))
    return sorted(base_offsets)


def _set_aside(disk: Disk, directory: str, segment: Segment, why: str) -> None:
    """Takes a segment out of the log. One with content keeps it, under another name."""
    path, size_bytes = segment.file.path, segment.size_bytes
    segment.close()
    if size_bytes:
        disk.rename(path, path + UNREACHABLE_SUFFIX)
        logger.error("%s: renamed to *%s with its %d bytes: %s", path, UNREACHABLE_SUFFIX, size_bytes, why)
    else:
        logger.info("%s: removed, for it is empty and %s", path, why)
    remove_segment(disk, directory, segment.base_offset)


class _IndexCheck:
    """Compares the rows of an index with those that the log calls for, and collects the latter."""

    def __init__(self, index: Index, rows_max: int) -> None:
        self._index = index
        self._found = index.rows() if index.is_whole else iter(())
        self._next = next(self._found, None)
        self._room = rows_max
        self._due = bytearray()

    def true_row(self, row: tuple[int, int]) -> None:
        """The log holds this: if the index says so next, it is right so far."""
        if self._next == row:
            self._next = next(self._found, None)

    def due_row(self, row: tuple[int, int]) -> None:
        """The index must have this row."""
        if self._room > 0:
            self._due += self._index.ROW.pack(*row)
            self._room -= 1

    def finish(self) -> None:
        """Builds the index anew unless all of its rows were true, and as many as are due."""
        count = len(self._due) // self._index.ROW.size
        if self._index.is_whole and self._next is None and len(self._index) >= count:
            return
        what = "sparse" if self._index.is_whole and self._next is None else "wrong"
        logger.info("%s: built anew with %d entries, for it was missing or %s", self._index.path, count, what)
        self._index.replace(self._due)


def _mend(
    segment: Segment, recovered: Recovered, index_interval_bytes: int, index_bytes: int, with_crc: bool
) -> Damage | None:
    """Walks a segment, cuts what is no batch and sees to its indexes. Returns what was cut, if anything."""
    base_offset = segment.base_offset
    size_bytes = segment.size_bytes
    offsets = _IndexCheck(segment.offset_index, index_bytes // OffsetIndex.ROW.size)
    times = _IndexCheck(segment.time_index, index_bytes // TimeIndex.ROW.size - 1)
    last_due = 0  # position of the batch with the last row due
    time_due = -1
    end = 0
    damage: Damage | None = None
    try:
        for position, header in walk(segment.file, 0, size_bytes, with_crc=with_crc):
            last_offset = header.last_offset
            if header.base_offset < segment.next_offset or last_offset - base_offset > RELATIVE_OFFSET_MAX:
                raise Damage(position, f"a batch with offset {header.base_offset} cannot stand here")
            segment.next_offset = last_offset + 1
            if header.max_timestamp > segment.max_timestamp_ms:
                times.true_row((header.max_timestamp, last_offset - base_offset))
            segment.note(position, last_offset, header.max_timestamp)
            offsets.true_row((last_offset - base_offset, position))
            if position - last_due > index_interval_bytes:
                offsets.due_row((last_offset - base_offset, position))
                if segment.max_timestamp_ms > time_due:
                    times.due_row((segment.max_timestamp_ms, segment.max_timestamp_offset - base_offset))
                    time_due = segment.max_timestamp_ms
                last_due = position
            recovered.take(header)
            end = position + header.size_bytes
    except Damage as found:
        damage = found
    offsets.finish()
    times.finish()
    segment.indexed()
    if damage is not None:
        logger.warning(
            "%s: cut %d bytes at position %d, the log goes on at offset %d: %s",
            *(segment.file.path, size_bytes - end, end, segment.next_offset, damage.reason),
        )
        segment.file.truncate(end)
    return damage
