"""The data directories of one broker, and in which of them a partition has its place (LogManager.scala).

A partition that is here stays where it is. A new one goes where there are fewest (`LogManager.nextLogDirs`), the first
of equals. While a directory is offline nobody knows what lies in it, so a partition that is known to be offline here
(`PartitionState.offline`) is not begun anew elsewhere.

Refused before anything is changed (`DirectoriesUnusable`): a directory of another cluster or node, two that are one (a
copy has the same directory id), a partition that is in two of them. One that cannot be opened is left alone, and what
it holds is offline, as long as there is another one. That is Kafka's way, too.
"""

import logging
import posixpath
from collections.abc import Callable, Iterator, Sequence

from odradek.broker.cluster.image import ClusterImage
from odradek.broker.directories import meta_properties
from odradek.broker.directories.checkpoints import Key
from odradek.broker.directories.data_directory import DataDirectory
from odradek.broker.directories.meta_properties import MetaProperties
from odradek.broker.disk.disk import Disk, LockHeld
from odradek.broker.log.checkpoint import CorruptCheckpoint
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks

logger = logging.getLogger(__name__)


class DirectoriesUnusable(Exception):
    """The data directories cannot be used together; one sentence says why, and what to do."""


class DataDirectories:
    """All of one broker, in the order in which they were given."""

    def __init__(self, disk: Disk, paths: Sequence[str], environment: Environment, tasks: Tasks) -> None:
        assert paths, "a broker has a directory"
        self._disk = disk
        self._all = [DataDirectory(disk, path, environment, tasks) for path in paths]
        self._by_path = {directory.path: directory for directory in self._all}

    def __iter__(self) -> Iterator[DataDirectory]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    @property
    def first(self) -> DataDirectory:
        return self._all[0]

    @property
    def online(self) -> list[DataDirectory]:
        return [directory for directory in self._all if directory.is_online]

    @property
    def offline(self) -> list[DataDirectory]:
        return [directory for directory in self._all if not directory.is_online]

    def of_log(self, log_directory: str) -> DataDirectory:
        """The one in which this log lies."""
        return self._by_path[posixpath.dirname(log_directory)]

    def for_new_partition(self) -> DataDirectory:
        """Raises KafkaError KAFKA_STORAGE_ERROR when none is left."""
        if not (online := self.online):
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no data directory of this broker can be used")
        return min(online, key=lambda directory: directory.partition_count)

    def watch(self, failed: Callable[[DataDirectory], None]) -> None:
        """`failed` is called for each that fails from here on."""
        for directory in self._all:
            directory.on_failed = failed

    # -- start --------------------------------------------------------------------------------------------------

    def take(self, node_id: int, *, needs_first: bool) -> None:
        """Locks them, and finds out whose they are. Nothing in them is changed.

        `needs_first`: the first holds the metadata, so that nothing goes without it. Raises DirectoriesUnusable,
        ForeignDirectory.
        """
        for directory in self._all:
            try:
                directory.take()
                directory.properties = meta_properties.load(self._disk, directory.path)
            except OSError as error:
                if isinstance(error, LockHeld) or self._is_needed(directory, needs_first=needs_first):
                    reason = error.strerror or str(error)
                    raise DirectoriesUnusable(
                        f"the data directory {directory.path} cannot be used: {reason}"
                    ) from error
                self.leave_out(directory, error)
            if directory.properties is not None:
                meta_properties.check(directory.properties, directory.path, node_id)
        self._require_one()
        self._check_ids()
        self._check_places()
        self._require_one()

    def leave_out(self, directory: DataDirectory, error: Exception) -> None:
        """It cannot be used at this start; the others go on."""
        logger.error(
            "the data directory %s cannot be used, and what it holds is offline until a start with it: %s",
            *(directory.path, error),
        )
        directory.fail(error)

    def _is_needed(self, directory: DataDirectory, *, needs_first: bool) -> bool:
        return len(self) == 1 or (needs_first and directory is self.first)

    def identify(self, cluster_id: str, node_id: int, *, needs_first: bool) -> None:
        """Gives an id to each that has none, and leaves out those that cannot be written to. From here on whatever
        fails ends the start: what lies in a directory is only told to be offline before the broker registers.

        Raises OSError for a directory without which nothing goes, DirectoriesUnusable when none is left.
        """
        for directory in self.online:
            try:
                directory.identify(cluster_id, node_id)
                if len(self) > 1:
                    directory.probe()
            except OSError as error:
                if self._is_needed(directory, needs_first=needs_first):
                    raise
                self.leave_out(directory, error)
        self._require_one()

    def _require_one(self) -> None:
        if not self.online:
            reasons = "; ".join(f"{directory.path}: {directory.failure}" for directory in self._all)
            raise DirectoriesUnusable(f"none of the data directories can be used: {reasons}")

    def _check_ids(self) -> None:
        """Raises DirectoriesUnusable for directories of two clusters, and for one and its copy."""
        known: dict[str, DataDirectory] = {}
        last: tuple[DataDirectory, MetaProperties] | None = None
        for directory in self.online:
            if (properties := directory.properties) is None:
                continue
            if last is not None and properties.cluster_id != last[1].cluster_id:
                raise DirectoriesUnusable(
                    f"{last[0].path} belongs to cluster {last[1].cluster_id} and {directory.path} to cluster "
                    f"{properties.cluster_id}: give the --data-dir of one of them only. Nothing was changed"
                )
            if (other := known.get(properties.directory_id)) is not None:
                raise DirectoriesUnusable(
                    f"{directory.path} and {other.path} have the same directory id, so one is a copy of the other: "
                    "give one of them only. Nothing was changed"
                )
            known[properties.directory_id] = directory
            last = directory, properties

    def _check_places(self) -> None:
        """Raises DirectoriesUnusable for a partition that is in two directories: which is newer is not known."""
        places: dict[Key, DataDirectory] = {}
        if len(self.online) < 2:
            return
        for directory in self.online:
            try:
                here = directory.partitions()
            except OSError as error:
                self.leave_out(directory, error)
                continue
            for key in sorted(here):
                other = places.setdefault(key, directory)
                if other is not directory and _are_one(key, other, directory):
                    raise DirectoriesUnusable(
                        f"the partition {key[0]}-{key[1]} is in two data directories, {other.path} and "
                        f"{directory.path}: move it away from one of them. Nothing was changed"
                    )

    def load(self, image: ClusterImage) -> dict[Key, DataDirectory]:
        """Reads the checkpoints, tidies up, and says where each partition is that the disk has.

        Raises CorruptCheckpoint (the log starts), OSError.
        """
        places: dict[Key, DataDirectory] = {}
        for directory in self.online:
            directory.checkpoints.load()
            here = directory.sweep(image)
            places |= dict.fromkeys(here, directory)
            directory.partition_count = len(here)
        if len(self) > 1:
            for directory in self.online:
                # What was moved to another one by hand is not missing here.
                moved = [key for key, place in places.items() if place is not directory]
                for key in moved:
                    directory.checkpoints.forget(key)
                directory.checkpoints.tidy()
        return places

    def remembering(self, key: Key) -> DataDirectory | None:
        """The one that says that it had this partition, which is missing."""
        return next((one for one in self.online if one.checkpoints.known_offset(key)), None)

    def release(self) -> None:
        """Gives the locks back."""
        for directory in self._all:
            directory.release()


def _are_one(key: Key, one: DataDirectory, other: DataDirectory) -> bool:
    """Whether both are of the same topic. One that was deleted since, or is damaged, is nobody's rival."""
    try:
        ids = {one.topic_id_of(key), other.topic_id_of(key)}
    except (CorruptCheckpoint, OSError):
        return True
    return len(ids - {None}) < 2
