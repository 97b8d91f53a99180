"""A partition's directory as a whole: its segments in order, and all that is derived from them.

What is derived is read before the log, so that a broker which goes on appending meanwhile is always ahead of it. If
something is wrong and files have changed meanwhile, as when compaction swaps segments, the check begins again.
"""

import posixpath
from dataclasses import dataclass, field

from odradek.broker.disk.disk import Disk
from odradek.broker.log.checkpoint import PARTITION_METADATA, CorruptCheckpoint, read_partition_metadata
from odradek.broker.log.epochs import LEADER_EPOCHS
from odradek.broker.log.leftovers import UNSYNCED
from odradek.broker.log.segment import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    segment_path,
)
from odradek.broker.log.snapshots import SNAPSHOT_SUFFIX
from odradek.broker.offline.dump.epoch_check import EpochCheck, read_epochs
from odradek.broker.offline.dump.findings import Inconsistency, Note
from odradek.broker.offline.dump.index_checks import OffsetIndexCheck, TimeIndexCheck
from odradek.broker.offline.dump.names import Kind, in_order, name_of
from odradek.broker.offline.dump.replay import Replay
from odradek.broker.offline.dump.segment_check import SegmentWalk
from odradek.broker.offline.dump.snapshot_check import check_snapshot, read_snapshot
from odradek.broker.offline.dump.txn_index_check import TxnIndexCheck

ATTEMPTS = 5
_NAMES_MAX = 5


@dataclass(slots=True)
class Report:
    """A partition without an inconsistency."""

    path: str
    topic_id: bytes = b""
    first_offset: int = 0
    """Where the first segment begins; DeleteRecords may have moved the log start behind it."""
    end_offset: int = 0
    segments: int = 0
    batches: int = 0
    records: int = 0
    gaps: int = 0
    """How often offsets are missing between two batches, as compaction leaves them."""
    offset_entries: int = 0
    time_entries: int = 0
    aborted_transactions: int = 0
    snapshots: int = 0
    leader_epochs: int = 0
    notes: list[Note] = field(default_factory=list[Note])


def check_partition(disk: Disk, path: str, *, is_clean: bool) -> Report:
    """`is_clean`: the broker stopped cleanly, so that nothing may be missing. Raises Inconsistency, OSError."""
    for _ in range(ATTEMPTS - 1):
        sizes = disk.sizes(path)
        try:
            return _PartitionCheck(disk, path, is_clean).run()
        except (FileNotFoundError, Inconsistency):
            if disk.sizes(path) == sizes:
                raise
    return _PartitionCheck(disk, path, is_clean).run()


