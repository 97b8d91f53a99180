"""Takes over a data directory: locks it, reads all of it, and writes the metadata of its topics in one step.

The metadata store is a file, `metadata.log`, and comes into being whole: it is written beside and renamed. Until then
nothing is changed, and nothing else is ever, but for a note of what was seen (directories/adoption_note.py): no log, no
index, no checkpoint. Whatever ends an adoption half-way leaves a directory that Kafka can be started on, and that can
be adopted. So does one that was completed, until a broker of ours is started on it: another adoption takes its place.
"""

import posixpath
from dataclasses import dataclass

from odradek.broker.cluster.embedded import FILE_NAME
from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.journal import decode_file, encode_file
from odradek.broker.cluster.keys import ORIGIN_KEY
from odradek.broker.cluster.lineage import Origin
from odradek.broker.cluster.store import Entry, Snapshot, StoreDamaged
from odradek.broker.directories import adoption_note
from odradek.broker.directories.meta_properties import ForeignDirectory, MetaProperties
from odradek.broker.directories.metadata_revision import RecordedRevision, load_revision
from odradek.broker.disk.disk import Disk
from odradek.broker.log.checkpoint import CorruptCheckpoint
from odradek.broker.offline.adopt.claim import DirectoryRefused, first_revision, identify, locked
from odradek.broker.offline.adopt.directory import read_directory
from odradek.broker.offline.adopt.kafka_metadata import KafkaMetadata
from odradek.broker.offline.adopt.metadata_log import DIRECTORY, UnreadableMetadata, read_metadata_log
from odradek.broker.offline.adopt.plan import Plan, entries, make_plan


@dataclass(frozen=True, slots=True)
class Adoption:
    """What was done, or would be."""

    data_dir: str
    known: MetaProperties
    is_clean: bool
    plan: Plan
    kafkas_own: tuple[str, ...]


def adopt(
    disk: Disk,
    data_dir: str,
    *,
    node_id: int | None = None,
    metadata_dir: str | None = None,
    is_dry_run: bool = False,
) -> Adoption:
    """Takes the directory over, or with `is_dry_run` says what that would come to, and changes nothing.

    `node_id`: whose it must be. `metadata_dir`: where `__cluster_metadata-0` is, if not here. Raises DirectoryRefused,
    OSError.
    """
    known = identify(disk, data_dir)
    _check_node(known, data_dir, node_id)
    try:
        with locked(disk, data_dir, is_dry_run=is_dry_run):
            _refuse_ours(disk, data_dir)
            revision = first_revision(load_revision(disk, data_dir))
            metadata = _cluster_metadata(disk, data_dir, metadata_dir)
            found = read_directory(disk, data_dir)
            seen = adoption_note.look(disk, data_dir, metadata_dir)
            plan = make_plan(found, metadata, known.node_id)
            if not is_dry_run:
                _write(disk, data_dir, plan, known.cluster_id, revision, seen)
    except ForeignDirectory as error:
        raise DirectoryRefused(str(error)) from error
    except CorruptCheckpoint as error:
        raise DirectoryRefused(
            f"{error}; restore the file, or remove it, and what DeleteRecords removed may come back"
        ) from error
    return Adoption(data_dir, known, found.is_clean, plan, tuple(found.kafkas_own))


def _check_node(known: MetaProperties, data_dir: str, node_id: int | None) -> None:
    if node_id is not None and node_id != known.node_id:
        raise DirectoryRefused(
            f"{data_dir} belongs to node {known.node_id} and not to node {node_id}: give its own directory, or leave "
            "--node-id out"
        )


def _refuse_ours(disk: Disk, data_dir: str) -> None:
    """Metadata of ours must not be there, unless nobody ever wrote any, or an adoption did which was never used."""
    path = posixpath.join(data_dir, FILE_NAME)
    if not disk.exists(path) or adoption_note.is_unused(disk, data_dir):
        return
    try:
        is_empty = not decode_file(disk.read_whole(path)).entries
    except StoreDamaged as error:
        raise DirectoryRefused(
            f"{path} is there and can not be used: {error}; restore it from a backup. Only if there is none, move it "
            "away, and adopt what the directories say"
        ) from error
    if not is_empty:
        raise DirectoryRefused(
            f"{path} is there, so this directory is ours already: start with `odradek serve --data-dir {data_dir}`"
        )


def _cluster_metadata(disk: Disk, data_dir: str, metadata_dir: str | None) -> KafkaMetadata | None:
    path = posixpath.join(data_dir if metadata_dir is None else metadata_dir, DIRECTORY)
    if not disk.is_dir(path):
        if metadata_dir is not None:
            raise DirectoryRefused(f"{metadata_dir} has no {DIRECTORY}: give what metadata.log.dir of the broker names")
        return None
    try:
        return read_metadata_log(disk, path)
    except UnreadableMetadata as error:
        raise DirectoryRefused(
            f"{error}; to adopt without it, and with default options for every topic, rename {path}"
        ) from error


def _write(disk: Disk, data_dir: str, plan: Plan, cluster_id: str, revision: int, seen: dict[str, str]) -> None:
    """Makes the metadata store, once that of an unused adoption is gone and what was seen is noted. Raises OSError."""
    made = entries(plan, cluster_id, revision)
    origin = Origin.of({key: entry.value for key, entry in made.items()}, revision - 1)
    data = encode_file({**made, ORIGIN_KEY: Entry(origin.encode(), revision)}, (), revision)
    journal = decode_file(data)
    image = ClusterImage.from_snapshot(Snapshot(journal.revision, journal.entries))
    assert image.topics.keys() == {topic.name for topic in plan.taken}, "what is written is what was planned"
    path = posixpath.join(data_dir, FILE_NAME)
    if adoption_note.is_unused(disk, data_dir) and disk.exists(path):
        disk.remove(path)
        disk.sync_dir(data_dir)
    adoption_note.write_note(disk, data_dir, seen)
    disk.write_whole(path, data)
    RecordedRevision(disk, data_dir).write(image.followed)
