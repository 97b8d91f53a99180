"""Which steps take a broker's directory into a cluster's, or back, from wherever it stands. Pure.

    of `serve`      SERVE_DIR, with metadata.log in it
    in between      DIR/broker-<id>, with metadata.log in it
    of the cluster  DIR/broker-<id>, and DIR/metadata/metadata.log

One renaming leads from each place to the next, and each is safe on the device before the next step begins. So whatever
ends a take, there is one metadata.log, and the same command finds where it stands and goes on. What a start could do
with it: in the first place `serve` follows it, in the last one the cluster's brokers do; in between, and as long as the
note is there (directories/cluster_layout.py), no cluster starts. The note is written first, again by each call, and
removed last.
"""

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from odradek.broker.cluster.embedded import FILE_NAME
from odradek.broker.cluster.image import ClusterImage
from odradek.broker.directories.cluster_layout import NOTE_FILE, TakeNote, broker_directory, metadata_directory
from odradek.broker.directories.meta_properties import MetaProperties
from odradek.broker.offline.adopt.claim import DirectoryRefused

NAMED_MAX = 3


class Place(Enum):
    """Where the broker's directory and the metadata are."""

    SERVE = "of serve"
    BETWEEN = "in between"
    CLUSTER = "of the cluster"


@dataclass(frozen=True, slots=True)
class Seen:
    """What there is. `serve` and `taken` are what the broker's directory says of itself in the one place and the other;
    None where it is not."""

    serve_dir: str
    data_dir: str
    serve: MetaProperties | None
    taken: MetaProperties | None
    metadata: Sequence[str]
    """The directories that hold a metadata.log."""
    note: TakeNote | None
    left: Sequence[str]
    """Names in the cluster's directory that an unused one has not."""

    @property
    def known(self) -> MetaProperties:
        """The broker that is moved. Raises DirectoryRefused."""
        places = (self.serve, self.taken) if self.note is None else (self.taken, self.serve)
        found = next((each for each in places if each is not None), None)
        if found is None:
            raise DirectoryRefused(
                f"neither {self.serve_dir} nor {self.data_dir} has the data directory of a broker: give those between "
                "which it is to be moved"
            )
        return found

    @property
    def broker_dir(self) -> str:
        return broker_directory(self.data_dir, self.known.node_id)


@dataclass(frozen=True, slots=True)
class WriteNote:
    path: str
    note: TakeNote

    def __str__(self) -> str:
        return f"note the move in {self.path}"


@dataclass(frozen=True, slots=True)
class RemoveNote:
    path: str

    def __str__(self) -> str:
        return f"remove the note {self.path}"


