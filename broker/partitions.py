"""The table of this broker's partitions, kept equal to the metadata image.

The image decides, directories follow. A topic that the image has and the disk lacks is created empty; a deleted
topic's directories are renamed first (`<topic>-<n>.<uuid>-delete`, as Kafka does) and then removed by a helper thread,
so a crash at any step leaves either the whole partition or a name that the next start sweeps. A directory whose topic
id the image does not know is renamed `-stray` and kept; that the image is the one which this directory followed last
was checked before (metadata_revision.py). What an adopted directory has of Kafka's own topics stays where it is.

A partition whose directory cannot be used (a full disk, a damaged file) answers KAFKA_STORAGE_ERROR and is tried again
when it is asked for; the others go on.
"""

import logging
import posixpath
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from broker.checkpoints import Checkpoints, Key
from broker.cluster.image import ClusterImage, Delta, TopicImage
from broker.config import BrokerConfig, TopicConfig
from broker.disk import Disk
from broker.log.checkpoint import CorruptCheckpoint, read_partition_metadata, write_partition_metadata
from broker.log.config import LogConfig
from broker.log.log import Log
from broker.log.segment import LOG_SUFFIX
from broker.partition_directories import (
    DELETE_SUFFIX,
    KAFKAS_OWN,
    STRAY_SUFFIX,
    partition_of,
    renamed,
    suffix_of,
)
from broker.replication.partition import Partition
from broker.replication.replicas import Replicas
from broker.replication.syncs import Syncs
from client.environment import Environment
from client.tasks import Tasks
from protocol.errors import ErrorCode, KafkaError
from protocol.schema import uuid_text

logger = logging.getLogger(__name__)

RETRY_MS = 1000
"""How long a partition that could not be opened is left alone: trying may mean to read all of its log."""


def log_config(config: TopicConfig) -> LogConfig:
    """What the log engine needs of a topic's configuration."""
    return LogConfig(
        segment_bytes=config.segment_bytes,
        segment_ms=config.segment_ms,
        segment_jitter_ms=config.segment_jitter_ms,
        segment_index_bytes=config.segment_index_bytes,
        index_interval_bytes=config.index_interval_bytes,
        preallocate=config.preallocate,
        producer_id_expiration_ms=config.producer_id_expiration_ms,
        is_compacted="compact" in config.cleanup_policy,
    )


@dataclass(slots=True)
class _Unopened:
    """A partition of ours that could not be opened, and why."""

    topic: TopicImage
    error: KafkaError
    retry_at_ms: float


