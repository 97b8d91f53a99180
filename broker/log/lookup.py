"""Records by their timestamps, for ListOffsets (LogSegment.findOffsetByTimestamp, UnifiedLog.fetchOffsetByTimestamp).

The time indexes narrow the search down to a few batches, whose records are then read. `end_offset` is as far as the
asker may read: what stands behind it is not found.
"""

import logging
from collections.abc import Sequence
from typing import NamedTuple

from odradek.broker.log.batches import walk
from odradek.broker.log.segment import Segment
from odradek.broker.log.segment_facts import NO_TIMESTAMP
from odradek.protocol.batches.batch import BatchHeader
from odradek.protocol.batches.records import iterate_records
from odradek.protocol.errors import KafkaError, MalformedMessage

logger = logging.getLogger(__name__)


class TimestampOffset(NamedTuple):
    """A record found by its timestamp. `leader_epoch` is that of its batch."""

    timestamp_ms: int
    offset: int
    leader_epoch: int


def first_at_or_after(
    segments: Sequence[Segment], log_start_offset: int, timestamp_ms: int, end_offset: int
) -> TimestampOffset | None:
    """The first record with at least this timestamp, if it stands before `end_offset`. Raises OSError."""
    for segment in segments:
        if segment.next_offset <= log_start_offset or segment.max_timestamp_ms < timestamp_ms:
            continue
        position = _position_by_time(segment, timestamp_ms)
        if segment.base_offset < log_start_offset:
            position = max(position, segment.locate(log_start_offset))
        for at, header in walk(segment.file, position, segment.size_bytes):
            if header.base_offset >= end_offset:
                return None
            if header.max_timestamp >= timestamp_ms:
                found = _first_record(segment, log_start_offset, at, header, timestamp_ms)
                if found is not None:
                    return found if found.offset < end_offset else None
    return None


def with_max_timestamp(segments: Sequence[Segment], log_start_offset: int, end_offset: int) -> TimestampOffset | None:
    """The first record with the largest timestamp; None where that is not before `end_offset`, as in Kafka.

    Raises OSError.
    """
    best, best_ms = segments[-1], NO_TIMESTAMP
    for segment in segments:
        max_ms = segment.max_timestamp_ms
        if segment.max_timestamp_offset < log_start_offset:
            # The batch with the maximum has been deleted: look at those that are left.
            left = walk(segment.file, segment.locate(log_start_offset), segment.size_bytes)
            max_ms = max((header.max_timestamp for _, header in left), default=NO_TIMESTAMP)
        if max_ms > best_ms:
            best, best_ms = segment, max_ms
    if best_ms == NO_TIMESTAMP:
        return None
    position = max(_position_by_time(best, best_ms), best.locate(log_start_offset))
    for at, header in walk(best.file, position, best.size_bytes):
        if header.max_timestamp >= best_ms:
            found = _first_record(best, log_start_offset, at, header, best_ms)
            if found is None:  # no record has the timestamp that the header claims
                offset = max(header.base_offset, log_start_offset)
                found = TimestampOffset(best_ms, offset, header.partition_leader_epoch)
            return found if found.offset < end_offset else None
    return None


def _position_by_time(segment: Segment, timestamp_ms: int) -> int:
    """A position before which every batch is older.

    What an entry points at bears it out also where a damaged offset names another batch with that timestamp. So the
    search begins at the entry before, if that is earlier: of two, one is right.
    """
    entries = segment.timestamps.floor_pair(timestamp_ms)
    return segment.locator.indexed_position(min(entry.offset for entry in entries)) if len(entries) == 2 else 0


def _first_record(
    segment: Segment, log_start_offset: int, position: int, header: BatchHeader, timestamp_ms: int
) -> TimestampOffset | None:
    """The first record of the batch with at least this timestamp.

    Where the records cannot be read (a producer may send nonsense, see `record.validation`) it is the first one:
    according to the header the right one is in this batch, so that nobody who starts here misses it.
    """
    epoch = header.partition_leader_epoch
    try:
        for record in iterate_records(segment.file.pread(header.size_bytes, position)):
            if record.timestamp_ms >= timestamp_ms and record.offset >= log_start_offset:
                return TimestampOffset(record.timestamp_ms, record.offset, epoch)
    except (KafkaError, MalformedMessage) as error:
        logger.warning("%s: the batch at offset %d cannot be read: %s", segment.file.path, header.base_offset, error)
        return TimestampOffset(header.max_timestamp, max(header.base_offset, log_start_offset), epoch)
    return None
