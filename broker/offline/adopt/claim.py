"""Claims a data directory that no broker runs on: finds out whose it is, and locks it."""

import posixpath
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from odradek.broker.directories import meta_properties
from odradek.broker.directories.meta_properties import ForeignDirectory, MetaProperties
from odradek.broker.disk.disk import Disk, LockHeld

LOCK_FILE: Final = ".lock"
REVISIONS_SKIPPED: Final = 1_000_000


class DirectoryRefused(Exception):
    """The directory cannot be used for this; one sentence says why, and what to do. Nothing was changed."""


def identify(disk: Disk, data_dir: str) -> MetaProperties:
    """What the directory says of itself. Raises DirectoryRefused, OSError."""
    if not disk.is_dir(data_dir):
        raise DirectoryRefused(f"{data_dir} is no directory: give the one that log.dirs of the broker names")
    try:
        known = meta_properties.load(disk, data_dir)
    except ForeignDirectory as error:
        raise DirectoryRefused(str(error)) from error
    if known is None:
        raise DirectoryRefused(
            f"{data_dir} has no {meta_properties.FILE_NAME}, as the data directory of a broker has: give the one that "
            "log.dirs of the broker names"
        )
    return known


@contextmanager
def locked(disk: Disk, data_dir: str, *, is_dry_run: bool = False) -> Generator[None]:
    """Holds the directory for the length of the block; in a dry run not where no lock file is there. Raises
    DirectoryRefused, OSError."""
    path = posixpath.join(data_dir, LOCK_FILE)
    if is_dry_run and not disk.exists(path):
        yield  # nobody can hold it, and a file would be made
        return
    try:
        lock = disk.lock(path)
    except LockHeld as error:
        raise DirectoryRefused(
            f"{data_dir} cannot be used: {error.strerror}; stop the broker that runs on it, and try again"
        ) from error
    try:
        yield
    finally:
        lock.release()


def first_revision(recorded: int) -> int:
    """A revision that no metadata had which this directory followed, even if the last ones were not written down."""
    return recorded + REVISIONS_SKIPPED if recorded else 1
