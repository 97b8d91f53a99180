"""The segments of a log, one after another, the last of which grows (LogSegments.java, LocalLog.scala).

    base_offsets[0] <= … <= base_offsets[-1], the active segment's

Here they come and go: rolled, retired, and swapped for what compaction made of them. What goes gets another name at
once; removing it takes time, and is left to whoever takes `take_retired`.
"""

import logging
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from odradek.broker.disk.disk import Disk
from odradek.broker.log.aborted import CorruptTransactionIndex
from odradek.broker.log.batches import Damage
from odradek.broker.log.config import LogConfig
from odradek.broker.log.index import OffsetIndex, TimeIndex
from odradek.broker.log.leftovers import SWAP_SUFFIX, cleaned_path, rename_swapped
from odradek.broker.log.producers import AbortedTxn, Producers
from odradek.broker.log.recovery import replay
from odradek.broker.log.segment import LOG_SUFFIX, Segment, segment_path
from odradek.broker.log.segment_facts import SegmentFacts
from odradek.broker.log.snapshot_files import SnapshotFiles

logger = logging.getLogger(__name__)


class Source(NamedTuple):
    """A segment as compaction reads it, by its path."""

    base_offset: int
    next_offset: int
    path: str
    size_bytes: int
    aborted: list[AbortedTxn]
    """The rows, of this and later segments, that overlap it."""


class Standing(NamedTuple):
    """A segment at one moment: what was read of it then is what it holds, as long as it is the same and was not cut."""

    segment: Segment
    cuts: int


class Written(NamedTuple):
    """A segment that compaction wrote, to take the place of those that it was made of."""

    base_offset: int
    replaces: list[int]
    """Their base offsets."""
    size_bytes: int
    suffixes: list[str]
    """Which files it has; the log comes first."""
    nonce: str
    """Of the round, in the names of these files."""
    made_of: Sequence[Standing] = ()
    """The segments as they were when the round began. A log that was cut and grew again may have others of the same
    base offsets."""


