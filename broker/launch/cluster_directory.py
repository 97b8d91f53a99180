"""The directory of a cluster on one machine, the same for brokers in one process and in several.

Beside what cluster_layout.py says is in it there are

    DIR/metadata/store.sock  while a supervisor serves the store
    DIR/cluster.properties   the defaults of topics that were chosen when the directory was new, where they were

Which brokers there are says the store: a broker that was registered once belongs to the cluster until it is
unregistered. One that does not run is missed: what it holds is offline, and new topics get replicas on it. So a start
with fewer brokers is refused while those that are left out hold partitions, and forgets them when they hold none.
"""

import logging
import posixpath
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from odradek.broker.cluster.keys import (
    NODES_PREFIX,
    PARTITIONS_PREFIX,
    broker_key,
    decode_partition,
    node_key,
    parse_partition,
)
from odradek.broker.cluster.store import MetadataStore, Txn
from odradek.broker.directories.cluster_layout import FIRST_ID, check_whole, metadata_directory
from odradek.broker.disk.disk import Disk, Lock, LockHeld
from odradek.broker.disk.open_files import warn_of_open_directory
from odradek.broker.startup_errors import StartRefused
from odradek.runtime.properties import parse_properties

logger = logging.getLogger(__name__)

LOCK_FILE: Final = ".lock"
SOCKET_FILE: Final = "store.sock"
DEFAULTS_FILE: Final = "cluster.properties"
OF_SERVE: Final = ("meta.properties", "metadata.log")
SHOWN_MAX: Final = 3


def lock_metadata(disk: Disk, directory: str) -> Lock:
    """The lock of whoever runs the cluster. Makes the directory. Raises StartRefused, and ForeignDirectory
    where a broker is being moved in or out."""
    if any(disk.exists(posixpath.join(directory, name)) for name in OF_SERVE):
        raise StartRefused(
            f"{directory} is the data directory of one broker, of `odradek serve`: give another --data-dir, or move it "
            f"into one (odradek cluster take {directory} --data-dir NEW)"
        )
    path = metadata_directory(directory)
    try:
        disk.make_dir(path)
        lock = disk.lock(posixpath.join(path, LOCK_FILE))
        warn_of_open_directory(path)
    except LockHeld as error:
        raise StartRefused(
            f"the directory {directory} is in use: another `odradek cluster run` runs on it; stop that one, or give "
            "another --data-dir"
        ) from error
    except OSError as error:
        raise StartRefused(f"the directory {path} cannot be used: {error.strerror or error}") from error
    try:
        check_whole(disk, directory)
    except BaseException:
        lock.release()
        raise
    return lock


# -------------------------------------------------------------------------------------------------- which brokers run
def broker_ids(known: Collection[int], count: int, first_id: int = FIRST_ID) -> list[int]:
    """The ids of so many brokers, of those that the cluster has and then of new ones, numbered from its first, or from
    `first_id`, where it has none."""
    ids = sorted(known)[:count]
    candidate = min(known, default=first_id)
    while len(ids) < count:
        if candidate not in known:
            ids.append(candidate)
        candidate += 1
    return sorted(ids)


async def registered_ids(store: MetadataStore) -> list[int]:
    """The brokers that belong to the cluster. Raises MalformedMetadata, OSError."""
    nodes = (await store.read(NODES_PREFIX)).entries
    return sorted(int(key.removeprefix(NODES_PREFIX)) for key in nodes)


async def leave_out(store: MetadataStore, ids: Collection[int], directory: str) -> list[int]:
    """Has the cluster forget the brokers that are not among `ids`, before any runs, and says so; which those were.
    Raises StartRefused where one of them holds partitions, MalformedMetadata, OSError."""
    left_out = [broker_id for broker_id in await registered_ids(store) if broker_id not in ids]
    if not left_out:
        return []
    held: list[str] = []
    for key, entry in (await store.read(PARTITIONS_PREFIX)).entries.items():
        topic, index = parse_partition(key.removeprefix(PARTITIONS_PREFIX))
        state = decode_partition(entry.value, topic, index)
        if not set(left_out).isdisjoint(state.replicas):
            held.append(f"{topic}-{index}")
    if held:
        raise StartRefused(_why_not_fewer(left_out, ids, held, directory))
    nodes = (await store.read(NODES_PREFIX)).entries
    for broker_id in left_out:
        key = node_key(broker_id)
        await store.commit(Txn(expect={broker_key(broker_id): 0, key: nodes[key].revision}, delete=(key,)))
    logger.warning("broker(s) %s held nothing, and are forgotten", _listed(left_out))
    return left_out


def _why_not_fewer(left_out: Sequence[int], ids: Collection[int], held: Sequence[str], directory: str) -> str:
    names = ", ".join(held[:SHOWN_MAX]) + (f" and {len(held) - SHOWN_MAX} more" if len(held) > SHOWN_MAX else "")
    former, kept = len(ids) + len(left_out), ",".join(str(each) for each in sorted(ids))
    return (
        f"the cluster in {directory} has {former} brokers, and without broker(s) {_listed(left_out)} replicas of "
        f"{len(held)} partition(s) would be missing ({names}): start it with --brokers {former}, move them "
        f"(odradek partitions spread --brokers {kept}), and start it with --brokers {len(ids)} then"
    )


def _listed(ids: Sequence[int]) -> str:
    return ", ".join(str(each) for each in ids)


# ------------------------------------------------------------------------------------------------- defaults of topics
def defaults_of(disk: Disk, directory: str) -> Mapping[str, str] | None:
    """The defaults of topics that were chosen when the directory was new; None: none were. Raises StartRefused."""
    path = posixpath.join(directory, DEFAULTS_FILE)
    try:
        return parse_properties(disk.read_whole(path).decode()) if disk.exists(path) else None
    except (OSError, ValueError) as error:
        raise StartRefused(f"the file {path} cannot be read: {error}") from error


def keep_defaults(disk: Disk, directory: str, defaults: Mapping[str, str]) -> None:
    """Raises StartRefused."""
    path = posixpath.join(directory, DEFAULTS_FILE)
    text = "# What new topics get, unless the command line or the cluster says otherwise.\n"
    text += "".join(f"{name}={value}\n" for name, value in defaults.items())
    try:
        disk.write_whole(path, text.encode())
    except OSError as error:
        raise StartRefused(f"the file {path} cannot be written: {error.strerror or error}") from error
