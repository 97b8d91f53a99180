"""`metadata.revision`: how new the metadata was that a data directory followed last.

    version=1
    revision=4711

The revision of the metadata store only grows. A store that is behind the one written down here was lost and made anew,
or is an older copy: it does not know what was created since, and would have the directories of that moved aside. So a
directory tells at each start whether the metadata fits it, and what does not is refused before anything is changed.

It is written when the metadata was read at a start, at most once a second while it changes, and at a clean stop. What
is written was durable in the store before, so no crash makes it too large; and it lags by a second at most, so an older
copy passes only if it was made in the very second of a crash. It is a file of its own since meta.properties decides
whether a directory can be used at all: that one is not rewritten every second.
"""

import logging
import posixpath
from collections.abc import Callable

from broker.disk import Disk
from broker.meta_properties import VERSION, ForeignDirectory, MetaProperties, read_properties
from broker.partition_directories import partition_of
from broker.progress import Progress
from broker.replaced_file import ReplacedFile
from client.environment import Environment

logger = logging.getLogger(__name__)

FILE_NAME = "metadata.revision"
RENEWAL_MS = 1000


def load_revision(disk: Disk, data_dir: str) -> int:
    """The last revision written down, 0 before the first. Raises ForeignDirectory, OSError."""
    path = posixpath.join(data_dir, FILE_NAME)
    found = read_properties(disk, path)
    text = "0" if found is None else found.get("revision", "")
    if not (text.isascii() and text.isdecimal()):
        raise ForeignDirectory(
            f"{path} is damaged: its revision is {text!r}; restore it, or remove it if the metadata is the newest"
        )
    return int(text)


class RecordedRevision:
    """The file, for the one who writes it."""

    def __init__(self, disk: Disk, data_dir: str) -> None:
        self._file = ReplacedFile(disk, posixpath.join(data_dir, FILE_NAME))
        self._recorded = 0

    def write(self, revision: int) -> None:
        """Writes it down, durably, if it is a newer one. Raises OSError."""
        if revision > self._recorded:
            self._file.write(_encode(revision))
            self._recorded = revision

    async def follow(
        self, revision: Progress, environment: Environment, failed: Callable[[OSError], None] | None = None
    ) -> None:
        """Writes it down as it grows, for as long as the broker runs; a helper thread waits for the device.

        `failed` is told of each attempt that did.
        """
        is_failing = False
        while True:
            await revision.reach(self._recorded + 1)
            newest = revision.value
            try:
                await environment.run_blocking(self._file.prepare(_encode(newest)))
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


def _encode(revision: int) -> bytes:
    return f"version={VERSION}\nrevision={revision}\n".encode()


def check_metadata(
    disk: Disk, data_dir: str, known: MetaProperties | None, cluster_id: str | None, revision: int
) -> None:
    """Refuses metadata that the directory did not follow; `known` is what its meta.properties says, if it has one.

    `cluster_id` and `revision` are the store's, None and 0 for one that is new. What passes may call a partition that
    it does not know a stray. Raises ForeignDirectory, OSError.
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
    recorded = load_revision(disk, data_dir)
    if revision < recorded:
        raise ForeignDirectory(
            f"the metadata of {data_dir} is at revision {revision}, and was at {recorded} before: it was lost, or "
            "replaced by an older copy that does not know what was created since; restore the newest metadata.log "
            "there is. Nothing was changed"
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
