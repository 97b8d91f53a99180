"""What stands in a partition's directory, and what the last process did not get to (LogLoader.java).

    <offset>.log  .index  .timeindex  .txnindex     a segment
    <offset>.snapshot                               the producers before that offset
    *.deleted                                       a removal under way: finished
    *.<nonce>.cleaned                               a compaction that did not come to its end: removed
    *.swap                                          one that did: what it replaces goes, and it takes the place
    *.tmp                                           half of a small file: removed

Indexes without a log are removed. Files that no Kafka log has are left alone, and named once.
"""

import logging
import re
from contextlib import suppress
from dataclasses import dataclass, field

from odradek.broker.disk.disk import Disk
from odradek.broker.log.batches import Damage, walk
from odradek.broker.log.checkpoint import PARTITION_METADATA
from odradek.broker.log.epochs import LEADER_EPOCHS
from odradek.broker.log.segment import (
    DELETED_SUFFIX,
    LOG_SUFFIX,
    SUFFIXES,
    remove_files,
    retire_files,
    segment_path,
)
from odradek.broker.log.snapshots import SNAPSHOT_SUFFIX

logger = logging.getLogger(__name__)

CLEANED_SUFFIX = ".cleaned"
"""Behind the nonce of the round that wrote it: the worker of a broker that was killed may write for a while yet."""
SWAP_SUFFIX = ".swap"
UNSYNCED = ".odradek-unsynced"
"""Its presence says that a sync of this log failed, so that the page cache cannot be trusted (recovery.py)."""
_TEMPORARY = (LEADER_EPOCHS + ".tmp", PARTITION_METADATA + ".tmp")
_NAME = re.compile(
    r"(\d{20})(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)(\.deleted|(?:\.[0-9a-f]{16})?\.cleaned|\.swap|\.tmp)?"
)
_REMOVED = (DELETED_SUFFIX, CLEANED_SUFFIX, ".tmp")
_OFFSET_MAX = 2**63 - 1


@dataclass(slots=True)
class Contents:
    """The files of a log."""

    sizes: dict[str, int]
    base_offsets: list[int] = field(default_factory=list[int])
    snapshots: list[int] = field(default_factory=list[int])
    is_unsynced: bool = False


def tidy(disk: Disk, directory: str) -> Contents:
    """Finishes what was interrupted, and says what is there. Raises OSError."""
    contents = Contents(_finish(disk, directory))
    foreign: list[str] = []
    for name in disk.list_dir(directory):
        found = _NAME.fullmatch(name)
        if found is not None and not found[3] and name in contents.sizes and int(found[1]) <= _OFFSET_MAX:
            if found[2] == LOG_SUFFIX:
                contents.base_offsets.append(int(found[1]))
            elif found[2] == SNAPSHOT_SUFFIX:
                contents.snapshots.append(int(found[1]))
        elif name == UNSYNCED:
            contents.is_unsynced = True
        elif name not in (LEADER_EPOCHS, PARTITION_METADATA):
            foreign.append(name)
    if foreign:
        logger.warning("%s: left alone, for they are no part of a log: %s", directory, ", ".join(foreign))
    return contents


def _finish(disk: Disk, directory: str) -> dict[str, int]:
    """Finishes what an interrupted removal, compaction or rename left behind. Returns the files, with their sizes."""
    sizes = disk.sizes(directory)
    for name in sorted(sizes):
        found = _NAME.fullmatch(name)
        if name in _TEMPORARY or (found is not None and found[3] and found[3].endswith(_REMOVED)):
            disk.remove(f"{directory}/{name}")
            logger.info("%s/%s: removed, which the last process did not get to", directory, name)
            del sizes[name]
    swaps = sorted(name for name in sizes if name.endswith(LOG_SUFFIX + SWAP_SUFFIX) and _NAME.fullmatch(name))
    for name in swaps:
        _complete_swap(disk, directory, int(name[:20]), sizes)
    if swaps:
        sizes = disk.sizes(directory)
    for name in sorted(sizes):
        found = _NAME.fullmatch(name)
        is_index = found is not None and found[2] not in (LOG_SUFFIX, SNAPSHOT_SUFFIX)
        if found is not None and is_index and (found[3] == SWAP_SUFFIX or found[1] + LOG_SUFFIX not in sizes):
            disk.remove(f"{directory}/{name}")
            logger.info("%s/%s: removed, for there is no log that it belongs to", directory, name)
            del sizes[name]
    return sizes


def _complete_swap(disk: Disk, directory: str, base_offset: int, sizes: dict[str, int]) -> None:
    """Puts a compacted segment into the place of those that it was made of."""
    path = segment_path(directory, base_offset, LOG_SUFFIX) + SWAP_SUFFIX
    last_offset = base_offset
    try:
        file = disk.open(path)
        try:
            for _, header in walk(file, 0, file.size_bytes):
                last_offset = header.last_offset
        finally:
            file.close()
    except Damage as damage:
        # It was synced before it got this name. Should that ever happen, what it replaces is still there.
        disk.rename(path, path + ".damaged")
        logger.error("%s: kept aside as *.damaged: %s; the segments that it was made of stay", path, damage.reason)
        return
    for name in sorted(sizes):
        found = _NAME.fullmatch(name)
        if found and found[2] == LOG_SUFFIX and not found[3] and base_offset <= int(found[1]) <= last_offset:
            remove_files(disk, retire_files(disk, directory, int(found[1])))
    rename_swapped(disk, directory, base_offset)
    logger.info("%s: took the place of the segments up to offset %d", path, last_offset)


def cleaned_path(directory: str, base_offset: int, suffix: str, nonce: str) -> str:
    """What a round of compaction, named by its nonce, calls a file of the segment that it writes."""
    return f"{segment_path(directory, base_offset, suffix)}.{nonce}{CLEANED_SUFFIX}"


def remove_cleaned(disk: Disk, directory: str, nonce: str) -> None:
    """Removes all that a round wrote and that has not taken a segment's place. Raises OSError."""
    for name in disk.list_dir(directory):
        if name.endswith(f".{nonce}{CLEANED_SUFFIX}"):
            with suppress(FileNotFoundError):  # a helper thread that stops removes what it wrote
                disk.remove(f"{directory}/{name}")


def rename_swapped(disk: Disk, directory: str, base_offset: int) -> None:
    """Gives the files of a compacted segment the names of a segment, the log last. Raises OSError."""
    for suffix in reversed(SUFFIXES):
        path = segment_path(directory, base_offset, suffix)
        if disk.exists(path + SWAP_SUFFIX):
            disk.rename(path + SWAP_SUFFIX, path)
