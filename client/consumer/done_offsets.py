"""What the program is done with, by partition: what may be committed, and nothing else. Pure.

    assigned ──> handed_out ──> done | done_below ──> committable

A partition's offset moves up to the first record that was handed out and is not done: records may be done in any order,
and what counts is the unbroken run from the beginning. Offsets in which there is nothing to hand out (transaction
markers, aborted records, what compaction removed) belong to the record before them; `passed` says how far they go.

Records that are handed out again from an earlier offset (the log was truncated, the topic is another one, `seek`) begin
the partition again: what was not done of the earlier ones is forgotten.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from odradek.client.topic_partition import TopicPartition

__all__ = ["Committable", "DoneOffsets"]


class Committable(NamedTuple):
    """Where a successor begins, and the leader epoch of the record before that (-1: not known), for a commit."""

    offset: int
    leader_epoch: int = -1


class DoneOffsets:
    """The partitions that are read. A partition that is not assigned is ignored by all but `assigned`."""

    def __init__(self) -> None:
        self._partitions: dict[TopicPartition, _Partition] = {}

    def __contains__(self, partition: object) -> bool:
        return partition in self._partitions

    def assigned(self, partition: TopicPartition, offset: int = -1, leader_epoch: int = -1) -> None:
        """A partition is read from this offset on, or again; -1: it is not known yet where it begins."""
        self._partitions[partition] = _Partition(Committable(offset, leader_epoch))

    def revoked(self, partition: TopicPartition) -> None:
        """It is read no more, and nothing of it counts."""
        self._partitions.pop(partition, None)

    def handed_out(
        self, partition: TopicPartition, offsets: Sequence[int], next_offset: int, leader_epoch: int = -1
    ) -> None:
        """The program gets records with these ascending offsets. `next_offset`: where reading goes on behind them."""
        assert offsets and offsets[-1] < next_offset
        if (found := self._partitions.get(partition)) is not None:
            found.handed_out(offsets, next_offset, leader_epoch)

    def passed(self, partition: TopicPartition, next_offset: int) -> None:
        """All below this offset has been handed out; there is nothing more."""
        if (found := self._partitions.get(partition)) is not None:
            found.passed(next_offset)

    def done(self, partition: TopicPartition, offset: int) -> bool:
        """The program is done with one record. False: it was done already, or is none of those handed out."""
        found = self._partitions.get(partition)
        return found is not None and found.done(offset)

    def done_below(self, partition: TopicPartition, offset: int) -> None:
        """The program is done with all that was handed out below this offset."""
        if (found := self._partitions.get(partition)) is not None:
            found.done_below(offset)

    def pending_count(self, partition: TopicPartition) -> int:
        """The records that were handed out and are not done."""
        found = self._partitions.get(partition)
        return 0 if found is None else found.pending_count

    def lowest(self, partition: TopicPartition) -> int | None:
        """Of all offsets that were handed out since it is assigned; None: there are none."""
        found = self._partitions.get(partition)
        return None if found is None else found.lowest

    def committable(self, partition: TopicPartition) -> Committable | None:
        """What may be committed; None for a partition that is not assigned or whose beginning is not known."""
        found = self._partitions.get(partition)
        return None if found is None or found.committable.offset < 0 else found.committable


class _Run:
    """Records that were handed out together: the first `index` of them are done, and those in `early`."""

    __slots__ = ("early", "index", "leader_epoch", "next_offset", "offsets")

    def __init__(self, offsets: Sequence[int], next_offset: int, leader_epoch: int) -> None:
        self.offsets = offsets
        self.next_offset = next_offset
        self.leader_epoch = leader_epoch
        self.index = 0
        self.early: set[int] = set()


class _Partition:
    """One partition: runs of which something is not done, oldest first."""

    __slots__ = ("_end", "_runs", "committable", "lowest")

    def __init__(self, start: Committable) -> None:
        self.committable = start
        self.lowest: int | None = None
        """Of all offsets that were handed out."""
        self._end = start.offset
        """Where the next records are expected."""
        self._runs: deque[_Run] = deque()

    @property
    def pending_count(self) -> int:
        return sum(len(run.offsets) - run.index - len(run.early) for run in self._runs)

    def handed_out(self, offsets: Sequence[int], next_offset: int, leader_epoch: int) -> None:
        if self.lowest is None or offsets[0] < self.lowest:
            self.lowest = offsets[0]
        if offsets[0] < self._end:
            self._runs.clear()
            self.committable = Committable(offsets[0])
        elif not self._runs:
            self.committable = Committable(offsets[0], self.committable.leader_epoch)
        self._runs.append(_Run(offsets, next_offset, leader_epoch))
        self._end = next_offset

    def passed(self, next_offset: int) -> None:
        if next_offset <= self._end:
            return
        self._end = next_offset
        if self._runs:
            self._runs[-1].next_offset = next_offset
        else:
            self.committable = Committable(next_offset, self.committable.leader_epoch)

    def done(self, offset: int) -> bool:
        run = next((run for run in self._runs if offset < run.next_offset), None)
        if run is None:
            return False
        index = bisect_left(run.offsets, offset)
        is_one = index < len(run.offsets) and run.offsets[index] == offset
        if not is_one or index < run.index or index in run.early:
            return False
        run.early.add(index)
        self._advance()
        return True

    def done_below(self, offset: int) -> None:
        for run in self._runs:
            if run.offsets[0] >= offset:
                break
            index = max(run.index, bisect_left(run.offsets, offset))
            run.early = {each for each in run.early if each >= index}
            run.index = index
        self._advance()

    def _advance(self) -> None:
        """Moves over what is done from the beginning."""
        while self._runs:
            run = self._runs[0]
            while run.index in run.early:
                run.early.remove(run.index)
                run.index += 1
            if run.index < len(run.offsets):
                if run.index:
                    self.committable = Committable(run.offsets[run.index], run.leader_epoch)
                elif self.committable.offset < run.offsets[0]:
                    self.committable = Committable(run.offsets[0], self.committable.leader_epoch)
                return
            self.committable = Committable(run.next_offset, run.leader_epoch)
            self._runs.popleft()