@dataclass(frozen=True, slots=True)
class Rename:
    """Of a directory or a file. Both parents are there."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"rename {self.source} to {self.target}"


@dataclass(frozen=True, slots=True)
class Forget:
    """The brokers are registered no more: they hold nothing, and will not be there."""

    metadata_dir: str
    broker_ids: tuple[int, ...]

    def __str__(self) -> str:
        ids = ", ".join(map(str, self.broker_ids))
        return f"forget broker {ids}, in {posixpath.join(self.metadata_dir, FILE_NAME)}"


Step = WriteNote | RemoveNote | Rename | Forget


def place_of(seen: Seen) -> Place:
    """Raises DirectoryRefused where nothing of the kind is there."""
    known, broker_dir, store = seen.known, seen.broker_dir, metadata_directory(seen.data_dir)
    if seen.note is not None and seen.note.known != known:
        raise DirectoryRefused(
            f"{posixpath.join(seen.data_dir, NOTE_FILE)} is of the move of another directory (id "
            f"{seen.note.known.directory_id} of cluster {seen.note.known.cluster_id}): end that first"
        )
    if seen.note is not None and seen.note.serve_dir != seen.serve_dir:
        raise DirectoryRefused(
            f"a move between {seen.note.serve_dir} and {seen.data_dir} has not ended: give {seen.note.serve_dir} in "
            f"place of {seen.serve_dir}"
        )
    if len(seen.metadata) > 1:
        raise DirectoryRefused(
            f"{FILE_NAME} is in {' and in '.join(seen.metadata)}: which one counts is not known; move the other away"
        )
    if seen.serve == known:
        if list(seen.metadata) != [seen.serve_dir]:
            raise DirectoryRefused(
                f"{seen.serve_dir} has no {FILE_NAME}, as the data directory of `odradek serve` has whose metadata is "
                "its own: one whose metadata is on etcd cannot be moved, nor one of a cluster"
            )
        return Place.SERVE
    if list(seen.metadata) == [broker_dir]:
        return Place.BETWEEN
    if list(seen.metadata) == [store]:
        return Place.CLUSTER
    raise DirectoryRefused(f"{seen.data_dir} has no {FILE_NAME}: the metadata of {broker_dir} is not here")


def take(seen: Seen, image: ClusterImage) -> list[Step]:
    """What is to be done for the cluster to have it. Raises DirectoryRefused."""
    if seen.note is None and seen.serve is None:
        raise DirectoryRefused(
            f"{seen.serve_dir} is no data directory of a broker, and {seen.data_dir} is that of a cluster already: "
            f"start it with `odradek cluster run --data-dir {seen.data_dir}`"
        )
    if seen.note is None and seen.left:
        raise DirectoryRefused(
            f"{seen.data_dir} is not empty, it has {_named(seen.left)}: give a directory that is not there yet"
        )
    place = place_of(seen)
    _check_identity(seen, image)
    steps: list[Step] = [_note(seen)]
    if place is Place.SERVE:
        steps.append(Rename(seen.serve_dir, seen.broker_dir))
    if place is not Place.CLUSTER:
        store = metadata_directory(seen.data_dir)
        steps.append(Rename(posixpath.join(seen.broker_dir, FILE_NAME), posixpath.join(store, FILE_NAME)))
    return [*steps, _remove_note(seen)]


def take_back(seen: Seen, image: ClusterImage) -> list[Step]:
    """What is to be done for `odradek serve` to have it. Raises DirectoryRefused."""
    place = place_of(seen)
    if place is Place.SERVE and seen.note is None:
        raise DirectoryRefused(
            f"{seen.serve_dir} is the data directory of a broker already: start it with `odradek serve --data-dir "
            f"{seen.serve_dir} --node-id {seen.known.node_id}`"
        )
    _check_identity(seen, image)
    steps: list[Step] = [_note(seen)]
    if place is Place.CLUSTER:
        _check_alone(seen, image)
        store = metadata_directory(seen.data_dir)
        others = tuple(sorted(each for each in image.nodes if each != seen.known.node_id))
        if others:
            steps.append(Forget(store, others))
        steps.append(Rename(posixpath.join(store, FILE_NAME), posixpath.join(seen.broker_dir, FILE_NAME)))
    if place is not Place.SERVE:
        steps.append(Rename(seen.broker_dir, seen.serve_dir))
    return [*steps, _remove_note(seen)]


def _note(seen: Seen) -> WriteNote:
    return WriteNote(posixpath.join(seen.data_dir, NOTE_FILE), TakeNote(seen.serve_dir, seen.known))


def _remove_note(seen: Seen) -> RemoveNote:
    return RemoveNote(posixpath.join(seen.data_dir, NOTE_FILE))


def _check_identity(seen: Seen, image: ClusterImage) -> None:
    """Metadata of another cluster, or of a broker with several data directories, is left where it is."""
    if image.cluster_id != seen.known.cluster_id:
        raise DirectoryRefused(
            f"the metadata in {seen.metadata[0]} is of cluster {image.cluster_id or 'unknown'}, and the directory of "
            f"cluster {seen.known.cluster_id}: put the {FILE_NAME} back that belongs to it"
        )
    node = image.nodes.get(seen.known.node_id)
    if node is not None and len(node.directory_ids) > 1:
        raise DirectoryRefused(
            f"broker {seen.known.node_id} has {len(node.directory_ids)} data directories, and may have one: "
            "move their partitions into one of them by hand, and start the broker on that once"
        )


def _check_alone(seen: Seen, image: ClusterImage) -> None:
    node_id = seen.known.node_id
    elsewhere = [
        f"{topic.name}-{index}"
        for topic in image.topics.values()
        for index, state in enumerate(topic.partitions)
        if set(state.replicas) != {node_id}
    ]
    if elsewhere:
        raise DirectoryRefused(
            f"{len(elsewhere)} partition(s) have replicas on other brokers than {node_id} ({_named(elsewhere)}): start "
            f"the cluster, move them with `odradek partitions spread --brokers {node_id} --execute`, and stop it"
        )


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMED_MAX]) + (", …" if len(names) > NAMED_MAX else "")
