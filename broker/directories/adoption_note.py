"""`.odradek-adopted`: what an adoption saw of a directory of Apache Kafka's, until our first start on it.

An adoption writes metadata and nothing else, so Kafka may be started again on the directory: what it does then, the
metadata does not know. So the adoption notes of each partition what it saw, Kafka's own `__cluster_metadata-0` among
them, which every start of Kafka's changes. Our first start compares, refuses what has changed, and takes the note away
before it changes anything itself. While the note is there the adoption is unused, and may be repeated.

    version=1
    orders-0=<SHA-256 of the names and sizes of its *.log files, and of its leader epochs>
    log-start-offset-checkpoint=<SHA-256 of the content>
    metadata.dir=<where __cluster_metadata-0 is, if not here>
"""

import hashlib
import posixpath
from collections.abc import Iterable

from odradek.broker.directories.meta_properties import VERSION, ForeignDirectory, read_properties
from odradek.broker.directories.partition_directories import partition_of
from odradek.broker.disk.disk import Disk

FILE_NAME = ".odradek-adopted"
CLUSTER_METADATA = "__cluster_metadata-0"
_METADATA_DIR = "metadata.dir"
_LOG_STARTS = "log-start-offset-checkpoint"
_EPOCHS = "leader-epoch-checkpoint"
_NAMED_MAX = 3


def look(disk: Disk, data_dir: str, metadata_dir: str | None) -> dict[str, str]:
    """What there is now, as the note has it. Raises OSError."""
    seen = {_LOG_STARTS: _digest(_content(disk, posixpath.join(data_dir, _LOG_STARTS)))}
    for name in disk.list_dir(data_dir):
        path = posixpath.join(data_dir, name)
        if partition_of(name) is not None and disk.is_dir(path):
            seen[name] = _of_partition(disk, path)
    if metadata_dir is not None:
        seen[_METADATA_DIR] = metadata_dir
        path = posixpath.join(metadata_dir, CLUSTER_METADATA)
        seen[CLUSTER_METADATA] = _of_partition(disk, path) if disk.is_dir(path) else ""
    return seen


def write_note(disk: Disk, data_dir: str, seen: dict[str, str]) -> None:
    """Writes down what an adoption saw, durably, before the metadata. Raises OSError."""
    lines = [f"version={VERSION}", *(f"{name}={value}" for name, value in sorted(seen.items()))]
    disk.write_whole(posixpath.join(data_dir, FILE_NAME), ("\n".join(lines) + "\n").encode())


def is_unused(disk: Disk, data_dir: str) -> bool:
    """Whether the directory was adopted and no broker of ours was started on it since."""
    return disk.exists(posixpath.join(data_dir, FILE_NAME))


def check_unchanged(disk: Disk, data_dirs: Iterable[str]) -> None:
    """Refuses a directory that has changed since it was adopted. Raises ForeignDirectory, OSError."""
    for data_dir in data_dirs:
        if is_unused(disk, data_dir):
            _check(disk, data_dir)


def _check(disk: Disk, data_dir: str) -> None:
    cure = f"stop Apache Kafka, and run `odradek adopt {data_dir}` again. Nothing was changed"
    try:
        noted = read_properties(disk, posixpath.join(data_dir, FILE_NAME)) or {}
    except ForeignDirectory as error:
        text = f"what the adoption of {data_dir} saw cannot be read ({error}): {cure}"
        raise ForeignDirectory(text) from error
    del noted["version"]
    seen = look(disk, data_dir, noted.get(_METADATA_DIR))
    changed = sorted(name for name in {*noted, *seen} if noted.get(name) != seen.get(name))
    if changed:
        names = ", ".join(changed[:_NAMED_MAX]) + (", …" if len(changed) > _NAMED_MAX else "")
        raise ForeignDirectory(
            f"{data_dir} has changed since it was adopted ({names}), which its metadata does not know: {cure}"
        )


def use(disk: Disk, data_dirs: Iterable[str]) -> None:
    """Takes the notes away, durably: from here on these are directories of ours. Raises OSError."""
    for data_dir in data_dirs:
        if is_unused(disk, data_dir):
            disk.remove(posixpath.join(data_dir, FILE_NAME))
            disk.sync_dir(data_dir)


def _of_partition(disk: Disk, path: str) -> str:
    sizes = disk.sizes(path)
    logs = [f"{name} {size_bytes}\n" for name, size_bytes in sizes.items() if name.endswith((".log", ".checkpoint"))]
    return _digest("".join(logs).encode() + _content(disk, posixpath.join(path, _EPOCHS)))


def _content(disk: Disk, path: str) -> bytes:
    return disk.read_whole(path) if disk.exists(path) else b""


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