class _PartitionCheck:
    def __init__(self, disk: Disk, path: str, is_clean: bool) -> None:
        self._disk = disk
        self._path = path
        self._is_clean = is_clean
        self._names = disk.list_dir(path)
        self._found = [name for _, name in in_order(self._names)]
        self._base_offsets = [name.offset for name in self._found if name.kind is Kind.LOG]
        self._snapshots = [name.offset for name in self._found if name.kind is Kind.SNAPSHOT]
        self._next_offset = 0
        self._report = Report(path)

    def run(self) -> Report:
        report = self._report
        self._check_names()
        report.topic_id = self._topic_id()
        if not self._base_offsets:
            if self._is_clean:
                raise Inconsistency(self._path, "it holds no segment")
            self._note(self._path, "it holds no segment yet")
            return report
        entries = read_epochs(self._disk, f"{self._path}/{LEADER_EPOCHS}")
        report.leader_epochs = len(entries)
        epochs = EpochCheck(f"{self._path}/{LEADER_EPOCHS}", entries, is_clean=self._is_clean)
        replay = Replay(self._base_offsets[0])
        report.first_offset = report.end_offset = self._next_offset = self._base_offsets[0]
        for number in range(len(self._base_offsets)):
            self._check_segment(number, epochs, replay)
        self._check_snapshots(replay, None)
        epochs.finish(report.end_offset)
        report.notes += epochs.notes
        report.segments = len(self._base_offsets)
        return report

    # -- the directory --------------------------------------------------------------------------------------------

    def _check_names(self) -> None:
        """Names what is no part of a log."""
        removed: list[str] = []
        for file_name in self._names:
            path, name = f"{self._path}/{file_name}", name_of(file_name)
            if file_name == UNSYNCED:
                self._note(path, "a sync of this log failed: the next start copies what is in doubt")
            elif file_name.endswith((".deleted", ".cleaned", ".tmp")):
                removed.append(file_name)
            elif file_name.endswith(".swap"):
                self._note(path, "a compacted segment, which the next start puts in its place")
            elif name is None or name.is_left_over:
                self._note(path, "no part of a log")
            elif name.kind in _INDEXES and name.offset not in self._base_offsets:
                removed.append(file_name)
        if removed:
            more = f" and {len(removed) - _NAMES_MAX} more" if len(removed) > _NAMES_MAX else ""
            names = ", ".join(removed[:_NAMES_MAX])
            self._note(self._path, f"left over; a running broker or the next start removes it: {names}{more}")

    def _topic_id(self) -> bytes:
        path = f"{self._path}/{PARTITION_METADATA}"
        try:
            topic_id = read_partition_metadata(self._disk, self._path)
        except CorruptCheckpoint as error:
            raise Inconsistency(path, str(error)) from error
        if topic_id is None:
            raise Inconsistency(path, "it is missing: nothing says of which topic this is a partition")
        return topic_id

    # -- a segment ------------------------------------------------------------------------------------------------

    def _check_segment(self, number: int, epochs: EpochCheck, replay: Replay) -> None:
        report, base_offset = self._report, self._base_offsets[number]
        is_last = number == len(self._base_offsets) - 1
        offset_index = OffsetIndexCheck(*self._index(base_offset, OFFSET_INDEX_SUFFIX), base_offset)
        time_index = TimeIndexCheck(*self._index(base_offset, TIME_INDEX_SUFFIX), base_offset)
        txn_index = TxnIndexCheck(*self._index(base_offset, TXN_INDEX_SUFFIX))
        path = segment_path(self._path, base_offset, LOG_SUFFIX)
        walk = SegmentWalk(self._disk, path, base_offset, may_grow=is_last and not self._is_clean)
        end = None if is_last else self._base_offsets[number + 1]
        for stored in walk.batches(report.end_offset, end):
            self._check_snapshots(replay, stored.header.base_offset)
            offset_index.take(stored)
            time_index.take(stored)
            report.gaps += self._next_offset < stored.header.base_offset
            self._next_offset = stored.header.last_offset + 1
            txn_index.take(stored, *replay.take(stored), replay)
            epochs.take(path, stored)
            report.batches += 1
            report.records += stored.header.record_count
        offset_index.finish(walk.size_bytes)
        time_index.finish(walk.next_offset, is_complete=self._is_clean or self._is_closed(number))
        txn_index.finish()
        report.end_offset = walk.next_offset
        report.offset_entries += len(offset_index)
        report.time_entries += len(time_index)
        report.aborted_transactions += len(txn_index)
        report.notes += walk.notes + offset_index.notes + time_index.notes

    def _index(self, base_offset: int, suffix: str) -> tuple[str, bytes]:
        """Path and content. Raises Inconsistency where it is missing; only that of transactions may be."""
        path = segment_path(self._path, base_offset, suffix)
        if posixpath.basename(path) in self._names:
            return path, self._disk.read_whole(path)
        if suffix != TXN_INDEX_SUFFIX:
            raise Inconsistency(path, "it is missing: the broker builds it anew when it needs it")
        return path, b""

    def _is_closed(self, number: int) -> bool:
        """Whether the segment takes no more batches and has the last entry of its time index, for which a roll that
        was interrupted found no time: then the new segment is empty."""
        following = self._base_offsets[number + 1 :]
        if len(following) != 1:
            return bool(following)
        return self._disk.sizes(self._path).get(f"{following[0]:020d}{LOG_SUFFIX}", 0) > 0

    # -- snapshots ------------------------------------------------------------------------------------------------

    def _check_snapshots(self, replay: Replay, offset: int | None) -> None:
        """Checks those at or before `offset`, where the next batch begins; all that are left at the end of the log."""
        while self._snapshots and (offset is None or self._snapshots[0] <= offset):
            at = self._snapshots.pop(0)
            path = f"{self._path}/{at:020d}{SNAPSHOT_SUFFIX}"
            data = self._disk.read_whole(path)
            self._report.snapshots += 1
            if at < self._base_offsets[0]:
                read_snapshot(path, data)  # the newest stays when the log before it is deleted; nothing bears it out
                continue
            if offset is None and at > self._report.end_offset:
                raise Inconsistency(path, f"it lies behind the end of the log, which is {self._report.end_offset}")
            if at < replay.next_offset:
                raise Inconsistency(path, f"offset {at} lies within a batch that ends with {replay.next_offset - 1}")
            replay.reach(at)
            self._report.notes += check_snapshot(path, data, replay)

    def _note(self, path: str, text: str) -> None:
        self._report.notes.append(Note(path, text))


_INDEXES = (Kind.OFFSET_INDEX, Kind.TIME_INDEX, Kind.TXN_INDEX)
