"""Takes a broker's directory into a cluster's, or back: looks, locks, and carries out the steps of plan.py.

Every step is one change of the disk that is made safe before the next one. Locked are all directories of brokers that
are there, and that of the metadata, so nothing starts meanwhile.
"""

import errno
import posixpath
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from odradek.broker.cluster.embedded import FILE_NAME
from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.journal import Journal, decode_file, encode_file
from odradek.broker.cluster.keys import MalformedMetadata, broker_config_key, node_key
from odradek.broker.cluster.store import Snapshot, StoreDamaged
from odradek.broker.directories import adoption_note, meta_properties
from odradek.broker.directories.cluster_layout import (
    METADATA_DIRECTORY,
    NOTE_FILE,
    broker_directory,
    broker_ids,
    first_broker_id,
    load_note,
    metadata_directory,
)
from odradek.broker.directories.meta_properties import ForeignDirectory, MetaProperties
from odradek.broker.disk.disk import Disk
from odradek.broker.offline.adopt.claim import LOCK_FILE, DirectoryRefused, identify, locked
from odradek.broker.offline.take.plan import Forget, RemoveNote, Rename, Seen, Step, WriteNote, take, take_back

OTHER_FILE_SYSTEM: Final = (errno.EXDEV, errno.EBUSY)
"""Of a renaming: from one file system to another; of the place where one is mounted."""


@dataclass(frozen=True, slots=True)
class Taking:
    """What was done, or would be. `left`: directories of other brokers, which hold no partition."""

    known: MetaProperties
    steps: Sequence[Step]
    left: Sequence[str]


def move(disk: Disk, serve_dir: str, data_dir: str, *, is_back: bool = False, is_dry_run: bool = False) -> Taking:
    """Moves the broker of `serve_dir` into the cluster's directory `data_dir`, or with `is_back` from there. With
    `is_dry_run` only tells what that would come to, and changes nothing. Paths are absolute.

    Raises DirectoryRefused where it cannot be, and OSError of the disk: the same call goes on where that one ended.
    """
    _check_apart(serve_dir, data_dir)
    try:
        with _locked(disk, serve_dir, data_dir, is_dry_run=is_dry_run):
            seen = _look(disk, serve_dir, data_dir, is_back=is_back)
            if is_back:
                _check_target(disk, serve_dir, seen)
            image = _image(disk, seen)
            steps = (take_back if is_back else take)(seen, image)
            if not is_dry_run:
                _carry_out_all(disk, steps, seen)
    except ForeignDirectory as error:
        raise DirectoryRefused(str(error)) from error
    left = [broker_directory(data_dir, each) for each in broker_ids(disk, data_dir) if each != seen.known.node_id]
    return Taking(seen.known, steps, left if is_back else [])


# ----------------------------------------------------------------------------------------------------- what there is
def _check_apart(serve_dir: str, data_dir: str) -> None:
    one, other = posixpath.join(serve_dir, ""), posixpath.join(data_dir, "")
    if one.startswith(other) or other.startswith(one):
        raise DirectoryRefused(
            f"{serve_dir} and {data_dir} are one, or lie in one another: give a directory beside it, such as "
            f"{serve_dir.rstrip('/')}-cluster"
        )


@contextmanager
def _locked(disk: Disk, serve_dir: str, data_dir: str, *, is_dry_run: bool) -> Generator[None]:
    """Nothing can start in either place. What is no directory of ours is left as it is."""
    marks = {
        serve_dir: meta_properties.FILE_NAME,
        metadata_directory(data_dir): FILE_NAME,
        **{broker_directory(data_dir, each): meta_properties.FILE_NAME for each in broker_ids(disk, data_dir)},
    }
    with ExitStack() as stack:
        for path, mark in marks.items():
            if disk.exists(posixpath.join(path, mark)):
                stack.enter_context(locked(disk, path, is_dry_run=is_dry_run))
        yield


def _look(disk: Disk, serve_dir: str, data_dir: str, *, is_back: bool) -> Seen:
    note = load_note(disk, data_dir)
    is_there = disk.is_dir(serve_dir) and bool(disk.list_dir(serve_dir))
    if not is_there and not is_back and note is None and not broker_ids(disk, data_dir):
        identify(disk, serve_dir)  # says what it is not
    serve = identify(disk, serve_dir) if is_there else None
    if serve is not None and adoption_note.is_unused(disk, serve_dir):
        raise DirectoryRefused(
            f"{serve_dir} was adopted from Apache Kafka and never started since: start `odradek serve` on it once"
        )
    node_id = note.known.node_id if note is not None else first_broker_id(disk, data_dir)
    broker_dir = broker_directory(data_dir, node_id)
    taken = identify(disk, broker_dir) if disk.is_dir(broker_dir) else None
    places = (serve_dir, broker_dir, metadata_directory(data_dir))
    return Seen(
        serve_dir,
        data_dir,
        serve,
        taken,
        [path for path in places if disk.exists(posixpath.join(path, FILE_NAME))],
        note,
        _left(disk, data_dir),
    )


