"""What is known of a segment without opening it: all that retention and compaction decide by."""

from typing import NamedTuple

NO_TIMESTAMP = -1
RELATIVE_OFFSET_MAX = 2**31 - 1
"""How far offsets of one segment may be apart: its indexes have 32 bits for them."""


class SegmentFacts(NamedTuple):
    """One segment. A sequence of them is a whole log, in order; the last is the active one."""

    base_offset: int
    size_bytes: int
    first_timestamp_ms: int = NO_TIMESTAMP
    """max_timestamp of the first batch; -1 when it has none."""
    largest_timestamp_ms: int = NO_TIMESTAMP
    """The largest of all records; -1 when they have none."""
    modified_ms: int = 0
    """When the file was written last."""
    offset_index_bytes: int = 0
    time_index_bytes: int = 0

    @property
    def timestamp_ms(self) -> int:
        """How new the segment is: by its records, or by its file where they have no timestamps (LogSegment.java)."""
        return self.largest_timestamp_ms if self.largest_timestamp_ms >= 0 else self.modified_ms
