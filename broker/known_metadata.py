"""What the data directories of one broker know of the metadata that they followed, and how that is kept up to date.

Each directory has it in a file of its own (metadata_revision.py), for one may be replaced, or come from a backup.
"""

import logging
from collections.abc import Callable

from broker.cluster.keys import CLUSTER_KEY, decode_cluster
from broker.cluster.lineage import Followed, Lineage, contradiction
from broker.cluster.store import Snapshot
from broker.data_directories import DataDirectories
from broker.data_directory import DataDirectory
from broker.disk import Disk
from broker.meta_properties import ForeignDirectory
from broker.metadata_revision import RecordedRevision, check_metadata
from broker.progress import Progress
from client.environment import Environment
from client.tasks import Tasks

logger = logging.getLogger(__name__)


class KnownMetadata:
    """Of one broker; in the loop's thread."""

    def __init__(self, disk: Disk, directories: DataDirectories) -> None:
        self._disk = disk
        self._directories = directories
        self._files: dict[DataDirectory, RecordedRevision] = {}

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

    def write(self, followed: Followed) -> None:
        """Before anything is done by this metadata. Raises OSError."""
        for directory in self._directories.online:
            file = self._files[directory] = RecordedRevision(self._disk, directory.path)
            file.write(followed)

    def follow(
        self, tasks: Tasks, revision: Progress, followed: Callable[[], Followed], environment: Environment
    ) -> None:
        """Keeps the files up to date from here on."""
        for directory, file in self._files.items():
            following = file.follow(revision, followed, environment, directory.suspect)
            tasks.start(following, "write down the metadata's revision")

    def close(self, followed: Followed, present: Snapshot) -> None:
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
