"""What of a log may be compacted now, and which log needs it most.

    log start        first dirty offset        first uncleanable offset        log end
        | clean: cleaned before | dirty: cleanable        | not yet               |

Dirty begins where the last round ended (the checkpoint). What is not yet stable, the active segment, and segments with
records younger than `min.compaction.lag.ms` are never cleaned, so the first uncleanable offset is where the first such
segment begins. A log is due once the cleanable part is more than `min.cleanable.dirty.ratio` of all that would be
copied, or has waited longer than `max.compaction.lag.ms`; of those that are due, the one with the largest ratio goes
first.

With `cleanup.policy=compact,delete` a log is compacted by these rules and loses segments by those of `retention.py`;
with `compact` alone, only those before the log start.

Pure. Source: LogCleanerManager.cleanableOffsets, calculateCleanableBytes, maxCompactionDelay and
grabFilthiestCompactedLog; LogToClean and groupSegmentsBySize in LogCleaner.scala.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from odradek.broker.log.segment_facts import RELATIVE_OFFSET_MAX, SegmentFacts

_K = TypeVar("_K")


class Cleanable(NamedTuple):
    """What a round of compaction would do to a log."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    """Where a segment begins."""
    clean_bytes: int
    cleanable_bytes: int
    delay_ms: int
    """How long the oldest dirty record has waited beyond `max.compaction.lag.ms`."""
    resets_checkpoint: bool
    """The checkpoint was impossible: `first_dirty_offset` is to be written instead."""
    warning: str | None
    """Why, where that is no matter of course."""

    @property
    def ratio(self) -> float:
        """The part of what would be read that is dirty."""
        total_bytes = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total_bytes if total_bytes else 0.0

    @property
    def must_clean_now(self) -> bool:
        return self.delay_ms > 0 and self.cleanable_bytes > 0

    def is_due(self, min_cleanable_dirty_ratio: float) -> bool:
        return self.must_clean_now or self.ratio > min_cleanable_dirty_ratio


def cleanable(
    segments: Sequence[SegmentFacts],
    checkpoint: int | None,
    *,
    log_start_offset: int,
    log_end_offset: int,
    last_stable_offset: int,
    deletes: bool,
    min_compaction_lag_ms: int,
    max_compaction_lag_ms: int,
    now_ms: int,
) -> Cleanable:
    """Decides about a compacted log; `checkpoint` is where the last round ended, None when there was none.

    `deletes`: whether `cleanup.policy` has delete in it; then it is no surprise that the log start passes a checkpoint.
    """
    first_dirty, warning = _first_dirty_offset(checkpoint, log_start_offset, log_end_offset, deletes)
    dirty = _inactive_from(segments, first_dirty)
    limits = [last_stable_offset]  # and the active segment, behind which no segment begins
    if min_compaction_lag_ms > 0:
        youngest_ms = now_ms - min_compaction_lag_ms
        limits += [segment.base_offset for segment in dirty if segment.timestamp_ms > youngest_ms][:1]
    first_uncleanable = _segment_start(segments, max(first_dirty, min(limits)))
    return Cleanable(
        first_dirty_offset=first_dirty,
        first_uncleanable_offset=first_uncleanable,
        clean_bytes=sum(segment.size_bytes for segment in segments if segment.base_offset < first_dirty),
        cleanable_bytes=sum(segment.size_bytes for segment in dirty if segment.base_offset < first_uncleanable),
        delay_ms=_delay_ms(dirty, now_ms - max(max_compaction_lag_ms, 0)),
        resets_checkpoint=checkpoint is not None and first_dirty != checkpoint,
        warning=warning,
    )


def dirtiest(logs: Iterable[tuple[_K, Cleanable, float]]) -> _K | None:
    """Of logs, each with its `min.cleanable.dirty.ratio`, the one to compact next; None when none is due."""
    due = [(key, log) for key, log, min_cleanable_dirty_ratio in logs if log.is_due(min_cleanable_dirty_ratio)]
    return max(due, key=lambda entry: entry[1].ratio)[0] if due else None


def grouped(
    segments: Sequence[SegmentFacts],
    *,
    end_offset: int,
    first_uncleanable_offset: int,
    segment_bytes: int,
    segment_index_bytes: int,
) -> list[list[SegmentFacts]]:
    """The segments with records before `end_offset`, in groups of which each becomes one segment.

    Together they are no larger than a segment may be, neither are their indexes, nor do their offsets span more than
    an index can say. What a segment's last offset is, is not known: at most the one before the next segment.
    """
    chosen = segments[: bisect_left(segments, end_offset, key=_base_offset)]
    ends = [*map(_base_offset, chosen[1:]), first_uncleanable_offset]
    groups: list[list[SegmentFacts]] = []
    log_bytes = offset_index_bytes = time_index_bytes = 0
    for segment, end in zip(chosen, ends, strict=False):  # one end too many where nothing is chosen
        log_bytes += segment.size_bytes
        offset_index_bytes += segment.offset_index_bytes
        time_index_bytes += segment.time_index_bytes
        if (
            groups
            and log_bytes <= segment_bytes
            and max(offset_index_bytes, time_index_bytes) <= segment_index_bytes
            and (segment.size_bytes == 0 or end - 1 - groups[-1][0].base_offset <= RELATIVE_OFFSET_MAX)
        ):
            groups[-1].append(segment)
        else:
            groups.append([segment])
            log_bytes, offset_index_bytes = segment.size_bytes, segment.offset_index_bytes
            time_index_bytes = segment.time_index_bytes
    return groups


def _first_dirty_offset(
    checkpoint: int | None, log_start_offset: int, log_end_offset: int, deletes: bool
) -> tuple[int, str | None]:
    """Where the dirty part begins, and what is wrong with a checkpoint that is not there."""
    if checkpoint is None:
        return log_start_offset, None
    if checkpoint < log_start_offset:
        problem = f"the cleaner checkpoint {checkpoint} lies before the log start {log_start_offset}"
        return log_start_offset, None if deletes else f"{problem}: compaction goes on from the start"
    if checkpoint > log_end_offset:
        problem = f"the cleaner checkpoint {checkpoint} lies behind the log end {log_end_offset}"
        return log_start_offset, f"{problem}: the log has lost records, and all of it counts as not compacted"
    return checkpoint, None


def _delay_ms(dirty: Sequence[SegmentFacts], until_ms: int) -> int:
    """How long before `until_ms` the first of these segments was begun, by its records; 0 when it was not."""
    begun = [segment.first_timestamp_ms for segment in dirty if segment.first_timestamp_ms > 0]
    return max(0, until_ms - min(begun)) if begun else 0


def _inactive_from(segments: Sequence[SegmentFacts], offset: int) -> Sequence[SegmentFacts]:
    """The segment that holds `offset` and those behind it, without the active one."""
    return segments[max(0, bisect_right(segments, offset, key=_base_offset) - 1) : -1]


def _segment_start(segments: Sequence[SegmentFacts], offset: int) -> int:
    """Where the segment begins that holds `offset`."""
    return segments[max(0, bisect_right(segments, offset, key=_base_offset) - 1)].base_offset


def _base_offset(segment: SegmentFacts) -> int:
    return segment.base_offset
