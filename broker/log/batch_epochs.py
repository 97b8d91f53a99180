"""What the batches say of leader epochs: whether they bear out a list of where each begins, and that list itself.

A batch carries the epoch under which it was appended, and epochs never go back. So a list is right if at each start
stands the first batch of that epoch, behind one of the epoch before: two looks at the log for each entry. To find the
starts takes a search by halves for each, and no walk over the log.
"""

from collections.abc import Sequence

from odradek.broker.log.epochs import NO_EPOCH, EpochEntry
from odradek.broker.log.segment import Segment
from odradek.protocol.batches.batch import BatchHeader


class BatchEpochs:
    """The batches of a log from `start_offset` up to `end_offset`. Every method may raise OSError."""

    def __init__(self, segments: Sequence[Segment], start_offset: int, end_offset: int) -> None:
        self._segments = segments
        self._start_offset = start_offset
        self._end_offset = end_offset

    def bear_out(self, entries: Sequence[EpochEntry]) -> bool:
        """Whether each epoch begins where the entries say, and there are no others."""
        before = EpochEntry(NO_EPOCH, self._start_offset)
        for entry in entries:
            if not (self._ends_before(before, entry.start_offset) and self._begins(entry)):
                return False
            before = entry
        return self._ends_before(before, self._end_offset)

    def _begins(self, entry: EpochEntry) -> bool:
        """Whether the batch at its start is of that epoch; of a later one, where compaction took what stood there."""
        first = self._at(entry.start_offset)
        if first is None:
            # A log of which everything was deleted: the epoch of its last batch is known by the file alone.
            return entry.start_offset == self._start_offset == self._end_offset
        if first.base_offset > entry.start_offset:
            return first.partition_leader_epoch >= entry.epoch
        is_start = first.base_offset == entry.start_offset or entry.start_offset <= self._start_offset
        return is_start and first.partition_leader_epoch == entry.epoch

    def _ends_before(self, entry: EpochEntry, offset: int) -> bool:
        """Whether the last batch before `offset` is of that epoch; of an earlier one, where nothing is left of it."""
        last = self._at(offset - 1)
        if last is None or last.base_offset >= offset:
            return True
        is_of_before = last.last_offset < entry.start_offset
        return last.partition_leader_epoch == entry.epoch or (
            is_of_before and last.partition_leader_epoch < entry.epoch
        )

    def found(self) -> list[tuple[int, int]]:
        """Each epoch with the offset of its first batch."""
        first, last = self._at(self._start_offset), self._at(self._end_offset - 1)
        entries: list[tuple[int, int]] = []
        while first is not None and last is not None:
            if first.partition_leader_epoch > (entries[-1][0] if entries else -1):
                entries.append((first.partition_leader_epoch, first.base_offset))
            if first.partition_leader_epoch >= last.partition_leader_epoch:
                break
            first = self._first_behind(first, last)
        return entries

    def _first_behind(self, low: BatchHeader, high: BatchHeader) -> BatchHeader:
        """The first batch of a later epoch than that of `low`; `high` is one."""
        epoch = low.partition_leader_epoch
        while low.last_offset + 1 < high.base_offset:
            middle = self._at((low.last_offset + 1 + high.base_offset) // 2)
            if middle is None or middle.base_offset >= high.base_offset:
                middle = self._at(low.last_offset + 1)  # nothing is left of the second half
            if middle is None or middle.base_offset >= high.base_offset:
                break
            if middle.partition_leader_epoch > epoch:
                high = middle
            else:
                low = middle
        return high

    def _at(self, offset: int) -> BatchHeader | None:
        """The header of the batch with `offset`, or of the first one behind it; None at the log's end."""
        if not self._start_offset <= offset < self._end_offset:
            return None
        for segment in self._segments:
            if segment.next_offset > offset:
                header = segment.header_at(offset)
                if header is not None:
                    return header
        return None
