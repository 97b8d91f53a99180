"""What lies in a data directory, read and left as it is: partitions with what they say, everything else by its name.

The checkpoints of the data directory are Kafka's and ours alike (broker/directories/checkpoints.py).
`cleaner-offset-checkpoint` names the partitions that Kafka has compacted (LogCleanerManager.java).
"""

import posixpath
from dataclasses import dataclass, field

from odradek.broker.directories.checkpoints import CLEAN_SHUTDOWN, Key
from odradek.broker.directories.partition_directories import KAFKAS_OWN, partition_of, suffix_of
from odradek.broker.disk.disk import Disk
from odradek.broker.log.checkpoint import (
    CLEANED_OFFSETS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    CorruptCheckpoint,
    read_offsets,
)
from odradek.broker.offline.adopt.partition import PartitionFacts, read_partition

REMOTE_INDEXES = "remote-log-index-cache"


@dataclass(slots=True)
class Found:
    """The content of a data directory. Names are those of directories in it."""

    is_clean: bool
    partitions: list[PartitionFacts] = field(default_factory=list[PartitionFacts])
    kafkas_own: list[str] = field(default_factory=list[str])
    """Of topics that Kafka keeps for itself."""
    others: dict[str, str] = field(default_factory=dict[str, str])
    """Directories that no partition is served from, with what they are."""
    log_starts: dict[Key, int] = field(default_factory=dict[Key, int])
    compacted: set[Key] = field(default_factory=set[Key])
    remarks: list[str] = field(default_factory=list[str])


def read_directory(disk: Disk, data_dir: str) -> Found:
    """Raises CorruptCheckpoint (the log starts: without them deleted records would come back), OSError."""
    found = Found(disk.exists(posixpath.join(data_dir, CLEAN_SHUTDOWN)))
    found.log_starts = read_offsets(disk, posixpath.join(data_dir, LOG_START_OFFSETS))
    recovery_points = _read_or_do_without(disk, posixpath.join(data_dir, RECOVERY_POINTS), found)
    found.compacted = set(_read_or_do_without(disk, posixpath.join(data_dir, CLEANED_OFFSETS), found))
    for name in disk.list_dir(data_dir):
        path = posixpath.join(data_dir, name)
        place, is_dir = partition_of(name), disk.is_dir(path)
        if place is None:
            if is_dir:
                found.others[name] = _kind_of(name)
        elif not is_dir:
            found.others[name] = "a file with the name of a partition"
        elif place[0] in KAFKAS_OWN:
            found.kafkas_own.append(name)
        elif name != f"{place[0]}-{place[1]}":
            found.others[name] = "no broker gives a partition such a name"
        else:
            point = recovery_points.get(place, 0)
            try:
                found.partitions.append(
                    read_partition(disk, path, *place, recovery_point=point, is_clean=found.is_clean)
                )
            except OSError as error:
                raise OSError(f"the partition {name} cannot be read: {error}") from error
    return found


def _kind_of(name: str) -> str:
    """What a directory is that is no partition's."""
    match suffix_of(name):
        case "-delete":
            return "a deleted partition; the next start removes it, as Kafka's would"
        case "-stray":
            return "a partition that the metadata did not know; it is left alone"
        case "-future":
            return "a copy of a partition that was on its way to another log directory; it is left alone"
        case _ if name == REMOTE_INDEXES:
            return "indexes of tiered storage, which is not built: what was moved there cannot be read"
        case _:
            return "no partition; it is left alone"


def _read_or_do_without(disk: Disk, path: str, found: Found) -> dict[Key, int]:
    try:
        return read_offsets(disk, path)
    except CorruptCheckpoint as error:
        found.remarks.append(f"{error}; a start does without it")
        return {}
