"""Opens the directory of a partition, whatever the last process left in it (LogLoader.java, LogSegment.recover).

After a clean stop the last batches of the last segment tell where the log ends, and nothing else of it is read. After
any other end, everything behind the recovery point is walked with its checksums, for only there can a dying process
leave half a batch, or a power failure pages that were never written:

- What is no whole batch is cut off, with a line in the log that says what. Should that ever happen before the last
  segment, the ones behind it cannot follow any more: they are renamed (`.unreachable`), never removed, but empty ones.
- The indexes are built anew from there on.
- The producers are those of the newest snapshot that can be read, plus what the batches behind it say.

Segments before the recovery point are opened when they are used, and looked at then (batch_locator.py).
"""

import logging
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise

from odradek.broker.disk.disk import Disk
from odradek.broker.log.aborted import CorruptTransactionIndex
from odradek.broker.log.batches import Damage, walk, walk_segment
from odradek.broker.log.config import LogConfig
from odradek.broker.log.epochs import EpochCache
from odradek.broker.log.leftovers import UNSYNCED, tidy
from odradek.broker.log.markers import read_marker
from odradek.broker.log.producers import NO_OFFSET, AbortedTxn, CompletedTxn, Producers
from odradek.broker.log.segment import NO_EPOCH, Segment, remove_files, retire_files
from odradek.broker.log.snapshot_files import SnapshotFiles
from odradek.protocol.batches.batch import HEADER_SIZE, BatchHeader, read_header
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from odradek.protocol.primitives import Buffer

logger = logging.getLogger(__name__)

UNREACHABLE_SUFFIX = ".unreachable"
_COPY_BYTES = 1 << 20
_LOOK_FOR_ZEROS_BYTES = 1 << 16


@dataclass(slots=True)
class Recovered:
    """What a directory holds."""

    directory: str
    snapshots: SnapshotFiles
    segments: list[Segment] = field(default_factory=list[Segment])
    producers: Producers = field(default_factory=Producers)
    # (epoch, offset of its first batch) for each batch walked that has a larger epoch than all before it
    epochs: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    is_clean: bool = False
    walked_from: int | None = None
    """Where the walk over the batches began, if there was one."""
    known_offset: int = 0
    """The producers are known up to here."""

    def take(self, segment: Segment, position: int, header: BatchHeader) -> CompletedTxn | None:
        """Learns from a batch that stands in the log."""
        epoch = header.partition_leader_epoch
        if epoch >= 0 and (not self.epochs or epoch > self.epochs[-1][0]):
            self.epochs.append((epoch, header.base_offset))
        if header.base_offset < self.known_offset:
            return None
        return take_batch(self.producers, segment, position, header)


def recover(
    disk: Disk, directory: str, config: LogConfig, now_ms: int, *, recovery_point: int, is_clean: bool
) -> Recovered:
    """Opens all segments and mends what is broken. Raises OSError."""
    contents = tidy(disk, directory)
    recovered = Recovered(directory, SnapshotFiles(disk, directory, contents.snapshots))
    recovered.segments = [
        Segment(disk, directory, base_offset, config, now_ms, contents.sizes)
        for base_offset in sorted(contents.base_offsets)
    ]
    _bound(recovered.segments)
    if recovered.segments:
        _drop_empty(disk, directory, recovered.segments)
        recovered.is_clean = is_clean and not contents.is_unsynced and _is_clean(recovered.segments[-1])
        if recovered.is_clean:
            end_offset = recovered.segments[-1].next_offset
            _load_producers(recovered, end_offset, end_offset)
        else:
            if config.is_compacted:
                _drop_replaced(disk, directory, recovered.segments, recovery_point)
            first = max(0, bisect_right(recovered.segments, recovery_point, key=lambda one: one.base_offset) - 1)
            if contents.is_unsynced:
                recovered.segments[first:] = [
                    _copied(disk, directory, segment, config, now_ms, contents.sizes)
                    for segment in recovered.segments[first:]
                ]
                disk.sync_dir(directory)
                disk.remove(f"{directory}/{UNSYNCED}")
            _recover_from(disk, directory, recovered, first, recovery_point)
        recovered.snapshots.forget_after(recovered.segments[-1].next_offset)
    recovered.snapshots.forget_strays([segment.base_offset for segment in recovered.segments])
    recovered.producers.expire(now_ms, config.producer_id_expiration_ms)
    return recovered