class Segments:
    """At least one. Every method that touches files may raise OSError."""

    __slots__ = ("_directory", "_disk", "_list", "_retired", "base_offsets", "changes", "snapshots")

    def __init__(self, disk: Disk, directory: str, segments: list[Segment], snapshots: SnapshotFiles) -> None:
        self._disk = disk
        self._directory = directory
        self._list = segments
        self._retired: list[str] = []
        self.base_offsets = [segment.base_offset for segment in segments]
        self.snapshots = snapshots
        self.changes = 0
        """Counts what came and went: names that are not durable before the directory is synced."""

    def __len__(self) -> int:
        return len(self._list)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._list)

    def __getitem__(self, number: int) -> Segment:
        return self._list[number]

    @property
    def active(self) -> Segment:
        return self._list[-1]

    @property
    def size_bytes(self) -> int:
        """All together, without their indexes."""
        return sum(segment.size_bytes for segment in self._list)

    @property
    def all(self) -> Sequence[Segment]:
        return self._list

    def from_offset(self, offset: int) -> Iterator[Segment]:
        """The one in which `offset` may stand, and those behind it."""
        for number in range(max(0, bisect_right(self.base_offsets, offset) - 1), len(self._list)):
            yield self._list[number]

    # -- coming and going -----------------------------------------------------------------------------------------

    def create(self, base_offset: int, config: LogConfig, now_ms: int) -> Segment:
        """Makes an empty segment, in its place among the others."""
        segment = Segment.create(self._disk, self._directory, base_offset, config, now_ms)
        number = bisect_right(self.base_offsets, base_offset)
        self._list.insert(number, segment)
        self.base_offsets.insert(number, base_offset)
        self.changes += 1
        return segment

    def retire(self, number: int) -> None:
        """Takes the first (0) or the last (-1) one away. If it raises OSError, that one still stands."""
        self._retired += self._list[number].retire()
        del self._list[number], self.base_offsets[number]
        self.changes += 1
        if number == 0:
            self._forget_stray_snapshots()

    def take_retired(self) -> list[str]:
        """The files that are no part of the log any more, each once: whoever takes them removes them."""
        retired, self._retired = self._retired, []
        return retired

    def close(self) -> None:
        for segment in self._list:
            segment.close()

    def take_snapshot(self, producers: Producers, log_end_offset: int) -> None:
        """Writes down what is known of the producers now, unless the newest snapshot says it. So no start reads the
        batches before the recovery point again."""
        if log_end_offset > max(self.snapshots.newest, self.base_offsets[0]):
            self.snapshots.take(producers, log_end_offset)
            self._forget_stray_snapshots()
            self.changes += 1

    def _forget_stray_snapshots(self) -> None:
        with suppress(OSError):  # the next start removes them
            self.snapshots.forget_strays(self.base_offsets)

    def replayed(self, log_end_offset: int) -> Producers:
        """The producers as snapshots and batches leave them at the log end."""
        producers, offset = self.snapshots.load(log_end_offset) or (Producers(), self.base_offsets[0])
        try:
            for _ in replay(producers, self._list, offset, log_end_offset):
                continue
        except Damage as damage:
            logger.error("the producers are known up to damaged batches only: %s", damage)
        return producers

    # -- aborted transactions -------------------------------------------------------------------------------------

    def have_aborted(self, offset: int) -> bool:
        """Whether a transaction was aborted whose records may stand at `offset` or behind."""
        return any(not segment.txn_index.is_empty for segment in self.from_offset(offset))

    def aborted(self, offset: int, end_offset: int) -> list[AbortedTxn]:
        """The aborted transactions with records in [offset, end_offset)."""
        found: list[AbortedTxn] = []
        for segment in self.from_offset(offset):
            self.check_txn_index(segment)
            rows, is_complete = segment.txn_index.collect(offset, end_offset)
            found += rows
            if is_complete:
                break
        return found

    def check_txn_index(self, segment: Segment) -> None:
        """Builds an index anew that cannot be believed: each row of the file must be borne out by the marker and by the
        first batch that it names. What is added from then on is known."""
        index = segment.txn_index
        try:
            for txn in index.rows():
                if not index.is_checked and not (segment.bears_out_abort(txn) and self._bears_out_first(txn)):
                    raise CorruptTransactionIndex(f"{index.path} holds {txn}, which is not what the log holds")
            index.is_checked = True
        except CorruptTransactionIndex as error:
            logger.warning("%s: built anew: %s", index.path, error)
            producers, start = self.snapshots.load(segment.base_offset) or (Producers(), self.base_offsets[0])
            until = self._list[: self._list.index(segment) + 1]
            rows = [
                producers.aborted_txn(completed)
                for completed in replay(producers, until, start, segment.next_offset)
                if completed.is_aborted
            ]
            index.replace([row for row in rows if row.last_offset >= segment.base_offset])
            index.is_checked = True

    def _bears_out_first(self, txn: AbortedTxn) -> bool:
        """Whether the transaction's first batch is its producer's; so it is where compaction or retention took it."""
        if txn.first_offset < self.base_offsets[0]:
            return True
        for segment in self.from_offset(txn.first_offset):
            if txn.first_offset < segment.next_offset and (found := segment.header_at(txn.first_offset)) is not None:
                is_its = found.is_transactional and found.producer_id == txn.producer_id
                return found.base_offset > txn.first_offset or (is_its and found.base_offset == txn.first_offset)
        return False

    # -- compaction -----------------------------------------------------------------------------------------------

    def know(self, number: int) -> None:
        """Finds out what `facts` says of this segment. It is known from then on."""
        if number < len(self._list):
            segment = self._list[number]
            _ = segment.first_timestamp_ms, segment.max_timestamp_ms, segment.indexes.offset_index

    def facts(self) -> list[SegmentFacts]:
        """What retention and compaction decide by."""
        return [
            SegmentFacts(
                segment.base_offset,
                segment.size_bytes,
                segment.first_timestamp_ms,
                segment.max_timestamp_ms,
                segment.created_ms,
                segment.indexes.offset_index.count * OffsetIndex.ROW.size,
                segment.indexes.time_index.count * TimeIndex.ROW.size,
            )
            for segment in self._list
        ]

    def sources(self, end_offset: int) -> list[Source]:
        """The segments before `end_offset` but the active one."""
        chosen = [segment for segment in self._list[:-1] if segment.base_offset < end_offset]
        return [
            Source(
                segment.base_offset,
                segment.next_offset,
                segment.file.path,
                segment.size_bytes,
                self.aborted(segment.base_offset, segment.next_offset),
            )
            for segment in chosen
        ]

    def standing(self, end_offset: int) -> dict[int, Standing]:
        """By base offset, the segments that `sources` tells of, as they are now."""
        return {
            segment.base_offset: Standing(segment, segment.cuts)
            for segment in self._list[:-1]
            if segment.base_offset < end_offset
        }

    def begin_swap(self, written: Written) -> bool:
        """First of two steps: `written` gets names by which a start, too, knows that it counts (`.swap`).

        Whoever calls this then syncs the directory, and calls `complete_swap`. False, and nothing has happened, when
        the segments that it was made of are not there any more.
        """
        if not self.stands(written):
            return False
        for suffix in reversed(written.suffixes):
            path = segment_path(self._directory, written.base_offset, suffix)
            cleaned = cleaned_path(self._directory, written.base_offset, suffix, written.nonce)
            self._disk.rename(cleaned, path + SWAP_SUFFIX)
        return True

    def complete_swap(self, written: Written, config: LogConfig) -> bool:
        """Second step: the old segments go, and the new one takes their place. False when they went meanwhile: then
        what was made of them goes, too, lest a start brings it back.

        If it raises OSError half-way, this log is not to be used; the next start completes it.
        """
        if not self.stands(written):
            self._remove_swap(written)
            return False
        first = self.base_offsets.index(written.base_offset)
        end = first + len(written.replaces)
        created_ms, next_offset = self._list[first].created_ms, self._list[end - 1].next_offset
        for segment in self._list[first:end]:
            self._retired += segment.retire()
        rename_swapped(self._disk, self._directory, written.base_offset)
        sizes = {_name(written, suffix): 0 for suffix in written.suffixes} | {
            _name(written, LOG_SUFFIX): written.size_bytes
        }
        segment = Segment(self._disk, self._directory, written.base_offset, config, created_ms, sizes)
        segment.next_offset = next_offset
        segment.txn_index.is_checked = True  # it was made a moment ago
        self._list[first:end] = [segment]
        self.base_offsets[first:end] = [written.base_offset]
        self.changes += 1
        self._forget_stray_snapshots()
        return True

    def withdraw_swap(self, written: Written) -> None:
        """After `begin_swap`, where the second step cannot be taken: no start is to take it either."""
        try:
            self._remove_swap(written)
        except OSError as error:
            logger.warning("%s: the next start puts a compacted segment into its place: %s", self._directory, error)

    def _remove_swap(self, written: Written) -> None:
        for suffix in written.suffixes:
            self._disk.remove(segment_path(self._directory, written.base_offset, suffix) + SWAP_SUFFIX)

    def stands(self, written: Written) -> bool:
        """Whether the segments that `written` was made of are there, one after another, as they were, and grow no
        more."""
        bases = self.base_offsets
        if written.base_offset not in bases[:-1]:
            return False
        first = bases.index(written.base_offset)
        if bases[first : first + len(written.replaces)] != written.replaces or written.replaces[-1] == bases[-1]:
            return False
        return self.are_unchanged(written.made_of)

    def are_unchanged(self, standing: Iterable[Standing]) -> bool:
        """Whether these segments are part of the log still, and hold what they held."""
        present = {id(segment) for segment in self._list}
        return all(id(was.segment) in present and was.segment.cuts == was.cuts for was in standing)


def _name(written: Written, suffix: str) -> str:
    return segment_path("", written.base_offset, suffix)[1:]
