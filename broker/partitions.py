"""The table of this broker's partitions, kept equal to the metadata image.

The image decides, directories follow. A topic that the image has and the disk lacks is created empty; a deleted
topic's directories are renamed first (`<topic>-<n>.<uuid>-delete`, as Kafka does) and then removed by a helper thread,
so a crash at any step leaves either the whole partition or a name that the next start sweeps. A directory whose topic
id the image does not know is renamed `-stray` and kept: the metadata may be what is lost, and then the data is needed.

A partition whose directory cannot be used (a full disk, a damaged file) answers KAFKA_STORAGE_ERROR and is tried again
when it is asked for; the others go on.
"""

import logging
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass

from broker.cluster.image import ClusterImage, Delta, TopicImage
from broker.config import BrokerConfig, TopicConfig
from broker.disk import Disk
from broker.log.checkpoint import (
    LOG_START_OFFSETS,
    CorruptCheckpoint,
    read_offsets,
    read_partition_metadata,
    write_offsets,
    write_partition_metadata,
)
from broker.log.log import Log, LogConfig
from broker.replication.partition import Partition
from broker.replication.replicas import Replicas
from client.environment import Environment
from client.tasks import Tasks
from protocol.errors import ErrorCode, KafkaError
from protocol.schema import uuid_text

logger = logging.getLogger(__name__)

DELETE_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"
NAME_BYTES_MAX = 255
RETRY_MS = 1000
"""How long a partition that could not be opened is left alone: trying may mean to read all of its log."""

Key = tuple[str, int]
"""Topic name and partition index."""


