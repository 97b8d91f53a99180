"""The producers of a log, followed from batch to batch, and how far what is known of them can be relied on.

A replay begins at the log's first offset, and anew at each snapshot that it passes. It knows everything if the log
begins at 0, or a snapshot stands where it began; else a producer may have appended before, and a transaction may have
begun there. Where compaction has been, batches and markers are missing.
"""

from odradek.broker.log.markers import Marker, read_marker
from odradek.broker.log.producers import CompletedTxn, Producers
from odradek.broker.offline.dump.stored import Stored

OFFSET_MAX = 2**63 - 1


class Replay:
    """Is shown all batches of a partition, in order."""

    def __init__(self, first_offset: int) -> None:
        self.producers = Producers()
        self.since = first_offset
        """The batches from here on have been seen; what came before is in `producers` if `is_complete`."""
        self.is_complete = first_offset == 0
        self.is_compacted = False
        """Batches, or records of them, have been taken out since."""
        self.next_offset = first_offset
        self.gaps: list[tuple[int, int]] = []
        """The offsets since that no batch holds: first, and first behind."""

    def reach(self, offset: int) -> None:
        """There is no batch before `offset` but those that were taken."""
        if offset > self.next_offset:
            self.gaps.append((self.next_offset, offset))
            self.is_compacted = True
            self.next_offset = offset

    def take(self, stored: Stored) -> tuple[Marker | None, CompletedTxn | None]:
        """Passes a batch, which has been checked by itself already. Returns the marker in it, and the transaction
        that this ends."""
        header = stored.header
        self.reach(header.base_offset)
        self.next_offset = header.last_offset + 1
        if header.record_count <= header.last_offset_delta:
            self.is_compacted = True
        marker = read_marker(stored.data, header) if header.is_control else None
        completed = self.producers.update(header, header.base_offset, marker)
        if completed is not None:
            self.producers.high_watermark_moved(OFFSET_MAX)
        return marker, completed

    def begin_anew(self, producers: Producers, offset: int) -> None:
        """Goes on with what a snapshot at `offset` holds."""
        assert offset == self.next_offset, "everything before has been seen"
        self.producers = producers
        self.since = offset
        self.is_complete = True
        self.is_compacted = False
        self.gaps = []

    def is_gone(self, offset: int) -> bool:
        """Whether no batch since holds this offset."""
        return any(first <= offset < end for first, end in self.gaps)
