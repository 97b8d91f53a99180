"""Which segments of a log go now: those before its start, and those that `retention.bytes` and `retention.ms` let go.

Three rules, one after the other, each from the front of what is left until it finds a segment that has to stay:

    log start   the segment ends at or before the log start; that holds for every cleanup.policy
    size        without it there are still at least `retention.bytes`
    time        now - its largest timestamp > `retention.ms`

Nothing goes that does not lie wholly below the high watermark. Size (where `retention.bytes` is 0) and time let the
active segment go, too, unless it is empty; a log always has one, so it is rolled first.

A timestamp in the future keeps its segment, and with it all behind. It comes from a producer whose clock is wrong, or
from our own that jumped back; nothing is lost by it, but the disk fills up. Beyond an hour, which is how far ahead
Kafka lets clients be (`message.timestamp.after.max.ms`), that is worth a warning.

Pure. Source: UnifiedLog.deleteOldSegments, deletableSegments and deleteSegments.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from odradek.broker.log.segment_facts import SegmentFacts

UNLIMITED = -1

_AHEAD_MS_MAX = 3_600_000


class Retention(NamedTuple):
    """What is to be done."""

    segment_count: int
    """So many segments go, from the front."""
    must_roll: bool
    """They are all: an empty one is to be made before they go."""
    reasons: tuple[str, ...]
    """A line for each rule that let segments go."""
    warning: str | None
    """What keeps segments against `retention.ms`. The text stays the same while that lasts: log it when it changes."""


def deletable(
    segments: Sequence[SegmentFacts],
    *,
    log_start_offset: int,
    high_watermark: int,
    log_end_offset: int,
    deletes: bool,
    retention_bytes: int,
    retention_ms: int,
    now_ms: int,
) -> Retention:
    """Decides about a log. `deletes`: whether `cleanup.policy` has delete in it; -1 is no limit."""
    ends = [*(segment.base_offset for segment in segments[1:]), log_end_offset]
    limit = bisect_right(ends, high_watermark)
    if limit == len(segments) and segments[-1].size_bytes == 0:
        limit -= 1
    reasons: list[str] = []

    count = min(limit, bisect_right(ends[:-1], log_start_offset))
    if count:
        reasons.append(f"{_spelled(segments[:count])} before the log start offset {log_start_offset}")
    if deletes and retention_bytes >= 0:
        first, count = count, _excess(segments, count, limit, retention_bytes)
        if count > first:
            left = sum(segment.size_bytes for segment in segments[count:])
            reasons.append(
                f"{_spelled(segments[first:count])}: retention.bytes={retention_bytes}, {left} bytes are left"
            )
    if deletes and retention_ms >= 0:
        first, count = count, _outdated(segments, count, limit, now_ms - retention_ms)
        if count > first:
            newest = max(segment.timestamp_ms for segment in segments[first:count])
            reasons.append(
                f"{_spelled(segments[first:count])}: retention.ms={retention_ms}, the newest is of {newest} ms"
            )
    return Retention(
        segment_count=count,
        must_roll=count == len(segments),
        reasons=tuple(reasons),
        warning=_warning(segments[count:], now_ms) if deletes and retention_ms >= 0 else None,
    )


def _excess(segments: Sequence[SegmentFacts], start: int, limit: int, retention_bytes: int) -> int:
    """How far one can go from `start` and still leave as many bytes as are to be retained."""
    left = sum(segment.size_bytes for segment in segments[start:])
    for number in range(start, limit):
        left -= segments[number].size_bytes
        if left < retention_bytes:
            return number
    return limit


def _outdated(segments: Sequence[SegmentFacts], start: int, limit: int, horizon_ms: int) -> int:
    """How far one can go from `start` with segments that are older than the horizon."""
    for number in range(start, limit):
        if segments[number].timestamp_ms >= horizon_ms:
            return number
    return limit


def _spelled(segments: Sequence[SegmentFacts]) -> str:
    first, last = segments[0].base_offset, segments[-1].base_offset
    return f"segment {first}" if len(segments) == 1 else f"{len(segments)} segments, {first} to {last},"


def _warning(segments: Sequence[SegmentFacts], now_ms: int) -> str | None:
    for segment in segments:
        if segment.timestamp_ms - now_ms > _AHEAD_MS_MAX:
            what = "a record" if segment.largest_timestamp_ms >= 0 else "no timestamps, and a file"
            return (
                f"segment {segment.base_offset} has {what} of {segment.timestamp_ms} ms, more than an hour in the "
                "future: it is kept, and all behind it, until retention.ms after that. Correct the clock if it is "
                "this machine's that is wrong; else limit the topic by retention.bytes, or delete its records"
            )
    return None
