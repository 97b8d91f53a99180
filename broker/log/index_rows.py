"""The rows that a segment's two indexes must have, computed from its batches one after another.

For those that are made at once, by compaction and where an index is built anew. A segment that grows adds its rows as
it goes (segment.py).
"""

from odradek.broker.log.index import OffsetIndex, TimeIndex
from odradek.protocol.batches.batch import BatchHeader


class IndexRows:
    """Rows as bytes. Is shown every batch of a segment in order."""

    def __init__(self, base_offset: int, index_interval_bytes: int) -> None:
        self.offsets = bytearray()
        self.first_timestamp_ms = -1
        """max_timestamp of the first batch."""
        self.max_timestamp = (-1, base_offset)
        """The largest one, and the last offset of the first batch that has it."""
        self._times = bytearray()
        self._base_offset = base_offset
        self._interval_bytes = index_interval_bytes
        self._position = 0
        self._indexed_position = 0
        self._written_ms = -1

    def note(self, header: BatchHeader, size_bytes: int) -> None:
        """Takes the next batch, which has so many bytes."""
        if not self._position:
            self.first_timestamp_ms = header.max_timestamp
        if header.max_timestamp > self.max_timestamp[0]:
            self.max_timestamp = (header.max_timestamp, header.last_offset)
        if self._position - self._indexed_position > self._interval_bytes:
            self.offsets += OffsetIndex.ROW.pack(header.last_offset - self._base_offset, self._position)
            self._write_largest()
            self._indexed_position = self._position
        self._position += size_bytes

    def complete_times(self) -> bytes:
        """All rows of the time index, the last of which has the largest timestamp."""
        self._write_largest()
        return bytes(self._times)

    def _write_largest(self) -> None:
        timestamp_ms, offset = self.max_timestamp
        if timestamp_ms > self._written_ms:
            self._times += TimeIndex.ROW.pack(timestamp_ms, offset - self._base_offset)
            self._written_ms = timestamp_ms