def log_config(config: TopicConfig) -> LogConfig:
    """What the log engine needs of a topic's configuration."""
    return LogConfig(
        segment_bytes=config.segment_bytes,
        segment_ms=config.segment_ms,
        segment_index_bytes=config.segment_index_bytes,
        index_interval_bytes=config.index_interval_bytes,
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
        self._config = config
        self._partitions: dict[Key, Partition] = {}
        self._unopened: dict[Key, _Unopened] = {}
        self._names: dict[bytes, str] = {}
        self._log_starts: dict[Key, int] = {}
        self._has_stale_log_starts = False
        """The checkpoint still holds entries of partitions that are gone."""

    def __len__(self) -> int:
        return len(self._partitions)

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
        self._log_starts = read_offsets(self._disk, posixpath.join(self._data_dir, LOG_START_OFFSETS))
        self._sweep(image)
        for topic in image.topics.values():
            self._open_topic(topic)

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
                partition.config = config
                partition.log.config = log_config(config)
                partition.update_high_watermark()

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
        self._disk.make_dir(directory)
        found = read_partition_metadata(self._disk, directory)
        if found is not None and found != topic.topic_id:
            # The start moved aside what it did not know, so this was a topic whose deletion could not be finished.
            self._remove(name)
            self._disk.make_dir(directory)
            found = None
        if found is None:
            # A new partition: the log start of a former one with this name must not become its own after a crash.
            self._forget_log_start((topic.name, index))
            if self._has_stale_log_starts:
                self._write_log_starts()
            write_partition_metadata(self._disk, directory, topic.topic_id)
        log = Log.open(
            self._disk,
            directory,
            log_config(config),
            self._environment.now_ms(),
            log_start_offset=self._log_starts.get((topic.name, index), 0),
        )
        return Partition(
            topic.name,
            topic.topic_id,
            index,
            log,
            config,
            self._environment,
            self._config.replica_lag_time_max_ms,
        )

    def _delete_topic(self, topic: TopicImage) -> None:
        self._names.pop(topic.topic_id, None)
        for index in range(len(topic.partitions)):
            key = topic.name, index
            self._forget_log_start(key)
            unopened = self._unopened.pop(key, None)
            partition = self._partitions.pop(key, None)
            if partition is not None:
                partition.resign()
                partition.log.close_without_flush()
            elif unopened is None:
                continue
            name = f"{topic.name}-{index}"
            try:
                if self._disk.exists(posixpath.join(self._data_dir, name)):
                    self._remove(name)
            except OSError as error:
                logger.error("the directory %s of a deleted topic could not be renamed and stays: %s", name, error)
        self._tidy_log_starts()

    def _remove(self, name: str) -> None:
        doomed = self._rename(name, DELETE_SUFFIX)
        self._tasks.start(
            self._environment.run_blocking(self._disk.remove_tree, posixpath.join(self._data_dir, doomed)),
            f"remove {doomed}",
        )

    def _rename(self, name: str, suffix: str) -> str:
        ending = f".{self._environment.random_uuid().hex()}{suffix}"
        target = name[: NAME_BYTES_MAX - len(ending)] + ending
        self._disk.rename(posixpath.join(self._data_dir, name), posixpath.join(self._data_dir, target))
        return target

    def _sweep(self, image: ClusterImage) -> None:
        """Finishes interrupted deletions, and moves aside what does not belong to a topic of the image."""
        for name in self._disk.list_dir(self._data_dir):
            path = posixpath.join(self._data_dir, name)
            if name.endswith(DELETE_SUFFIX):
                try:
                    self._disk.remove_tree(path)
                except OSError as error:
                    logger.warning("%s cannot be removed; the next start tries again: %s", path, error)
                continue
            topic_name, dash, digits = name.rpartition("-")
            if not (dash and digits.isascii() and digits.isdecimal() and self._disk.is_dir(path)):
                continue
            topic = image.topics.get(topic_name)
            is_index = topic is not None and digits == str(int(digits)) and int(digits) < len(topic.partitions)
            try:
                topic_id = read_partition_metadata(self._disk, path)
            except CorruptCheckpoint:
                if is_index:
                    continue  # opening it will fail, and say so
                topic_id = None
            if topic is not None and is_index and topic_id in (None, topic.topic_id):
                continue
            stray = self._rename(name, STRAY_SUFFIX)
            logger.warning(
                "directory %s belongs to no topic known here (its topic id is %s): renamed %s and left alone; "
                "delete it when nothing in it is needed",
                path,
                "missing" if topic_id is None else uuid_text(topic_id),
                stray,
            )

    # -- log start ----------------------------------------------------------------------------------------------

    def delete_records(self, partition: Partition, offset: int) -> None:
        """Moves the log start, on disk before the answer: records below it never come back (KIP-107)."""
        key = partition.topic, partition.index
        before = self._log_starts.get(key)
        self._log_starts[key] = offset
        try:
            self._write_log_starts()
        except KafkaError:
            if before is None:
                del self._log_starts[key]
            else:
                self._log_starts[key] = before
            raise
        partition.log.advance_log_start(offset)
        partition.notify()

    def _forget_log_start(self, key: Key) -> None:
        if self._log_starts.pop(key, None) is not None:
            self._has_stale_log_starts = True

    def _tidy_log_starts(self) -> None:
        """Takes what was forgotten out of the checkpoint. If that fails, it is done before the name is used again."""
        if self._has_stale_log_starts:
            try:
                self._write_log_starts()
            except KafkaError as error:
                logger.warning("%s", error.message)

    def _write_log_starts(self) -> None:
        path = posixpath.join(self._data_dir, LOG_START_OFFSETS)
        try:
            write_offsets(self._disk, path, self._log_starts)
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{path} could not be written: {error}") from error
        self._has_stale_log_starts = False

    # -- end ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Flushes and closes every log. What cannot be flushed is logged; the next start recovers it."""
        for partition in self._partitions.values():
            partition.resign()
            try:
                partition.log.close()
            except (KafkaError, OSError) as error:
                logger.error("%s-%d could not be flushed: %s", partition.topic, partition.index, error)
        self._partitions.clear()
        self._unopened.clear()
