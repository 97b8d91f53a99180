"""Backup and restore of the metadata that lies in a data directory (`metadata.log`), without a broker.

A backup reads the file as it is, and locks nothing: what it is written to at that moment it finds half a commit of at
most, which does not count yet. A restore makes the file whole, beside its place, and renames it: it is there or it is
not.
"""

import posixpath
from collections.abc import Callable

from odradek.broker.cluster.backup import Backup, described, restored_values, take_backup
from odradek.broker.cluster.embedded import FILE_NAME
from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.journal import Journal, decode_file, encode_file
from odradek.broker.cluster.keys import ORIGIN_KEY, MalformedMetadata
from odradek.broker.cluster.lineage import Origin
from odradek.broker.cluster.store import Entry, Snapshot, StoreDamaged
from odradek.broker.directories import meta_properties
from odradek.broker.directories.meta_properties import ForeignDirectory
from odradek.broker.directories.metadata_revision import RecordedRevision, load_revision
from odradek.broker.disk.disk import Disk
from odradek.broker.offline.adopt.claim import DirectoryRefused, first_revision, locked


def backup_of_directory(disk: Disk, data_dir: str, time: str, *, with_secrets: bool = False) -> Backup:
    """What the metadata in a data directory says now. Raises DirectoryRefused, OSError."""
    journal = read_journal(disk, data_dir)
    if journal is None:
        raise DirectoryRefused(f"{data_dir} has no {FILE_NAME}: give the directory that the metadata is in")
    try:
        return take_backup(Snapshot(journal.revision, journal.entries), time, with_secrets=with_secrets)
    except MalformedMetadata as error:
        raise DirectoryRefused(f"{posixpath.join(data_dir, FILE_NAME)} cannot be used: {error}") from error


def restore_directory(disk: Disk, data_dir: str, backup: Backup, *, revision_at_least: int = 0) -> int:
    """Restores into a data directory without metadata, and returns its revision, which is above that of the backup, the
    directory's own, and `revision_at_least`. Raises DirectoryRefused, OSError.
    """
    try:
        values = restored_values(backup)
    except MalformedMetadata as error:
        raise DirectoryRefused(f"the backup cannot be used: {error}") from error

    def entries(revision: int) -> dict[str, Entry]:
        return {key: Entry(value, revision) for key, value in values.items()}

    disk.make_dir(data_dir)
    with locked(disk, data_dir):
        _refuse_foreign(disk, data_dir, backup.cluster_id)
        return write_metadata(disk, data_dir, entries, max(backup.revision, revision_at_least))


def read_journal(disk: Disk, data_dir: str) -> Journal | None:
    """What `metadata.log` says; None without the file. Raises DirectoryRefused, OSError."""
    path = posixpath.join(data_dir, FILE_NAME)
    if not disk.exists(path):
        return None
    try:
        return decode_file(disk.read_whole(path))
    except StoreDamaged as error:
        raise DirectoryRefused(f"{path} cannot be used: {error}") from error


def write_metadata(disk: Disk, data_dir: str, entries: Callable[[int], dict[str, Entry]], known_revision: int) -> int:
    """Makes the metadata of a locked directory that has none, and returns its revision, which is higher than any that
    the directory followed or the caller knows of, and supersedes all below. `entries`: its keys, as of a revision.

    Raises DirectoryRefused, OSError; nothing was changed then.
    """
    journal = read_journal(disk, data_dir)
    if journal is not None and journal.entries:
        raise DirectoryRefused(
            f"{posixpath.join(data_dir, FILE_NAME)} is not empty, it holds {described(list(journal.entries))}: move it "
            "away, if this is to take its place"
        )
    try:
        revision = first_revision(max(load_revision(disk, data_dir), known_revision))
    except ForeignDirectory as error:
        raise DirectoryRefused(str(error)) from error
    made = entries(revision)
    origin = Origin.of({key: entry.value for key, entry in made.items()}, revision - 1)
    made[ORIGIN_KEY] = Entry(origin.encode(), revision)
    data = encode_file(made, (), revision)
    image = ClusterImage.from_snapshot(Snapshot(revision, decode_file(data).entries))
    assert image.cluster_id is not None, "what is written can be read"
    disk.write_whole(posixpath.join(data_dir, FILE_NAME), data)
    RecordedRevision(disk, data_dir).write(image.followed)
    return revision


def _refuse_foreign(disk: Disk, data_dir: str, cluster_id: str) -> None:
    try:
        known = meta_properties.load(disk, data_dir)
    except ForeignDirectory as error:
        raise DirectoryRefused(str(error)) from error
    if known is not None and known.cluster_id != cluster_id:
        raise DirectoryRefused(
            f"{data_dir} belongs to cluster {known.cluster_id}, and the backup to cluster {cluster_id}: give the other "
            "one of the two that belongs to it"
        )
