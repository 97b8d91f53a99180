"""Verifies what stands at a path: a data directory, a partition's directory, or a file by itself.

A file alone is checked as far as it goes: a log without its indexes, an index with the log beside it, a snapshot by its
checksum. What contradicts other files shows in their directory.
"""

import posixpath
from collections.abc import Iterator
from typing import NamedTuple

from odradek.broker.directories.checkpoints import CLEAN_SHUTDOWN
from odradek.broker.disk.disk import Disk
from odradek.broker.log.checkpoint import CorruptCheckpoint, read_partition_metadata
from odradek.broker.log.segment import LOG_SUFFIX, segment_path
from odradek.broker.offline.dump.directory_check import check_data_directory, check_meta_properties
from odradek.broker.offline.dump.epoch_check import read_epochs
from odradek.broker.offline.dump.findings import Inconsistency, Note
from odradek.broker.offline.dump.index_checks import OffsetIndexCheck, TimeIndexCheck
from odradek.broker.offline.dump.names import Kind, Name
from odradek.broker.offline.dump.offsets_check import read_entries
from odradek.broker.offline.dump.partition_check import Report, check_partition
from odradek.broker.offline.dump.places import Place, place_of
from odradek.broker.offline.dump.replay import Replay
from odradek.broker.offline.dump.segment_check import SegmentWalk
from odradek.broker.offline.dump.snapshot_check import read_snapshot
from odradek.broker.offline.dump.txn_index_check import TxnIndexCheck


class FileReport(NamedTuple):
    """A file that was checked by itself, without an inconsistency."""

    path: str
    batches: int = 0
    entries: int = 0


def verify(disk: Disk, path: str) -> Iterator[Report | FileReport | Note]:
    """Yields what was checked, and notes. Raises Inconsistency at the first; NothingToDump, OSError."""
    match place_of(disk, path):
        case Place.DATA_DIRECTORY:
            yield from check_data_directory(disk, path)
        case Place.PARTITION:
            is_clean = disk.exists(posixpath.join(path, "..", CLEAN_SHUTDOWN))
            yield check_partition(disk, path, is_clean=is_clean)
        case Name() as name:
            yield from _check_file(disk, path, name)


def _check_file(disk: Disk, path: str, name: Name) -> Iterator[FileReport | Note]:
    directory = posixpath.dirname(path) or "."
    match name.kind:
        case Kind.LOG:
            walk = SegmentWalk(disk, path, name.offset, may_grow=True)
            batches = sum(1 for _ in walk.batches(name.offset, None))
            yield from walk.notes
            yield FileReport(path, batches=batches)
        case Kind.OFFSET_INDEX | Kind.TIME_INDEX | Kind.TXN_INDEX:
            yield from _check_index(disk, path, name)
        case Kind.SNAPSHOT:
            yield FileReport(path, entries=len(read_snapshot(path, disk.read_whole(path))[0]))
        case Kind.LEADER_EPOCHS:
            yield FileReport(path, entries=len(read_epochs(disk, path)))
        case Kind.OFFSETS:
            yield FileReport(path, entries=len(read_entries(disk, path)))
        case Kind.PARTITION_METADATA:
            try:
                read_partition_metadata(disk, directory)
            except CorruptCheckpoint as error:
                raise Inconsistency(path, str(error)) from error
            yield FileReport(path)
        case Kind.META_PROPERTIES:
            check_meta_properties(disk, directory)
            yield FileReport(path)
        case Kind.CLEAN_SHUTDOWN:
            yield Note(path, "the broker stopped cleanly")
        case Kind.METADATA:
            yield Note(path, "the cluster's metadata, which is not looked into")


def _check_index(disk: Disk, path: str, name: Name) -> Iterator[FileReport | Note]:
    """Goes over the log that the index belongs to."""
    data = disk.read_whole(path)
    log = segment_path(posixpath.dirname(path) or ".", name.offset, LOG_SUFFIX)
    if not disk.exists(log):
        raise Inconsistency(path, f"there is no {log} that it could belong to")
    walk = SegmentWalk(disk, log, name.offset, may_grow=True)
    batches = walk.batches(name.offset, None)
    check: OffsetIndexCheck | TimeIndexCheck | TxnIndexCheck
    if name.kind is Kind.TXN_INDEX:
        check = TxnIndexCheck(path, data)
        replay = Replay(name.offset)
        for stored in batches:
            check.take(stored, *replay.take(stored), replay)
        check.finish()
    elif name.kind is Kind.OFFSET_INDEX:
        check = OffsetIndexCheck(path, data, name.offset)
        for stored in batches:
            check.take(stored)
        check.finish(walk.size_bytes)
    else:
        check = TimeIndexCheck(path, data, name.offset)
        for stored in batches:
            check.take(stored)
        check.finish(walk.next_offset, is_complete=False)
    yield from walk.notes
    if not isinstance(check, TxnIndexCheck):
        yield from check.notes
    yield FileReport(path, entries=len(check))