def _left(disk: Disk, data_dir: str) -> list[str]:
    if not disk.exists(data_dir):
        return []
    if not disk.is_dir(data_dir):
        raise DirectoryRefused(f"{data_dir} is no directory: give one that is not there yet")
    names = [name for name in disk.list_dir(data_dir) if not name.startswith(NOTE_FILE)]
    metadata = metadata_directory(data_dir)
    if METADATA_DIRECTORY in names and disk.is_dir(metadata) and set(disk.list_dir(metadata)) <= {LOCK_FILE}:
        names.remove(METADATA_DIRECTORY)
    return names


def _check_target(disk: Disk, serve_dir: str, seen: Seen) -> None:
    parent = posixpath.dirname(serve_dir)
    if seen.serve is not None and seen.taken is not None:
        raise DirectoryRefused(
            f"{serve_dir} is the data directory of a broker: give a directory that is not there, for it to become"
        )
    if disk.exists(serve_dir) and not disk.is_dir(serve_dir):
        raise DirectoryRefused(f"{serve_dir} is no directory: give one that is not there")
    if not disk.is_dir(parent):
        raise DirectoryRefused(f"{parent} is no directory: make it first")


def _image(disk: Disk, seen: Seen) -> ClusterImage:
    """What the metadata says, wherever it is. Nothing where it is nowhere or in several places, which plans refuse."""
    if len(seen.metadata) != 1:
        return ClusterImage()
    journal = _journal(disk, seen.metadata[0])
    entries = {key: entry for key, entry in journal.entries.items() if key not in journal.leased}
    try:
        return ClusterImage.from_snapshot(Snapshot(journal.revision, entries))
    except MalformedMetadata as error:
        raise DirectoryRefused(f"{posixpath.join(seen.metadata[0], FILE_NAME)} cannot be used: {error}") from error


def _journal(disk: Disk, directory: str) -> Journal:
    path = posixpath.join(directory, FILE_NAME)
    try:
        return decode_file(disk.read_whole(path))
    except StoreDamaged as error:
        raise DirectoryRefused(f"{path} cannot be used: {error}") from error


# ------------------------------------------------------------------------------------------------------ carrying it out
def _carry_out_all(disk: Disk, steps: Sequence[Step], seen: Seen) -> None:
    """Raises DirectoryRefused where a renaming cannot be, or a cluster was started here meanwhile; what this call has
    done is undone then. Raises OSError."""
    meta_properties.make_data_dir(disk, seen.data_dir)
    done: list[Step] = []
    with ExitStack() as stack:
        for step in steps:
            try:
                _carry_out(disk, step, seen)
                done.append(step)
                if isinstance(step, WriteNote):
                    stack.enter_context(_unused_metadata(disk, seen))
            except DirectoryRefused:
                _undo(disk, done, seen)
                raise
            except OSError as error:
                if error.errno not in OTHER_FILE_SYSTEM or not isinstance(step, Rename):
                    raise
                _undo(disk, done, seen)
                raise DirectoryRefused(
                    f"{step.source} cannot become {step.target}: that is on another file system, or one of the two is "
                    "where a file system is mounted, and nothing is copied. Give directories of one file system. "
                    "Nothing was changed"
                ) from error


@contextmanager
def _unused_metadata(disk: Disk, seen: Seen) -> Generator[None]:
    """From here on the note keeps clusters away. One that was started before it was there has the lock, or had it."""
    metadata = metadata_directory(seen.data_dir)
    if metadata in seen.metadata:
        yield  # it was locked before
        return
    with locked(disk, metadata):
        if disk.exists(posixpath.join(metadata, FILE_NAME)):
            raise DirectoryRefused(f"{seen.data_dir} has become the directory of a cluster: give another one")
        yield


def _undo(disk: Disk, done: Sequence[Step], seen: Seen) -> None:
    """What an earlier call has begun keeps its note."""
    for step in reversed(done):
        if isinstance(step, Rename):
            _carry_out(disk, Rename(step.target, step.source), seen)
        elif isinstance(step, WriteNote) and seen.note is None:
            _carry_out(disk, RemoveNote(step.path), seen)


def _carry_out(disk: Disk, step: Step, seen: Seen) -> None:
    """Makes the change, and makes it safe. Raises OSError."""
    match step:
        case WriteNote():
            disk.write_whole(step.path, step.note.encode())
            disk.make_dir(metadata_directory(seen.data_dir))
            disk.sync_dir(seen.data_dir)
        case RemoveNote():
            disk.remove(step.path)
            disk.sync_dir(seen.data_dir)
        case Forget():
            _forget(disk, step)
        case Rename():
            disk.rename(step.source, step.target)
            disk.sync_dir(posixpath.dirname(step.target))
            disk.sync_dir(posixpath.dirname(step.source))


def _forget(disk: Disk, step: Forget) -> None:
    """As `unregister` of the controller does: these hold nothing. Keys under a lease go, too, as with a start."""
    journal = _journal(disk, step.metadata_dir)
    gone = {key for each in step.broker_ids for key in (node_key(each), broker_config_key(each))} | {*journal.leased}
    entries = {key: entry for key, entry in journal.entries.items() if key not in gone}
    disk.write_whole(posixpath.join(step.metadata_dir, FILE_NAME), encode_file(entries, (), journal.revision + 1))
