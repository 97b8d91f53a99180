"""One data directory of this broker (Kafka's `log.dirs`, KIP-112): what lies in it, and whether it can still be used.

It opens the logs of its partitions, removes and moves aside what is no partition of ours, and holds the checkpoints of
those that are here (checkpoints.py). Which directory a partition belongs to is told by where it lies, by nothing else.

**When it is dead.** An error of one file is that partition's alone, and a full device is no error of the directory. So
after any other error a helper thread probes: it writes a file, syncs it, and looks whether the directory is still the
one that this broker began with (a device that was unmounted leaves an empty one behind). If that fails the directory
has failed, for good: the kernel drops what a failing device did not take, so nothing that comes back while we run can
be trusted. The next start looks again (membership/startup_losses.py).
"""

import errno
import logging
import posixpath
from collections.abc import Callable, Sequence

from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.topic_image import TopicImage
from odradek.broker.directories import meta_properties
from odradek.broker.directories.checkpoints import Checkpoints, Key
from odradek.broker.directories.meta_properties import ForeignDirectory, MetaProperties
from odradek.broker.directories.partition_directories import (
    DELETE_SUFFIX,
    KEPT,
    STRAY_SUFFIX,
    partition_of,
    renamed,
    renamed_stem,
    stem_of,
    suffix_of,
)
from odradek.broker.disk.disk import Disk, Lock
from odradek.broker.disk.open_files import warn_of_open_directory
from odradek.broker.log.checkpoint import CorruptCheckpoint, read_partition_metadata, write_partition_metadata
from odradek.broker.log.config import LogConfig
from odradek.broker.log.log import Log
from odradek.broker.log.segment import LOG_SUFFIX
from odradek.broker.log.storage_errors import means_no_room
from odradek.protocol.codec.schema import ZERO_UUID, uuid_from_text, uuid_text
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks

logger = logging.getLogger(__name__)

LOCK_FILE = ".lock"
PROBE_FILE = ".probe"
PROBE_INTERVAL_MS = 1000.0
"""So far apart are two probes, whatever fails meanwhile."""