def check_end(recovered: Recovered, recovery_point: int, log_start_offset: int) -> None:
    """Looks whether less is there than once was on the device, which a line in the log says.

    Raises KafkaError KAFKA_STORAGE_ERROR where nothing is there any more.
    """
    end_offset = recovered.segments[-1].next_offset if recovered.segments else 0
    if recovery_point <= max(end_offset, log_start_offset):
        return
    if not recovered.segments:
        raise KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"{recovered.directory} has no segment left, and held everything up to offset {recovery_point}: restore "
            "its files, or delete the topic if nothing of it is needed",
        )
    logger.error(
        "%s: ends at offset %d, and everything up to %d was on the device: what lies between is lost. Look at the "
        "device, and restore the directory from a backup if it is needed",
        *(recovered.directory, end_offset, recovery_point),
    )


def merge_epochs(epochs: EpochCache, recovered: Recovered, log_start_offset: int, log_end_offset: int) -> None:
    """Brings the checkpoint in line with the log: nothing behind its end, and every epoch that the batches name."""
    if recovered.walked_from is None:
        epochs.truncate_from_end(log_end_offset)
    else:
        epochs.drop_from(recovered.walked_from)
    for epoch, offset in recovered.epochs:
        if epoch > epochs.latest:
            epochs.assign(epoch, offset)
    last_epoch = recovered.segments[-1].last_leader_epoch
    if last_epoch == NO_EPOCH and epochs.latest > NO_EPOCH and log_end_offset > log_start_offset:
        last_epoch = _last_epoch(recovered.segments)
    if last_epoch not in (epochs.latest, NO_EPOCH) or _begins_before(recovered.segments, epochs, log_start_offset):
        logger.warning("%s: the leader epochs are taken from the batches, all of which are read", recovered.directory)
        epochs.take(_all_epochs(recovered.segments))
    epochs.truncate_from_start(log_start_offset)


def _last_epoch(segments: list[Segment]) -> int:
    """The epoch of the log's last batch, where the last segment is empty."""
    for segment in reversed(segments):
        if segment.size_bytes:
            with suppress(Damage):  # a reader meets it
                segment.note_from_last_entry()
            return segment.last_leader_epoch
    return NO_EPOCH


def _begins_before(segments: list[Segment], epochs: EpochCache, log_start_offset: int) -> bool:
    """Whether the log's first batch stands before every epoch that is known, and has one. Compaction may have taken
    what stood before the first batch, so that the offsets alone do not tell."""
    if not epochs.entries or epochs.entries[0].start_offset <= log_start_offset:
        return False
    for segment in segments:
        with suppress(Damage):  # a reader meets it
            for _, header in walk(segment.file, segment.locate(log_start_offset), segment.size_bytes):
                return header.partition_leader_epoch > NO_EPOCH and header.base_offset < epochs.entries[0].start_offset
    return False


def _all_epochs(segments: list[Segment]) -> list[tuple[int, int]]:
    """Each epoch of the log with the offset of its first batch. What stands behind damage is not looked at."""
    found: list[tuple[int, int]] = []
    for segment in segments:
        with suppress(Damage):
            for _, header in walk_segment(segment.file, 0, segment.base_offset):
                if header.partition_leader_epoch > (found[-1][0] if found else NO_EPOCH):
                    found.append((header.partition_leader_epoch, header.base_offset))
    return found


