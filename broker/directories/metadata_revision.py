"""`metadata.revision`: which metadata a data directory followed last, and how far.

    version=1
    revision=4711
    origin=Rk9P4m2xT0eXK1m0Vb7n1w
    commit.1=4709 x1cP0mQnTq6vVtJzW8h3lQ 17
    commit.2=4650 yHn2m9sVQ1uO5e6cB0r7fA 3
    processes=x1cP0mQnTq6vVtJzW8h3lQ Zt3kq0aTQmW8m4oXy2c1Vg

Beside the newest revision these are, of each broker, the revision, the incarnation and the number of its newest commit
(cluster/lineage.py), and who began the metadata, where an operator did. A store that lacks one of these commits was
lost and made anew, or is an older copy, perhaps one that has gone on without us: it does not know what was created
since, and would have the directories of that moved aside. So a directory tells at each start whether the metadata fits
it, and what does not is refused before anything is changed. A directory that a former version left has its revision
alone, and that is compared. `processes` are those of this broker that used the directory last (cluster/uses.py), by
which a start finds that it is an older copy.

It is written when the metadata was read at a start, before the first commit, at most once a second while it changes,
and at a clean stop. What is written was durable in the store before, so no crash makes it too new; and it lags by a
second at most, so an older copy passes only if it was made in the very second of a crash, and no other directory knows
better. It is a file of its own since meta.properties decides whether a directory can be used at all: that one is not
rewritten every second.
"""

import logging
import posixpath
from collections.abc import Callable, Sequence

from odradek.broker.cluster.lineage import Commit, KnownHistory, Lineage, start_contradiction
from odradek.broker.directories.meta_properties import VERSION, ForeignDirectory, MetaProperties, read_properties
from odradek.broker.directories.partition_directories import partition_of
from odradek.broker.disk.atomic_file import AtomicFile
from odradek.broker.disk.disk import Disk
from odradek.runtime.environment import Environment
from odradek.runtime.progress import Progress

logger = logging.getLogger(__name__)

FILE_NAME = "metadata.revision"
RENEWAL_MS = 1000
COMMIT_PREFIX = "commit."
PROCESSES = "processes"
DIGITS_MAX = 19
"""Of an int64, as revisions are."""
SHOWN_MAX = 100
CURE = (
    "put the newest one back; if there is none, stop all brokers, and rebuild the metadata from their data directories "
    "(odradek cluster rebuild), or bring a backup of it back (odradek cluster restore)"
)


def load_followed(disk: Disk, data_dir: str) -> KnownHistory:
    """What was written down last; nothing before the first. Raises ForeignDirectory, OSError."""
    path = posixpath.join(data_dir, FILE_NAME)
    found = read_properties(disk, path)
    if found is None:
        return KnownHistory()
    commits: dict[int, Commit] = {}
    for name, value in found.items():
        if name.startswith(COMMIT_PREFIX):
            match value.split(" "):
                case [revision, incarnation, number] if incarnation:
                    broker_id = _number(path, name, name.removeprefix(COMMIT_PREFIX))
                    commits[broker_id] = Commit(incarnation, _number(path, name, number), _number(path, name, revision))
                case _:
                    raise _damaged(path, name, value)
    newest = _number(path, "revision", found.get("revision", ""))
    return KnownHistory(newest, found.get("origin", ""), commits)


def load_processes(disk: Disk, data_dir: str) -> tuple[str, ...]:
    """The processes of its broker that used the directory last; empty before the first, and in one that a former
    version used last. Raises ForeignDirectory, OSError."""
    found = read_properties(disk, posixpath.join(data_dir, FILE_NAME)) or {}
    return tuple(found.get(PROCESSES, "").split())


def load_revision(disk: Disk, data_dir: str) -> int:
    """The last revision written down, 0 before the first. Raises ForeignDirectory, OSError."""
    return load_followed(disk, data_dir).revision


def _number(path: str, name: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= DIGITS_MAX):
        raise _damaged(path, name, text)
    return int(text)


def _damaged(path: str, name: str, text: str) -> ForeignDirectory:
    shortened = text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"
    return ForeignDirectory(
        f"{path} is damaged: its {name} is {shortened!r}; restore it, or remove it if the metadata is the newest"
    )


