"""What the names in a data directory say: which file holds what, and which directory is a partition.

    meta.properties  .kafka_cleanshutdown  metadata.log  metadata.revision  *-offset-checkpoint
    <topic>-<n>/
        partition.metadata  leader-epoch-checkpoint
        <offset, 20 digits>.log  .index  .timeindex  .txnindex  .snapshot

What another suffix follows (`.deleted`, `.cleaned`, `.swap`, `.tmp`) is no part of a log: an interruption left it, or
somebody put it aside.
"""

import posixpath
import re
from collections.abc import Iterable
from enum import Enum, auto
from typing import Final, NamedTuple

from odradek.broker.directories.checkpoints import CLEAN_SHUTDOWN
from odradek.broker.directories.meta_properties import FILE_NAME as META_PROPERTIES
from odradek.broker.directories.metadata_revision import FILE_NAME as METADATA_REVISION
from odradek.broker.directories.partition_directories import partition_of
from odradek.broker.log.checkpoint import PARTITION_METADATA
from odradek.broker.log.epochs import LEADER_EPOCHS
from odradek.broker.log.segment import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX
from odradek.broker.log.snapshots import SNAPSHOT_SUFFIX

METADATA_LOG: Final = "metadata.log"
NO_OFFSET: Final = -1
_OFFSET_MAX: Final = 2**63 - 1
_OF_OFFSET: Final = re.compile(r"(\d{20})(\.[a-z]+)(\..+)?", re.ASCII)


class Kind(Enum):
    """What a file holds, in the order in which a directory is printed."""

    META_PROPERTIES = auto()
    CLEAN_SHUTDOWN = auto()
    METADATA = auto()
    OFFSETS = auto()
    PARTITION_METADATA = auto()
    LEADER_EPOCHS = auto()
    SNAPSHOT = auto()
    LOG = auto()
    OFFSET_INDEX = auto()
    TIME_INDEX = auto()
    TXN_INDEX = auto()


_BY_NAME: Final = {
    META_PROPERTIES: Kind.META_PROPERTIES,
    CLEAN_SHUTDOWN: Kind.CLEAN_SHUTDOWN,
    METADATA_LOG: Kind.METADATA,
    METADATA_REVISION: Kind.METADATA,
    PARTITION_METADATA: Kind.PARTITION_METADATA,
    LEADER_EPOCHS: Kind.LEADER_EPOCHS,
}
_BY_SUFFIX: Final = {
    SNAPSHOT_SUFFIX: Kind.SNAPSHOT,
    LOG_SUFFIX: Kind.LOG,
    OFFSET_INDEX_SUFFIX: Kind.OFFSET_INDEX,
    TIME_INDEX_SUFFIX: Kind.TIME_INDEX,
    TXN_INDEX_SUFFIX: Kind.TXN_INDEX,
}
_OFFSETS_SUFFIX: Final = "-offset-checkpoint"


class Name(NamedTuple):
    """What the name of a file says."""

    kind: Kind
    offset: int = NO_OFFSET
    """The number in the name: the base offset of a segment, or the offset before which a snapshot stands."""
    is_left_over: bool = False


def name_of(file_name: str) -> Name | None:
    """None for a name that means nothing here."""
    if (kind := _BY_NAME.get(file_name)) is not None:
        return Name(kind)
    if file_name.endswith(_OFFSETS_SUFFIX):
        return Name(Kind.OFFSETS)
    found = _OF_OFFSET.fullmatch(file_name)
    kind = None if found is None else _BY_SUFFIX.get(found[2])
    if found is None or kind is None or int(found[1]) > _OFFSET_MAX:
        return None
    return Name(kind, int(found[1]), found[3] is not None)


def partitions_in_order(directory_names: Iterable[str]) -> list[str]:
    """Those that are partitions, by topic and number."""
    found = [(key, name) for name in directory_names if (key := partition_of(name))]
    return [name for _, name in sorted(found)]


def base_name(path: str) -> str:
    """The last part of a path, whatever stands behind it."""
    return posixpath.basename(posixpath.normpath(path))


def in_order(file_names: Iterable[str]) -> list[tuple[str, Name]]:
    """The files that belong to a log or a data directory: small ones first, then segment by segment."""
    found = [(file_name, name) for file_name in file_names if (name := name_of(file_name)) and not name.is_left_over]
    return sorted(found, key=lambda each: (each[1].offset, each[1].kind.value, each[0]))
