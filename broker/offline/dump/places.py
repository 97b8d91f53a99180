"""What a path leads to, and which files are printed of it."""

import posixpath
from collections.abc import Iterator
from enum import Enum, auto

from odradek.broker.disk.disk import Disk
from odradek.broker.offline.dump.names import Kind, Name, base_name, in_order, name_of, partitions_in_order

_FILES = "a file of a log or of a data directory, by its name"
_OF_PARTITION = (Kind.LOG, Kind.PARTITION_METADATA, Kind.LEADER_EPOCHS)
_OF_DATA_DIRECTORY = (Kind.META_PROPERTIES, Kind.OFFSETS)


class Place(Enum):
    """A directory that can be dumped."""

    PARTITION = auto()
    DATA_DIRECTORY = auto()


class NothingToDump(Exception):
    """There is nothing of ours or Kafka's; the text says what should be given."""


def place_of(disk: Disk, path: str) -> Place | Name:
    """What is at the path, or what the file there is. Raises NothingToDump, OSError."""
    if not disk.is_dir(path):
        name = name_of(base_name(path))
        if name is None:
            raise NothingToDump(f"{path} is not {_FILES}")
        return name
    names = disk.list_dir(path)
    kinds = {name.kind for file_name in names if (name := name_of(file_name)) is not None}
    if not kinds.isdisjoint(_OF_DATA_DIRECTORY):
        return Place.DATA_DIRECTORY
    if not kinds.isdisjoint(_OF_PARTITION):
        return Place.PARTITION
    if partitions_in_order(names):
        return Place.DATA_DIRECTORY
    raise NothingToDump(
        f"{path} is neither a data directory nor a partition's: there is no meta.properties and no *.log"
    )


def files_of(disk: Disk, path: str) -> Iterator[tuple[str, Name]]:
    """The files at a path, in order: the small ones first, then partition by partition, segment by segment.

    Raises NothingToDump, OSError.
    """
    place = place_of(disk, path)
    if isinstance(place, Name):
        yield path, place
        return
    names = disk.list_dir(path)
    yield from ((posixpath.join(path, file_name), name) for file_name, name in in_order(names))
    if place is Place.DATA_DIRECTORY:
        for directory in (posixpath.join(path, name) for name in partitions_in_order(names)):
            if disk.is_dir(directory):
                files = in_order(disk.list_dir(directory))
                yield from ((posixpath.join(directory, file_name), name) for file_name, name in files)
