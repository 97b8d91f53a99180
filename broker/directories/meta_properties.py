"""`meta.properties`: which cluster and node a data directory belongs to (Kafka's file, version 1).

It is written at the first start. A directory of another node is refused before anything in it is read or changed.
`directory.id` is new for each directory: a replaced disk is recognised by it.
"""

import posixpath
from dataclasses import dataclass

from odradek.broker.disk.disk import Disk
from odradek.protocol.codec.schema import uuid_from_text

FILE_NAME = "meta.properties"
VERSION = "1"
CURE = "restore it, or give another --data-dir"


class ForeignDirectory(Exception):
    """The data directory belongs to another node, another cluster, or to a version that is not known here."""


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """Ids as text: cluster and directory ids are Kafka's url-safe base64 of 16 bytes."""

    cluster_id: str
    node_id: int
    directory_id: str

    def encode(self) -> bytes:
        return (
            f"version={VERSION}\ncluster.id={self.cluster_id}\nnode.id={self.node_id}\n"
            f"directory.id={self.directory_id}\n"
        ).encode()


def load(disk: Disk, data_dir: str) -> MetaProperties | None:
    """What the directory says of itself; None at the first start. Raises ForeignDirectory, OSError."""
    path = posixpath.join(data_dir, FILE_NAME)
    found = read_properties(disk, path)
    if found is None:
        return None
    try:
        if not found["cluster.id"]:
            raise ValueError("cluster.id is empty")
        uuid_from_text(found["directory.id"])
        return MetaProperties(found["cluster.id"], int(found["node.id"]), found["directory.id"])
    except KeyError as error:
        raise ForeignDirectory(f"{path} is damaged: it has no {error.args[0]}; {CURE}") from error
    except ValueError as error:
        raise ForeignDirectory(f"{path} is damaged: {error}; {CURE}") from error


def read_properties(disk: Disk, path: str) -> dict[str, str] | None:
    """The properties in a file of a known version; None without the file. Raises ForeignDirectory, OSError."""
    if not disk.exists(path):
        return None
    found: dict[str, str] = {}
    for line in disk.read_whole(path).decode("utf-8", "replace").splitlines():
        if line and not line.startswith("#"):
            name, _, value = line.partition("=")
            found[name.strip()] = value.strip()
    if "version" not in found:
        raise ForeignDirectory(f"{path} is damaged: it has no version; {CURE}")
    if found["version"] != VERSION:
        raise ForeignDirectory(f"{path} has version {found['version']}; this broker knows version {VERSION} only")
    return found


def make_data_dir(disk: Disk, data_dir: str) -> None:
    """Makes the data directory and its parents, so that a loss of power does not take it away with all that it holds.

    Until a start has come as far as writing the file, nobody knows whether the last one got to the end of this.
    Raises OSError.
    """
    fresh = [] if disk.exists(posixpath.join(data_dir, FILE_NAME)) else [data_dir]
    parent = posixpath.dirname(data_dir)
    while parent and not disk.exists(parent):
        fresh.append(parent)
        parent = posixpath.dirname(parent)
    disk.make_dir(data_dir)
    for path in fresh:
        disk.sync_dir(posixpath.dirname(path) or ".")


def store(disk: Disk, data_dir: str, properties: MetaProperties) -> None:
    """Writes the file, atomically and durably. Raises OSError."""
    disk.write_whole(posixpath.join(data_dir, FILE_NAME), properties.encode())


def check(found: MetaProperties, data_dir: str, node_id: int) -> None:
    """Raises ForeignDirectory for the directory of another node."""
    if found.node_id != node_id:
        raise ForeignDirectory(
            f"{data_dir} belongs to node {found.node_id} and this is node {node_id}: "
            f"start with --node-id {found.node_id}, or give another --data-dir"
        )