class Partitions:
    """Every partition with a replica on this broker, by topic name and index."""

    def __init__(
        self,
        disk: Disk,
        data_dir: str,
        node_id: int,
        environment: Environment,
        tasks: Tasks,
        config: BrokerConfig,
    ) -> None:
        self._disk = disk
        self._data_dir = data_dir
        self._node_id = node_id
        self._environment = environment
        self._tasks = tasks
        self._syncs = Syncs(environment, tasks)
        self._config = config
        self._partitions: dict[Key, Partition] = {}
        self._unopened: dict[Key, _Unopened] = {}
        self._names: dict[bytes, str] = {}
        self._missing: set[Key] = set()  # those whose log was not there at the start
        self._is_loaded = False
        self.checkpoints = Checkpoints(disk, data_dir)

    def __len__(self) -> int:
        return len(self._partitions)

    def __contains__(self, partition: Partition) -> bool:
        return self._partitions.get((partition.topic, partition.index)) is partition

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._partitions.values())

    # -- finding ------------------------------------------------------------------------------------------------

    def find(self, topic: str, index: int) -> Partition:
        """Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR when it cannot be opened."""
        partition = self._partitions.get((topic, index))
        return self._find_unopened(topic, index) if partition is None else partition

    def _find_unopened(self, topic: str, index: int) -> Partition:
        unopened = self._unopened.get((topic, index))
        if unopened is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"this broker has no partition {index} of topic {topic!r}"
            )
        if self._environment.monotonic_ms() >= unopened.retry_at_ms:
            self._open_partition(unopened.topic, index)
            if (partition := self._partitions.get((topic, index))) is not None:
                logger.warning("partition %s-%d could be opened now", topic, index)
                return partition
            unopened = self._unopened[topic, index]
        raise unopened.error

    def leader(self, topic: str, index: int, current_leader_epoch: int = -1) -> Partition:
        """Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR, NOT_LEADER_OR_FOLLOWER, and by the
        client's epoch FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH."""
        partition = self.find(topic, index)
        partition.require_leader(current_leader_epoch)
        return partition

    def topic_name(self, topic_id: bytes) -> str:
        """Raises KafkaError UNKNOWN_TOPIC_ID."""
        name = self._names.get(topic_id)
        if name is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"this broker has no topic with id {uuid_text(topic_id)}")
        return name

    # -- following the image ------------------------------------------------------------------------------------

    def load(self, image: ClusterImage) -> None:
        """Opens every partition of the image, at start. Raises OSError, CorruptCheckpoint (the log starts)."""
        self.checkpoints.load()
        self._sweep(image)
        for topic in image.topics.values():
            self._open_topic(topic)
        self._is_loaded = True

    def apply(self, image: ClusterImage, delta: Delta) -> None:
        """Follows one change: deletes first, so that a topic created again under its old name finds the place free."""
        for topic in delta.deleted:
            self._delete_topic(topic)
        for topic in delta.created:
            self._open_topic(topic)
        for topic in delta.changed:
            self._open_topic(topic)
            self._reconfigure(topic)
        if delta.broker_configs:
            for topic in image.topics.values():
                self._reconfigure(topic)  # each may inherit what has changed

    def _reconfigure(self, topic: TopicImage) -> None:
        config = self._config.topic(topic.configs)
        for index in range(len(topic.partitions)):
            if (partition := self._partitions.get((topic.name, index))) is not None:
                partition.log.config = log_config(config)
                partition.configure(config)

    def _open_topic(self, topic: TopicImage) -> None:
        self._names[topic.topic_id] = topic.name
        for index, state in enumerate(topic.partitions):
            if self._node_id in state.replicas:
                self._open_partition(topic, index)

    def _open_partition(self, topic: TopicImage, index: int) -> None:
        """Opens the partition unless it is open, and gives it the role that the image says."""
        key = topic.name, index
        partition = self._partitions.get(key)
        if partition is None:
            try:
                partition = self._open(topic, index)
            except (KafkaError, OSError, CorruptCheckpoint) as error:
                self._leave_unopened(topic, index, error)
                return
            self._unopened.pop(key, None)
            self._partitions[key] = partition
        state = topic.partitions[index]
        if state.leader != self._node_id:
            partition.resign()
        elif state.leader_epoch > partition.leader_epoch:
            partition.become_leader(state.leader_epoch, Replicas(self._node_id, state.replicas, state.isr))

    def _leave_unopened(self, topic: TopicImage, index: int, error: Exception) -> None:
        name = f"{topic.name}-{index}"
        reason = error.message if isinstance(error, KafkaError) else str(error)
        if (topic.name, index) not in self._unopened:  # said once, not at each attempt
            logger.error("partition %s cannot be opened; it is tried again when asked for: %s", name, reason)
        self._unopened[topic.name, index] = _Unopened(
            topic,
            KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{name} cannot be opened: {reason}"),
            self._environment.monotonic_ms() + RETRY_MS,
        )

    def _open(self, topic: TopicImage, index: int) -> Partition:
        """Raises KafkaError KAFKA_STORAGE_ERROR, OSError, CorruptCheckpoint."""
        config = self._config.topic(topic.configs)
        name = f"{topic.name}-{index}"
        directory = posixpath.join(self._data_dir, name)
        key = topic.name, index
        if not self._disk.exists(directory):
            self._check_is_new(key, directory, "is missing")
        self._disk.make_dir(directory)
        found = read_partition_metadata(self._disk, directory)
        if found is not None and found != topic.topic_id:
            # The start moved aside what it did not know, so this was a topic whose deletion could not be finished, or
            # one that Kafka kept for itself.
            if topic.name in KAFKAS_OWN:
                self._rename(name, STRAY_SUFFIX)
            else:
                self._remove(name)
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
        log = Log.open(
            self._disk,
            directory,
            log_config(config),
            self._environment.now_ms(),
            log_start_offset=checkpoints.log_starts.get(key, 0),
            recovery_point=checkpoints.recovery_points.get(key, 0),
            # A partition that is opened later than at the start may have been touched by an attempt that failed.
            is_clean=checkpoints.was_clean and not self._is_loaded,
            random=self._environment.random,
        )
        return Partition(
            topic.name,
            topic.topic_id,
            index,
            log,
            config,
            self._environment,
            self._tasks,
            self._syncs,
            self._config.replica_lag_time_max_ms,
            checkpoints.high_watermarks.get(key, 0),
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

    def _delete_topic(self, topic: TopicImage) -> None:
        self._names.pop(topic.topic_id, None)
        for index in range(len(topic.partitions)):
            key = topic.name, index
            self.checkpoints.forget(key)
            self._missing.discard(key)
            unopened = self._unopened.pop(key, None)
            partition = self._partitions.pop(key, None)
            if partition is not None:
                partition.close()
                partition.log.close_without_flush()
            elif unopened is None:
                continue
            name = f"{topic.name}-{index}"
            try:
                if self._disk.exists(posixpath.join(self._data_dir, name)):
                    self._remove(name)
            except OSError as error:
                logger.error("the directory %s of a deleted topic could not be renamed and stays: %s", name, error)
        self._tidy_checkpoints()

    def _remove(self, name: str) -> None:
        doomed = self._rename(name, DELETE_SUFFIX)
        self._tasks.start(
            self._environment.run_blocking(self._disk.remove_tree, posixpath.join(self._data_dir, doomed)),
            f"remove {doomed}",
        )

    def _rename(self, name: str, suffix: str) -> str:
        target = renamed(name, self._environment.random_uuid().hex(), suffix)
        self._disk.rename(posixpath.join(self._data_dir, name), posixpath.join(self._data_dir, target))
        return target

    def _sweep(self, image: ClusterImage) -> None:
        """Finishes interrupted deletions, and moves aside what does not belong to a topic of the image."""
        kept: list[str] = []
        for name in self._disk.list_dir(self._data_dir):
            path = posixpath.join(self._data_dir, name)
            if suffix_of(name) == DELETE_SUFFIX:
                try:
                    self._disk.remove_tree(path)
                except OSError as error:
                    logger.warning("%s cannot be removed; the next start tries again: %s", path, error)
                continue
            place = partition_of(name)
            if place is None or not self._disk.is_dir(path):
                continue
            topic_name, index = place
            topic = image.topics.get(topic_name)
            if topic is None and topic_name in KAFKAS_OWN:
                kept.append(name)
                continue
            is_index = topic is not None and name == f"{topic_name}-{index}" and index < len(topic.partitions)
            try:
                topic_id = read_partition_metadata(self._disk, path)
            except CorruptCheckpoint:
                if is_index:
                    continue  # opening it will fail, and say so
                topic_id = None
            if topic is not None and is_index and topic_id in (None, topic.topic_id):
                continue
            stray = self._rename(name, STRAY_SUFFIX)
            if is_index:
                self.checkpoints.forget(place)  # what they say is of that one
            logger.warning(
                "directory %s belongs to no topic known here (its topic id is %s): renamed %s and left alone; "
                "delete it when nothing in it is needed",
                path,
                "missing" if topic_id is None else uuid_text(topic_id),
                stray,
            )
        if kept:
            logger.info("%s: kept for Apache Kafka, and not served: %s", self._data_dir, ", ".join(kept))

    # -- log start ----------------------------------------------------------------------------------------------

    async def delete_records(self, partition: Partition, offset: int) -> None:
        """Moves the log start, on disk before the answer: records below it never come back (KIP-107).

        Raises KafkaError: KAFKA_STORAGE_ERROR, UNKNOWN_TOPIC_OR_PARTITION when the topic was deleted meanwhile.
        """
        key = partition.topic, partition.index
        log_starts = self.checkpoints.log_starts
        before = log_starts.get(key)
        log_starts[key] = max(offset, before or 0)
        try:
            await self._environment.run_blocking(self.checkpoints.writing_log_starts())
        except OSError as error:
            if self._partitions.get(key) is partition and log_starts.get(key) == offset:
                # What a later request wrote stays.
                if before is None:
                    del log_starts[key]
                else:
                    log_starts[key] = before
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"the log start of {key[0]}-{key[1]} could not be written: {error}"
            ) from error
        if self.find(*key) is not partition:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{key[0]}-{key[1]} was deleted meanwhile")
        partition.log.advance_log_start(offset)
        partition.notify()

    def _tidy_checkpoints(self) -> None:
        """Takes what was forgotten out of them. If that fails, it is done before the name is used again."""
        try:
            self.checkpoints.tidy()
        except OSError as error:
            logger.warning("a checkpoint still holds what it should not, and is tidied later: %s", error)

    # -- checkpoints --------------------------------------------------------------------------------------------

    def note_recovery_points(self) -> bool:
        """Takes over how far each log is on the device; whether that is further than what was noted before."""
        return self._note(self.checkpoints.recovery_points, lambda partition: partition.log.recovery_point)

    def note_high_watermarks(self) -> bool:
        return self._note(self.checkpoints.high_watermarks, lambda partition: partition.high_watermark.value)

    def _note(self, noted: dict[Key, int], offset_of: Callable[[Partition], int]) -> bool:
        changed = {
            key: offset
            for key, partition in self._partitions.items()
            if (offset := offset_of(partition)) != noted.get(key, 0)
        }
        noted.update(changed)
        return bool(changed)

    async def landed(self) -> None:
        """Returns when no log is being synced."""
        for partition in list(self._partitions.values()):
            await partition.durability.landed()

    # -- end ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Flushes and closes every log, and says so in the directory. What cannot be flushed is logged; the next start
        recovers it."""
        is_clean = self._is_loaded and not self._unopened
        for partition in self._partitions.values():
            partition.close()
            try:
                partition.log.close()
            except (KafkaError, OSError) as error:
                is_clean = False
                logger.error("%s-%d could not be flushed: %s", partition.topic, partition.index, error)
        try:
            if self.note_high_watermarks():
                self.checkpoints.writing_high_watermarks()()
            if self.note_recovery_points():
                self.checkpoints.writing_recovery_points()()
            if is_clean:
                self.checkpoints.mark_clean()
        except OSError as error:
            logger.error("the checkpoints could not be written, the next start reads more of the logs: %s", error)
        self._partitions.clear()
        self._unopened.clear()