class RecordedRevision:
    """The file, for the one who writes it."""

    def __init__(self, disk: Disk, data_dir: str, processes: tuple[str, ...] = ()) -> None:
        """`processes`: that use the directory; without, the file says nothing of them any more."""
        self._file = AtomicFile(disk, posixpath.join(data_dir, FILE_NAME))
        self._recorded = KnownHistory()
        self._processes = processes

    def write(self, followed: KnownHistory) -> None:
        """Writes it down, durably, if it is a newer one. Raises OSError."""
        if followed.revision > self._recorded.revision:
            self._file.write(_encode(followed, self._processes))
            self._recorded = followed

    def note(self, processes: tuple[str, ...]) -> None:
        """Writes down which processes use the directory, durably. Raises OSError."""
        self._processes = processes
        self._file.write(_encode(self._recorded, processes))

    async def follow(
        self,
        revision: Progress,
        followed: Callable[[], KnownHistory],
        environment: Environment,
        failed: Callable[[OSError], None] | None = None,
    ) -> None:
        """Writes down what is followed as its revision grows, for as long as the broker runs; a helper thread waits for
        the device.

        `failed` is told of each attempt that did.
        """
        is_failing = False
        while True:
            await revision.reach(self._recorded.revision + 1)
            newest = followed()
            try:
                await environment.run_blocking(self._file.prepare(_encode(newest, self._processes)))
            except OSError as error:
                if not is_failing:
                    logger.warning("%s cannot be written; it is tried again: %s", self._file.path, error)
                is_failing = True
                if failed is not None:
                    failed(error)
            else:
                is_failing = False
                self._recorded = newest
            await environment.sleep(RENEWAL_MS)


def _encode(followed: KnownHistory, processes: tuple[str, ...]) -> bytes:
    lines = [f"version={VERSION}", f"revision={followed.revision}"]
    if followed.origin_id:
        lines.append(f"origin={followed.origin_id}")
    for broker_id, commit in sorted(followed.commits.items()):
        lines.append(f"{COMMIT_PREFIX}{broker_id}={commit.revision} {commit.incarnation} {commit.number}")
    if processes:
        lines.append(f"{PROCESSES}={' '.join(processes)}")
    return "".join(f"{line}\n" for line in lines).encode()


def check_metadata(
    disk: Disk,
    data_dir: str,
    known: MetaProperties | None,
    cluster_id: str | None,
    revision: int,
    lineage: Lineage,
) -> None:
    """Refuses metadata that the directory did not follow; `known` is what its meta.properties says, if it has one.

    `cluster_id`, `revision` and `lineage` are the store's, None, 0 and empty for one that is new. What passes may call
    a partition that it does not know a stray. Raises ForeignDirectory, OSError.
    """
    if cluster_id is None and (partitions := _partitions(disk, data_dir)):
        raise ForeignDirectory(
            f"{data_dir} has {partitions}, and no metadata says which topics there are: restore that from a backup, "
            "or find it again by `odradek cluster rebuild`; if Apache Kafka has left this directory, run "
            f"`odradek adopt {data_dir}`. Nothing was changed"
        )
    if known is None and (partitions := _partitions(disk, data_dir)):
        raise ForeignDirectory(
            f"{data_dir} has {partitions}, and no meta.properties: nothing says that they belong to cluster "
            f"{cluster_id}, whose metadata this is; restore it, or give another --data-dir. Nothing was changed"
        )
    if known is not None and cluster_id not in (None, known.cluster_id):
        raise ForeignDirectory(
            f"{data_dir} belongs to cluster {known.cluster_id}, and its metadata to cluster {cluster_id}: one of the "
            "two was copied from elsewhere; restore the one that belongs to it"
        )
    if (reason := start_contradiction(load_followed(disk, data_dir), lineage, revision)) is not None:
        raise ForeignDirectory(
            f"the metadata does not follow the one that {data_dir} knows: {reason} "
            f"({posixpath.join(data_dir, FILE_NAME)}). It was lost, or replaced by an older copy that does not know "
            f"what was created since: {CURE}. Nothing was changed"
        )


def check_place(disk: Disk, name: str, data_dirs: Sequence[str]) -> None:
    """Refuses a start whose metadata, a file of this name, is not in the first of its data directories but in another.

    Raises ForeignDirectory.
    """
    first, *others = data_dirs
    if not disk.exists(posixpath.join(first, name)):
        for path in others:
            if disk.exists(posixpath.join(path, name)):
                raise ForeignDirectory(
                    f"the metadata is looked for in {first}, the first data directory, and {name} is in {path}: give "
                    f"{path} first. Nothing was changed"
                )


def _partitions(disk: Disk, data_dir: str) -> str:
    """The partitions' directories in a few words; none for none."""
    names = [
        name
        for name in disk.list_dir(data_dir)
        if partition_of(name) is not None and disk.is_dir(posixpath.join(data_dir, name))
    ]
    if len(names) > 1:
        return f"{len(names)} partitions ({names[0]}, …)"
    return f"the partition {names[0]}" if names else ""