def take_batch(producers: Producers, segment: Segment, position: int, header: BatchHeader) -> CompletedTxn | None:
    """Tells the producers of a batch in the log; returns the transaction that it ends. Raises Damage."""
    marker = None
    if header.is_control:
        try:
            marker = read_marker(segment.file.pread(header.size_bytes, position), header)
        except MalformedMessage as error:
            raise Damage(segment.file.path, position, str(error)) from error
    return producers.update(header, header.base_offset, marker)


def replay(producers: Producers, segments: Sequence[Segment], offset: int, end_offset: int) -> Iterator[CompletedTxn]:
    """Tells the producers of the batches in [offset, end_offset), by their headers; yields what was completed.

    Raises Damage, OSError.
    """
    for number, segment in enumerate(segments):
        is_before = number + 1 < len(segments) and segments[number + 1].base_offset <= offset
        if is_before or segment.base_offset >= end_offset:
            continue
        position = 0 if offset <= segment.base_offset else segment.locate(offset)
        for at, header in walk(segment.file, position, segment.size_bytes):
            if header.base_offset >= end_offset:
                return
            completed = take_batch(producers, segment, at, header)
            if completed is not None:
                yield completed


def _drop_empty(disk: Disk, directory: str, segments: list[Segment]) -> None:
    """Takes an empty last segment away that a failed roll left behind, when the log went on in the one before."""
    if len(segments) < 2 or segments[-1].size_bytes:
        return
    before, last = segments[-2], segments[-1]
    with suppress(Damage):  # who looks at all of it will find that, too
        before.note_from_last_entry()
        if before.next_offset > last.base_offset:
            _set_aside(disk, directory, segments.pop(), f"the log before it ends at offset {before.next_offset}")
            return
    before.next_offset = last.base_offset


def _bound(segments: Sequence[Segment]) -> None:
    """Each segment ends where the next one begins, whatever compaction has taken there."""
    for segment, following in pairwise(segments):
        segment.next_offset = following.base_offset


def _drop_replaced(disk: Disk, directory: str, segments: list[Segment], recovery_point: int) -> None:
    """Removes those of which a compacted segment has taken the place, and which a loss of power gave their old names
    again: that one ends behind where they begin."""
    number = 0
    while number + 1 < len(segments) and segments[number + 1].base_offset < recovery_point:
        before, following = segments[number], segments[number + 1]
        with suppress(Damage):  # a reader meets it
            before.note_from_last_entry()
        if before.next_offset <= following.base_offset:
            number += 1
            continue
        segments.pop(number + 1).close()
        remove_files(disk, retire_files(disk, directory, following.base_offset))
        logger.warning(
            "%s: removed, for %s has taken its place", following.file.path, before.file.path.rpartition("/")[2]
        )
    _bound(segments)


def _is_clean(last: Segment) -> bool:
    """Finds the end of the log. False if what is there contradicts the clean stop, which a line in the log says."""
    try:
        last.note_from_last_entry()
        entries = last.indexes.offset_index.last, last.indexes.time_index.last
        if any(entry is not None and entry.offset >= last.next_offset for entry in entries):
            why = f"it ends at offset {last.next_offset}, and its indexes know of later ones"
            raise Damage(last.file.path, last.size_bytes, why)
    except Damage as damage:
        logger.warning("after a clean stop, %s", damage)
        return False
    return True


def _load_producers(recovered: Recovered, offset: int, end_offset: int) -> None:
    """The producers at `end_offset` or behind: of the newest snapshot at or before either offset, and the batches
    between that and `end_offset`. Raises OSError.
    """
    first_offset = recovered.segments[0].base_offset
    recovered.producers, start = recovered.snapshots.load(max(offset, end_offset)) or (Producers(), first_offset)
    recovered.known_offset = max(start, end_offset)
    if start == first_offset and end_offset > first_offset:
        logger.info("%s: no snapshot of the producers, so the log is read", recovered.directory)
    try:
        for _ in replay(recovered.producers, recovered.segments, start, end_offset):
            continue
    except Damage as damage:
        # Behind the recovery point this is found again, and cut off; before it, a reader will meet it.
        logger.error("the producers are known up to damaged batches only: %s", damage)