class DataDirectory:
    """One of them. It belongs to the event loop's thread."""

    def __init__(self, disk: Disk, path: str, environment: Environment, tasks: Tasks) -> None:
        self.path = path
        self.checkpoints = Checkpoints(disk, path)
        self.properties: MetaProperties | None = None
        """What its meta.properties says; None before its first start, and while it cannot be read."""
        self.partition_count = 0
        """How many partitions have their place here: the next one goes where there are fewest."""
        self.lacks_the_newest = False
        """The machine went down without a clean stop: what it had not written may be missing, in the middle of a log,
        too. Or this is an older copy, or was not in use when the broker ran last (membership/startup_losses.py)."""
        self.failure: str | None = None
        """Why it cannot be used, from then on for as long as this process runs."""
        self.on_failed: Callable[[DataDirectory], None] = _nothing
        """Called once, when it has failed."""
        self._disk = disk
        self._environment = environment
        self._tasks = tasks
        self._lock: Lock | None = None
        self._missing: set[Key] = set()  # those whose log was not there at the start
        self._is_loaded = False
        self._is_watched = True
        self._is_suspect = False
        self._is_examined = False

    def __repr__(self) -> str:
        return f"<DataDirectory {self.path}{'' if self.is_online else ', failed'}>"

    @property
    def is_online(self) -> bool:
        return self.failure is None

    @property
    def directory_id(self) -> bytes:
        return ZERO_UUID if self.properties is None else uuid_from_text(self.properties.directory_id)

    # -- coming and going ---------------------------------------------------------------------------------------

    def take(self) -> None:
        """Makes it where it is missing, and locks it. Raises LockHeld, OSError."""
        meta_properties.make_data_dir(self._disk, self.path)
        self._lock = self._disk.lock(posixpath.join(self.path, LOCK_FILE))
        if self._disk.is_visible_outside:
            warn_of_open_directory(self.path)

    def release(self) -> None:
        """Gives the lock back."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def identify(self, cluster_id: str, node_id: int) -> None:
        """Gives it an id, if it has none yet. Raises OSError."""
        if self.properties is None:
            properties = MetaProperties(cluster_id, node_id, uuid_text(self._environment.random_uuid()))
            meta_properties.store(self._disk, self.path, properties)
            self.properties = properties
        assert self.properties.cluster_id == cluster_id, "the metadata was checked"

    def partitions(self) -> set[Key]:
        """Those that have a directory here, by its name. Raises OSError."""
        found: set[Key] = set()
        for name in self._disk.list_dir(self.path):
            place = partition_of(name)
            if place is not None and name == f"{place[0]}-{place[1]}":
                found.add(place)
        return found

    def path_of(self, key: Key) -> str:
        return posixpath.join(self.path, f"{key[0]}-{key[1]}")

    def topic_id_of(self, key: Key) -> bytes | None:
        """Of which topic the partition says that it is; None where it does not. Raises OSError, CorruptCheckpoint."""
        return read_partition_metadata(self._disk, self.path_of(key))

    # -- what lies here -----------------------------------------------------------------------------------------

    def sweep(self, image: ClusterImage) -> set[Key]:
        """Finishes interrupted deletions, and moves aside what does not belong to a topic of the image; the partitions
        that stay, and those of internal topics that may yet be taken over. Raises OSError."""
        here: set[Key] = set()
        kept: list[str] = []
        names = self._disk.list_dir(self.path)
        self._forget_deleted(names)
        for name in names:
            path = posixpath.join(self.path, name)
            if suffix_of(name) == DELETE_SUFFIX:
                try:
                    self._disk.remove_tree(path)
                except OSError as error:
                    logger.warning("%s cannot be removed; the next start tries again: %s", path, error)
                continue
            place = partition_of(name)
            if place is None or not self._disk.is_dir(path):
                continue
            topic = image.topics.get(place[0])
            if topic is None and place[0] in KEPT:
                kept.append(name)
                here.add(place)
            elif not self._is_stray(name, place, topic):
                here.add(place)
        if kept:
            logger.info("%s: kept for Apache Kafka, and not served: %s", self.path, ", ".join(kept))
        return here

    def _forget_deleted(self, names: Sequence[str]) -> None:
        """Before the last trace of interrupted deletions goes: the checkpoints are tidied after directories have got
        their new names, and a process may die in between. What they say then would be taken for what a topic had that
        is created under the name, if another process dies before its directory is there."""
        deleted = {renamed_stem(name, DELETE_SUFFIX) for name in names if suffix_of(name) == DELETE_SUFFIX}
        for topic, index in self.checkpoints.known() if deleted else ():
            name = f"{topic}-{index}"
            if stem_of(name, DELETE_SUFFIX) in deleted and name not in names:
                self.checkpoints.forget((topic, index))
        try:
            self.checkpoints.tidy()
        except OSError as error:  # a full device is one that the deletions make room on
            logger.warning("%s: what was deleted stays in the checkpoints for now: %s", self.path, error)

    def _is_stray(self, name: str, place: Key, topic: TopicImage | None) -> bool:
        """Whether no topic has a partition of this name and id; then it was moved aside. Raises OSError."""
        path = posixpath.join(self.path, name)
        is_index = topic is not None and name == f"{place[0]}-{place[1]}" and place[1] < len(topic.partitions)
        try:
            topic_id = read_partition_metadata(self._disk, path)
        except CorruptCheckpoint:
            if is_index:
                return False  # opening it will fail, and say so
            topic_id = None
        if topic is not None and is_index and topic_id in (None, topic.topic_id):
            return False
        self._put_aside(name, topic_id)
        if is_index:
            self.checkpoints.forget(place)  # what they say is of that one
        return True

    def _put_aside(self, name: str, topic_id: bytes | None) -> None:
        """Raises OSError."""
        logger.warning(
            "directory %s belongs to no topic known here (its topic id is %s): renamed %s and left alone; "
            "delete it when nothing in it is needed",
            posixpath.join(self.path, name),
            "missing" if topic_id is None else uuid_text(topic_id),
            self._rename(name, STRAY_SUFFIX),
        )

    def loaded(self) -> None:
        """The start is over: what is opened from here on is new, or was tried before."""
        self._is_loaded = True

    def open_log(self, topic: TopicImage, index: int, config: LogConfig) -> Log:
        """Opens the log of a partition, made when missing.

        Raises KafkaError KAFKA_STORAGE_ERROR, OSError, CorruptCheckpoint.
        """
        name, key = f"{topic.name}-{index}", (topic.name, index)
        directory = posixpath.join(self.path, name)
        if not self._disk.exists(directory):
            self._check_is_new(key, directory, "is missing")
            self._disk.make_dir(directory)
        found = read_partition_metadata(self._disk, directory)
        if found is not None and found != topic.topic_id:
            # Of a topic whose deletion could not be finished, or one that Kafka kept for itself, or one that was put
            # here by hand since the start: nobody here knows.
            self.set_aside(key)
            self._disk.make_dir(directory)
            found = None
        if found is None:
            if not any(name.endswith(LOG_SUFFIX) for name in self._disk.list_dir(directory)):
                self._check_is_new(key, directory, "is empty")
                # The log start of a former partition with this name must not become its own after a crash.
                self.checkpoints.forget(key)
                self.checkpoints.tidy()
            write_partition_metadata(self._disk, directory, topic.topic_id)
        checkpoints = self.checkpoints
        return Log.open(
            self._disk,
            directory,
            config,
            self._environment.now_ms(),
            log_start_offset=checkpoints.log_starts.get(key, 0),
            recovery_point=checkpoints.recovery_points.get(key, 0),
            # A partition that is opened later than at the start may have been touched by an attempt that failed.
            is_clean=checkpoints.was_clean and not self._is_loaded,
            random=self._environment.random,
        )

    def _check_is_new(self, key: Key, directory: str, what: str) -> None:
        """Does not let a partition that the last process had come up empty. Raises KafkaError KAFKA_STORAGE_ERROR."""
        known_offset = self.checkpoints.known_offset(key)
        if not known_offset or (self._is_loaded and key not in self._missing):
            return
        self._missing.add(key)
        raise KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"{directory} {what}, and held a log that had come to offset {known_offset}: restore it, or delete the "
            "topic if nothing of it is needed",
        )

    def forget(self, key: Key) -> None:
        """The partition is gone from here; the checkpoints are to be tidied afterwards."""
        self.checkpoints.forget(key)
        self._missing.discard(key)

    def remove(self, key: Key) -> None:
        """Has a partition's directory removed, if there is one: it has another name at once. Raises OSError."""
        name = f"{key[0]}-{key[1]}"
        if not self._disk.exists(posixpath.join(self.path, name)):
            return
        doomed = self._rename(name, DELETE_SUFFIX)
        self._tasks.start(
            self._environment.run_blocking(self._disk.remove_tree, posixpath.join(self.path, doomed)),
            f"remove {doomed}",
        )

    def set_aside(self, key: Key) -> None:
        """Gives a partition's directory, if there is one, a name under which it is kept. Raises OSError."""
        if not self._disk.exists(self.path_of(key)):
            return
        try:
            topic_id = self.topic_id_of(key)
        except CorruptCheckpoint:
            topic_id = None
        self._put_aside(f"{key[0]}-{key[1]}", topic_id)

    def _rename(self, name: str, suffix: str) -> str:
        target = renamed(name, self._environment.random_uuid().hex(), suffix)
        self._disk.rename(posixpath.join(self.path, name), posixpath.join(self.path, target))
        return target

    # -- failing ------------------------------------------------------------------------------------------------

    def stop_watching(self) -> None:
        """The broker stops: whatever fails from here on says nothing that anybody could use."""
        self._is_watched = False

    def suspect(self, error: OSError) -> None:
        """Something here has failed with this. What that says of the whole directory is found out."""
        if means_no_room(error) or not self.is_online or not self._is_watched:
            return
        self._is_suspect = True
        if not self._is_examined:
            self._is_examined = True
            self._tasks.start(self._examine(), f"probe {self.path}")

    async def _examine(self) -> None:
        """Probes as often as there is a reason, and then a while no more."""
        try:
            while self._is_suspect and self.is_online:
                self._is_suspect = False
                try:
                    await self._environment.run_blocking(self.probe)
                except (OSError, ForeignDirectory) as error:
                    if not isinstance(error, OSError) or not means_no_room(error):
                        self.fail(error)
                        return
                await self._environment.sleep(PROBE_INTERVAL_MS)
        finally:
            self._is_examined = False

    def probe(self) -> None:
        """Waits for the device. In any thread. Raises OSError, ForeignDirectory."""
        path = posixpath.join(self.path, PROBE_FILE)
        self._disk.write_whole(path, b"odradek")
        self._disk.remove(path)
        if meta_properties.load(self._disk, self.path) != self.properties:
            raise OSError(errno.ENODEV, "another directory has taken its place", self.path)

    def fail(self, error: Exception) -> None:
        """It cannot be used, for as long as this process runs."""
        assert self.failure is None, "it fails once"
        self.failure = str(error)
        self.on_failed(self)


def _nothing(directory: DataDirectory) -> None: ...
