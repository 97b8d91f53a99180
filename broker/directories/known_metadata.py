"""What the data directories of one broker know of the metadata that they followed, and how that is kept up to date.

Each directory has it in a file of its own (metadata_revision.py), for one may be replaced, or come from a backup.

That file also notes the processes that used the directory (cluster/uses.py), before the first commit of this one. An
older copy keeps its note until its logs are back at what is certain: a start that dies before finds the same.
"""

import logging
from collections.abc import Callable, Collection

from odradek.broker.cluster.keys import CLUSTER_KEY, decode_cluster
from odradek.broker.cluster.lineage import KnownHistory, Lineage, contradiction
from odradek.broker.cluster.store import Snapshot
from odradek.broker.cluster.uses import used_by, was_in_use
from odradek.broker.directories.data_directories import DataDirectories
from odradek.broker.directories.data_directory import DataDirectory
from odradek.broker.directories.meta_properties import ForeignDirectory
from odradek.broker.directories.metadata_revision import RecordedRevision, check_metadata, load_processes
from odradek.broker.disk.disk import Disk
from odradek.runtime.environment import Environment
from odradek.runtime.progress import Progress
from odradek.runtime.tasks import Tasks

logger = logging.getLogger(__name__)


class KnownMetadata:
    """Of one broker; in the loop's thread."""

    def __init__(self, disk: Disk, directories: DataDirectories) -> None:
        self._disk = disk
        self._directories = directories
        self._files: dict[DataDirectory, RecordedRevision] = {}
        self._older: dict[DataDirectory, tuple[str, ...]] = {}  # what is to be noted of them

    def check(self, snapshot: Snapshot, path: str = "") -> None:
        """Refuses a store that does not follow what any of the directories knows. `snapshot`: of CLUSTER_KEY, or of
        everything. `path`: the file that the store is in, if it is one. Raises ForeignDirectory, MalformedMetadata,
        OSError."""
        try:
            self._check(snapshot)
        except ForeignDirectory as refusal:
            if not path:
                raise
            raise ForeignDirectory(f"{refusal}. (The metadata is in {path})") from refusal

    def _check(self, snapshot: Snapshot) -> None:
        entry = snapshot.entries.get(CLUSTER_KEY)
        cluster_id = None if entry is None else decode_cluster(entry.value)
        lineage = Lineage.from_snapshot(snapshot)
        for directory in self._directories.online:
            check_metadata(self._disk, directory.path, directory.properties, cluster_id, snapshot.revision, lineage)

    def use(self, incarnation: str, current: str | None) -> None:
        """To be called once, before the first `write`, when it is known what the directories lack. `incarnation`: of
        this process. `current`: of the one that the store names. Raises ForeignDirectory, OSError."""
        for directory in self._directories.online:
            noted = load_processes(self._disk, directory.path)
            after = used_by(noted, current, incarnation)
            if directory.lacks_the_newest and not was_in_use(noted, current):
                self._older[directory] = after
                after = noted
            self._files[directory] = RecordedRevision(self._disk, directory.path, after)

    def write(self, followed: KnownHistory) -> None:
        """Before anything is done by this metadata; not what was written already. Raises OSError."""
        for file in self._files.values():
            file.write(followed)

    def came_back(self, paths: Collection[str]) -> None:
        """Of the older copies among these directories the logs are back at what is certain. Raises OSError."""
        for directory, processes in self._older.items():
            if directory.path in paths:
                self._files[directory].note(processes)

    def follow(
        self, tasks: Tasks, revision: Progress, followed: Callable[[], KnownHistory], environment: Environment
    ) -> None:
        """Keeps the files up to date from here on."""
        for directory, file in self._files.items():
            following = file.follow(revision, followed, environment, directory.suspect)
            tasks.start(following, "write down the metadata's revision")

    def close(self, followed: KnownHistory, present: Snapshot) -> None:
        """Writes down what the store is at when the broker stops, if it is still the one that was followed. Raises
        MalformedMetadata."""
        lineage = Lineage.from_snapshot(present)
        if (reason := contradiction(followed, lineage, present.revision)) is not None:
            logger.warning(
                "the metadata is not the one that was followed, and its revision not written down: %s", reason
            )
            return
        for directory, file in self._files.items():
            if directory.is_online:
                try:
                    file.write(lineage.followed(present.revision))
                except OSError as error:
                    logger.warning("the revision of the metadata could not be written down: %s", error)