def _recover_from(disk: Disk, directory: str, recovered: Recovered, first: int, recovery_point: int) -> None:
    """Walks the segments from number `first` on, behind the recovery point. Raises OSError."""
    segments = recovered.segments
    following = [*(segment.base_offset for segment in segments[first + 1 :]), -1]
    recovered.segments = segments[:first]
    if first > 0:
        _cut_behind(segments[first - 1], segments[first].base_offset)
    is_broken = False
    for number, segment in enumerate(segments[first:]):
        next_offset = recovered.segments[-1].next_offset if recovered.segments else 0
        if is_broken or segment.base_offset < next_offset:
            # An empty segment stays behind where a roll failed half-way and the one before it went on.
            _set_aside(disk, directory, segment, f"the log before it ends at offset {next_offset}")
            continue
        is_all_read = number == 0 < first and not recovered.snapshots.is_any_up_to(recovery_point)
        position = _intact_position(segment, recovery_point) if number == 0 and not is_all_read else 0
        recovered.segments.append(segment)
        if number == 0:
            start = recovered.walked_from = _base_offset_at(segment, position)
            # Snapshots from behind may know of batches that are lost.
            settled = max(start, recovery_point) if position else start
            recovered.snapshots.forget_after(settled)
            _load_producers(recovered, settled, start)
            if is_all_read:
                # What they were known by may be deleted before the next start, which walks from here again.
                recovered.snapshots.take(recovered.producers, segment.base_offset)
        else:
            recovered.snapshots.take(recovered.producers, segment.base_offset)
        damage = _mend(segment, recovered, position)
        if damage is not None and (damage.position == position > 0 or segment.next_offset < recovered.known_offset):
            # Nothing tells where the log ends before the first batch that was looked at, so all of them are; or what
            # is known of the producers comes from behind the damage.
            recovered.snapshots.forget_after(segment.base_offset)
            recovered.walked_from = segment.base_offset
            _load_producers(recovered, segment.base_offset, segment.base_offset)
            damage = _mend(segment, recovered, 0)
        segment.cuts += 1  # the process before may have cut it, and not have synced that
        if damage is not None:
            _cut(segment, damage)
        # What is no batch may be room that was reserved, and was not given back in time: then nothing is missing.
        is_broken = damage is not None and following[number] != segment.next_offset
    for segment in recovered.segments[first:-1]:
        segment.deactivate()
    if recovered.segments[-1].next_offset > recovered.segments[0].base_offset:
        recovered.snapshots.take(recovered.producers, recovered.segments[-1].next_offset)


def _cut_behind(segment: Segment, end_offset: int) -> None:
    """Cuts off what stands behind `end_offset` in the segment before the first that is walked: room that was reserved,
    or batches of a tail that was truncated, where that was not synced. Only if the batches go exactly that far."""
    position = segment.locator.last_indexed_position()
    next_offset = NO_OFFSET
    try:
        for at, header in walk_segment(segment.file, position, segment.base_offset):
            if header.base_offset >= end_offset:
                raise Damage(segment.file.path, at, f"the next segment begins at offset {end_offset}")
            next_offset = header.last_offset + 1
    except Damage as damage:
        if next_offset == end_offset:
            _cut(segment, damage)


def _intact_position(segment: Segment, recovery_point: int) -> int:
    """A position before the recovery point at which an indexed batch begins; 0 where the indexes cannot be believed."""
    if not segment.indexes.offset_index.is_ordered() or not segment.indexes.time_index.is_ordered():
        return 0
    try:
        for _ in segment.txn_index.rows():
            continue
    except CorruptTransactionIndex as error:
        logger.warning("%s", error)
        return 0
    return segment.locator.indexed_position(recovery_point - 1)


