"""Takes over a data directory: locks it, reads all of it, and writes the metadata of its topics in one step.

The metadata store is a file, `metadata.log`, and comes into being whole: it is written beside and renamed. Until then
nothing is changed, and nothing else is ever: no log, no index, no checkpoint. Whatever ends an adoption half-way leaves
a directory that Kafka can be started on, and that can be adopted.
"""

import posixpath
from dataclasses import dataclass

from broker import meta_properties
from broker.adopt.directory import read_directory
from broker.adopt.kafka_metadata import KafkaMetadata
from broker.adopt.metadata_log import DIRECTORY, UnreadableMetadata, read_metadata_log
from broker.adopt.plan import Plan, entries, make_plan
from broker.cluster.embedded import FILE_NAME
from broker.cluster.image import ClusterImage
from broker.cluster.journal import decode_file, encode_file
from broker.cluster.store import Snapshot, StoreDamaged
from broker.disk import Disk, Lock, LockHeld
from broker.log.checkpoint import CorruptCheckpoint
from broker.meta_properties import ForeignDirectory, MetaProperties
from broker.metadata_revision import RecordedRevision, load_revision

LOCK_FILE = ".lock"
REVISIONS_SKIPPED = 1_000_000


class AdoptionRefused(Exception):
    """The directory cannot be taken over; one sentence says why, and what to do. Nothing was changed."""


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

    `node_id`: whose it must be. `metadata_dir`: where `__cluster_metadata-0` is, if not here. Raises AdoptionRefused,
    OSError.
    """
    known = _identify(disk, data_dir, node_id)
    lock = _lock(disk, data_dir, is_dry_run)
    try:
        _refuse_ours(disk, data_dir)
        revision = _first_revision(load_revision(disk, data_dir))
        metadata = _cluster_metadata(disk, data_dir, metadata_dir)
        found = read_directory(disk, data_dir)
        plan = make_plan(found, metadata, known.node_id)
        if not is_dry_run:
            _write(disk, data_dir, plan, known.cluster_id, revision)
    except ForeignDirectory as error:
        raise AdoptionRefused(str(error)) from error
    except CorruptCheckpoint as error:
        raise AdoptionRefused(
            f"{error}; restore the file, or remove it, and what DeleteRecords removed may come back"
        ) from error
    finally:
        if lock is not None:
            lock.release()
    return Adoption(data_dir, known, found.is_clean, plan, tuple(found.kafkas_own))


def _identify(disk: Disk, data_dir: str, node_id: int | None) -> MetaProperties:
    if not disk.is_dir(data_dir):
        raise AdoptionRefused(f"{data_dir} is no directory: give the one that log.dirs of the broker names")
    try:
        known = meta_properties.load(disk, data_dir)
    except ForeignDirectory as error:
        raise AdoptionRefused(str(error)) from error
    if known is None:
        raise AdoptionRefused(
            f"{data_dir} has no {meta_properties.FILE_NAME}, as the data directory of a broker has: give the one that "
            "log.dirs of the broker names"
        )
    if node_id is not None and node_id != known.node_id:
        raise AdoptionRefused(
            f"{data_dir} belongs to node {known.node_id} and not to node {node_id}: give its own directory, or leave "
            "--node-id out"
        )
    return known


def _lock(disk: Disk, data_dir: str, is_dry_run: bool) -> Lock | None:
    path = posixpath.join(data_dir, LOCK_FILE)
    if is_dry_run and not disk.exists(path):
        return None  # nobody can hold it, and a file would be made
    try:
        return disk.lock(path)
    except LockHeld as error:
        raise AdoptionRefused(
            f"{data_dir} cannot be used: {error.strerror}; stop the broker that runs on it, and try again"
        ) from error


def _first_revision(recorded: int) -> int:
    """A revision that no metadata had which this directory followed, even if the last ones were not written down."""
    return recorded + REVISIONS_SKIPPED if recorded else 1


def _refuse_ours(disk: Disk, data_dir: str) -> None:
    """Metadata of ours must not be there, unless nobody ever wrote any."""
    path = posixpath.join(data_dir, FILE_NAME)
    if not disk.exists(path):
        return
    try:
        is_empty = not decode_file(disk.read_whole(path)).entries
    except StoreDamaged as error:
        raise AdoptionRefused(
            f"{path} is there and can not be used: {error}; restore it from a backup. Only if there is none, move it "
            "away, and adopt what the directories say"
        ) from error
    if not is_empty:
        raise AdoptionRefused(
            f"{path} is there, so this directory is ours already: start with `odradek serve --data-dir {data_dir}`"
        )


def _cluster_metadata(disk: Disk, data_dir: str, metadata_dir: str | None) -> KafkaMetadata | None:
    path = posixpath.join(data_dir if metadata_dir is None else metadata_dir, DIRECTORY)
    if not disk.is_dir(path):
        if metadata_dir is not None:
            raise AdoptionRefused(f"{metadata_dir} has no {DIRECTORY}: give what metadata.log.dir of the broker names")
        return None
    try:
        return read_metadata_log(disk, path)
    except UnreadableMetadata as error:
        raise AdoptionRefused(
            f"{error}; to adopt without it, and with default options for every topic, rename {path}"
        ) from error


def _write(disk: Disk, data_dir: str, plan: Plan, cluster_id: str, revision: int) -> None:
    """Makes the metadata store. Raises OSError."""
    data = encode_file(entries(plan, cluster_id, revision), (), revision)
    journal = decode_file(data)
    image = ClusterImage.from_snapshot(Snapshot(journal.revision, journal.entries))
    assert image.topics.keys() == {topic.name for topic in plan.taken}, "what is written is what was planned"
    disk.write_whole(posixpath.join(data_dir, FILE_NAME), data)
    RecordedRevision(disk, data_dir).write(revision)