def _base_offset_at(segment: Segment, position: int) -> int:
    """The base offset of the batch at `position`, which an index entry bore out."""
    if position == 0:
        return segment.base_offset
    return read_header(segment.file.pread(HEADER_SIZE, position)).base_offset


def _mend(segment: Segment, recovered: Recovered, start: int) -> Damage | None:
    """Walks a segment from position `start` on, and builds its indexes from there.

    Returns what is no batch any more, if anything, for cutting off. Raises OSError.
    """
    damage: Damage | None = None
    offset = _base_offset_at(segment, start)
    segment.resume(start, offset)
    segment.next_offset = offset
    aborted: list[AbortedTxn] = []
    try:
        for position, header in walk_segment(segment.file, start, segment.base_offset, with_crc=True):
            last_offset = header.last_offset
            segment.last_leader_epoch = header.partition_leader_epoch
            completed = recovered.take(segment, position, header)
            if completed is not None and completed.is_aborted:
                aborted.append(recovered.producers.aborted_txn(completed))
            segment.next_offset = last_offset + 1
            if segment.indexes.note(position, last_offset, header.max_timestamp, segment.config):
                segment.write_indexes()
    except Damage as found:
        damage = found
    _mend_txn_index(segment, max(offset, recovered.known_offset), aborted)
    segment.write_indexes()
    return damage


def _mend_txn_index(segment: Segment, offset: int, aborted: list[AbortedTxn]) -> None:
    try:
        segment.txn_index.truncate(offset)
    except CorruptTransactionIndex:
        segment.txn_index.replace(aborted)  # the walk began at the first batch, for this very reason
        return
    for txn in aborted:
        segment.txn_index.append(txn)


def _cut(segment: Segment, damage: Damage) -> None:
    end, size_bytes = damage.position, segment.size_bytes
    tail = segment.file.pread(min(_LOOK_FOR_ZEROS_BYTES, size_bytes - end), end)
    if len(tail) >= HEADER_SIZE and tail.count(0) == len(tail):
        logger.info(
            "%s: gave back %d bytes that were preallocated, or never written", segment.file.path, size_bytes - end
        )
    else:
        logger.warning(
            "%s: cut %d bytes at position %d, the log goes on at offset %d: %s",
            *(segment.file.path, size_bytes - end, end, segment.next_offset, damage.reason),
        )
    segment.file.truncate(end)
    segment.cuts += 1


def _set_aside(disk: Disk, directory: str, segment: Segment, why: str) -> None:
    """Takes a segment out of the log. One with content keeps it, under another name."""
    path, size_bytes = segment.file.path, segment.size_bytes
    segment.close()
    if size_bytes:
        disk.rename(path, path + UNREACHABLE_SUFFIX)
        logger.error("%s: renamed to *%s with its %d bytes: %s", path, UNREACHABLE_SUFFIX, size_bytes, why)
    else:
        logger.info("%s: removed, for it is empty and %s", path, why)
    remove_files(disk, retire_files(disk, directory, segment.base_offset))


def _copied(
    disk: Disk, directory: str, segment: Segment, config: LogConfig, now_ms: int, sizes: dict[str, int]
) -> Segment:
    """The same segment in a new file that is on the device. Raises OSError.

    A sync of the old one has failed: the kernel calls its pages clean since, whether they reached the device or not.
    """
    path, size_bytes = segment.file.path, segment.size_bytes

    def pieces() -> Iterator[Buffer]:
        for position in range(0, size_bytes, _COPY_BYTES):
            yield segment.file.pread(_COPY_BYTES, position)

    disk.write_new(path + ".tmp", pieces())
    segment.close()
    disk.rename(path + ".tmp", path)
    logger.warning("%s: copied to a new file, for a sync of the old one had failed", path)
    return Segment(disk, directory, segment.base_offset, config, now_ms, sizes)
