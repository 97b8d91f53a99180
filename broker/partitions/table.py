"""The table of this broker's partitions, kept equal to the metadata image.

The image decides, directories follow. A topic that the image has and the disk lacks is created empty; a deleted
topic's directories are renamed first (`<topic>-<n>.<uuid>-delete`, as Kafka does) and then removed by a helper thread,
so a crash at any step leaves either the whole partition or a name that the next start sweeps. A directory whose topic
the image does not know, or knew and has lost while nobody saw a deletion, is renamed `-stray` and kept; that the image
follows what this directory knows was checked before (membership/image_follower.py). What an adopted directory has of
Kafka's own topics stays where it is.

A partition whose directory cannot be used (a full disk, a damaged file) answers KAFKA_STORAGE_ERROR and is tried again
when it is asked for; the others go on. Many new ones are opened a few at a time (pending_opens.py). With a data
directory that has failed (directories/data_directory.py) all of its partitions are offline: they answer
KAFKA_STORAGE_ERROR until the broker starts anew, and others lead them (membership/offline_replicas.py).
"""

import logging
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import inf

from odradek.broker.cluster.image import ClusterImage, Delta
from odradek.broker.cluster.keys import PartitionState
from odradek.broker.cluster.topic_image import TopicImage
from odradek.broker.config.broker_config import BrokerConfig, TopicConfig
from odradek.broker.directories.checkpoints import Checkpoints, Key
from odradek.broker.directories.data_directories import DataDirectories
from odradek.broker.directories.data_directory import DataDirectory
from odradek.broker.log.checkpoint import CorruptCheckpoint
from odradek.broker.log.config import LogConfig
from odradek.broker.log.log import Log
from odradek.broker.partitions.checkpoint_writer import CheckpointWriter
from odradek.broker.partitions.log_starts import LogStarts
from odradek.broker.partitions.partition_owner import PartitionOwner
from odradek.broker.partitions.pending_opens import OPENED_AT_ONCE, PendingOpens
from odradek.broker.replica.leadership import Leadership
from odradek.broker.replica.partition import Partition
from odradek.broker.replica.partition_host import PartitionHost
from odradek.broker.replica.syncs import LANES
from odradek.broker.replication.roles import Roles
from odradek.protocol.codec.schema import uuid_text
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.runtime.tasks import run_together

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
        directories: DataDirectories,
        host: PartitionHost,
        config: BrokerConfig,
        roles: Roles,
        leadership: Leadership,
    ) -> None:
        self.directories = directories
        self.on_offline: Callable[[DataDirectory], None] = _nothing
        """Called when a data directory has failed and its partitions are offline."""
        self.on_given_up: Callable[[], None] = _nobody
        """Called when the log of a partition is of no use before the next start."""
        self.has_given_up = False
        self._node_id = host.node_id
        self._environment = host.environment
        self._host = host
        self._config = config
        self._roles = roles
        self._partitions: dict[Key, Partition] = {}
        self._unopened: dict[Key, _Unopened] = {}
        self._openings = PendingOpens(host.tasks, self._open_due)
        self._offline: dict[Key, KafkaError] = {}
        self._failed: list[Log] = []  # with their directories
        self._places: dict[Key, DataDirectory] = {}  # of all of these, and of what the disk has besides
        self._names: dict[bytes, str] = {}
        self._topics: dict[str, TopicImage] = {}  # all of the cluster, with replicas here or not
        self._is_loaded = False
        self.written = CheckpointWriter(directories, host.environment, self._placed)
        self._log_starts = LogStarts(host.environment, host.tasks, self.place, self.__contains__, roles.log_start_moved)
        loop = host.environment.loop
        self._owner = PartitionOwner(self._log_starts, self.written, roles.isr_writer, leadership, loop)
        directories.watch(self._directory_failed)

    def __len__(self) -> int:
        return len(self._partitions)

    def __contains__(self, partition: Partition) -> bool:
        return self._partitions.get((partition.topic, partition.index)) is partition

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._partitions.values())

    def _placed(self) -> Iterator[tuple[Key, Partition, DataDirectory]]:
        for key, partition in self._partitions.items():
            yield key, partition, self._places[key]

    @property
    def offline(self) -> Collection[Key]:
        """Those of ours that lie in a directory that cannot be used."""
        return self._offline.keys()

    def is_online(self, key: Key) -> bool:
        """Whether the partition is ours and can be used, or at least be tried."""
        return key in self._partitions or key in self._unopened or key in self._openings

    def is_given_up(self, key: Key) -> bool:
        """Whether the partition's log is of no use before a start has looked at it (log.py)."""
        partition = self._partitions.get(key)
        return partition is not None and partition.log.condition.is_given_up

    def gone_back(self) -> list[str]:
        """The paths of the directories that lacked the newest and whose logs are all back at what is certain."""
        waiting = [self._places[key] for key in self._unopened]
        return [one.path for one in self.directories.online if one.lacks_the_newest and one not in waiting]

    def left_over(self, topic: str) -> dict[int, bytes | None]:
        """What the disk has of a topic that there is not: by partition the topic id that its directory names. Raises
        OSError, CorruptCheckpoint."""
        return {key[1]: place.topic_id_of(key) for key, place in sorted(self._places.items()) if key[0] == topic}

    def place(self, partition: Partition) -> DataDirectory:
        """Where the partition lies, whether or not it still does."""
        return self.directories.of_log(partition.log.directory)

    def checkpoints(self, partition: Partition) -> Checkpoints:
        """Those of the directory in which the partition lies."""
        return self.place(partition).checkpoints

    # -- finding ------------------------------------------------------------------------------------------------

    def open_at(self, topic: str, index: int) -> Partition | None:
        """The partition if it is open; one that is not stays so."""
        return self._partitions.get((topic, index))

    def find(self, topic: str, index: int) -> Partition:
        """Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER when its replicas are on other brokers
        (`ReplicaManager.getPartitionOrError`), KAFKA_STORAGE_ERROR when it cannot be opened."""
        partition = self._partitions.get((topic, index))
        return self._find_unopened(topic, index) if partition is None else partition

    def _find_unopened(self, topic: str, index: int) -> Partition:
        if (topic, index) in self._openings:
            self._openings.open((topic, index))
            return self.find(topic, index)
        if (offline := self._offline.get((topic, index))) is not None:
            raise offline
        unopened = self._unopened.get((topic, index))
        if unopened is None:
            known = self._topics.get(topic)
            if known is not None and 0 <= index < len(known.partitions):
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{topic}-{index} is on other brokers")
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
        partition.role.require_leader(current_leader_epoch)
        return partition

    def replica(self, topic: str, index: int, current_leader_epoch: int = -1) -> Partition:
        """The leader's replica, or a follower's, for a consumer. Raises as `leader`."""
        partition = self.find(topic, index)
        partition.role.require_replica(current_leader_epoch)
        return partition

    def topic_name(self, topic_id: bytes) -> str:
        """Raises KafkaError UNKNOWN_TOPIC_ID."""
        name = self._names.get(topic_id)
        if name is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"this broker has no topic with id {uuid_text(topic_id)}")
        return name

    # -- following the image ------------------------------------------------------------------------------------

    def load(self, image: ClusterImage) -> None:
        """Opens every partition of the image, at start. Raises OSError, CorruptCheckpoint (the log starts).

        In a directory that `lacks_the_newest` a replica that others are in sync for goes back to what is certain.
        """
        self._places = self.directories.load(image)
        for topic in image.topics.values():
            self._open_topic(topic)
        self._is_loaded = True
        for directory in self.directories:
            directory.loaded()

    def apply(self, image: ClusterImage, delta: Delta) -> None:
        """Follows one change: deletes first, so that a topic created again under its old name finds the place free."""
        for topic in delta.deleted:
            self._delete_topic(topic)
        for topic in delta.vanished:
            self._delete_topic(topic, is_kept=True)
        at_once = OPENED_AT_ONCE
        for topic in delta.created:
            at_once -= self._open_topic(topic, at_once)
        for topic in delta.changed:
            at_once -= self._open_topic(topic, at_once)
            self._reconfigure(topic)
        self.written.tidy()
        if delta.broker_configs:
            for topic in image.topics.values():
                self._reconfigure(topic)  # each may inherit what has changed
        if delta.brokers:
            for partition in self._partitions.values():
                partition.acknowledgements.update()  # it may have waited for one that is gone

    def _reconfigure(self, topic: TopicImage) -> None:
        config = self._config.topic(topic.configs)
        of_log = log_config(config)
        for index in range(len(topic.partitions)):
            partition = self._partitions.get((topic.name, index))
            if partition is not None and partition.config is not config:  # most changes are of in-sync sets
                partition.log.config = of_log
                partition.configure(config)

    def _open_topic(self, topic: TopicImage, at_once: float = inf) -> int:
        """How many new partitions were opened; those beyond `at_once` are due."""
        self._names[topic.topic_id] = topic.name
        self._topics[topic.name] = topic
        opened = 0
        for index, state in enumerate(topic.partitions):
            key = topic.name, index
            if self._node_id not in state.replicas:
                if self.is_online(key) or key in self._offline:
                    logger.info("%s-%d has its replicas elsewhere now", topic.name, index)
                    self._drop(topic.name, index)
            elif key in self._partitions or opened < at_once:
                opened += key not in self._partitions
                self._openings.discard(key)
                self._open_partition(topic, index)
            else:
                self._openings.add(key)
        return opened

    def _open_due(self, key: Key) -> None:
        topic, index = key
        self._open_partition(self._topics[topic], index)

    def _open_partition(self, topic: TopicImage, index: int) -> None:
        """Opens the partition unless it is open, and gives it the role that the image says."""
        key = topic.name, index
        partition = self._partitions.get(key)
        if partition is None:
            place = self._place_for(key, topic.partitions[index])
            if place is None:
                return
            try:
                partition = self._open(place, topic, index)
            except (KafkaError, OSError, CorruptCheckpoint) as error:
                self._leave_unopened(topic, index, error)
                cause = error.__cause__ if isinstance(error, KafkaError) else error
                if isinstance(cause, OSError):
                    place.suspect(cause)
                return
            self._unopened.pop(key, None)
            self._partitions[key] = partition
        self._roles.apply(partition, topic.partitions[index])

    def _place_for(self, key: Key, state: PartitionState) -> DataDirectory | None:
        """The directory of the partition, chosen if it is a new one; None if it is offline."""
        if key in self._offline:
            return None
        if (place := self._places.get(key)) is not None:
            return place
        if self._node_id in state.offline and (offline := self.directories.offline):
            paths = ", ".join(directory.path for directory in offline)
            self._offline[key] = KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"{key[0]}-{key[1]} was in a data directory that cannot be used: {paths}"
            )
            return None
        remembering = None if self._is_loaded else self.directories.remembering(key)
        try:
            place = remembering or self.directories.for_new_partition()
        except KafkaError as error:
            self._offline[key] = error
            return None
        place.partition_count += 1
        self._places[key] = place
        return place

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

    def _open(self, place: DataDirectory, topic: TopicImage, index: int) -> Partition:
        """Raises KafkaError KAFKA_STORAGE_ERROR, OSError, CorruptCheckpoint."""
        config = self._config.topic(topic.configs)
        log = place.open_log(topic, index, log_config(config))
        log.on_disk_error = partial(self._disk_failed, log, place)
        if place.lacks_the_newest and not self._is_last(topic.partitions[index]):
            # Not by where the first file begins: names may be lost, too, and those of later files not.
            log.truncate_to(min(log.recovery_point, place.checkpoints.certain_offset((topic.name, index))))
        return Partition(
            topic.name,
            topic.topic_id,
            index,
            log,
            config,
            self._host,
            self._owner,
            place.checkpoints.high_watermarks.get((topic.name, index), 0),
        )

    def _is_last(self, state: PartitionState) -> bool:
        """Whether nobody else may be asked for what is missing here."""
        return self._node_id in (*state.isr, *state.elr)

    def _delete_topic(self, topic: TopicImage, *, is_kept: bool = False) -> None:
        self._names.pop(topic.topic_id, None)
        self._topics.pop(topic.name, None)
        for index in range(len(topic.partitions)):
            self._drop(topic.name, index, is_kept=is_kept)
        self.written.tidy()

    def _drop(self, topic: str, index: int, *, is_kept: bool = False) -> None:
        """Closes a partition and removes its directory, or moves it aside; its checkpoints are to be tidied then."""
        key = topic, index
        for directory in self.directories.online:
            directory.forget(key)
        self._openings.discard(key)
        unopened = self._unopened.pop(key, None)
        partition = self._partitions.pop(key, None)
        self._offline.pop(key, None)
        if partition is not None:
            self._roles.remove(partition)
            partition.close()
            partition.log.drop()
        elif unopened is None:
            return
        place = self._places.pop(key)
        place.partition_count -= 1
        try:
            (place.set_aside if is_kept else place.remove)(key)
        except OSError as error:
            logger.error(
                "the directory %s-%d of a dropped partition could not be renamed and stays: %s", topic, index, error
            )
            place.suspect(error)

    # -- a directory that fails -----------------------------------------------------------------------------------

    def _directory_failed(self, directory: DataDirectory) -> None:
        """What lies in it is offline from here on."""
        error = KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR, f"the data directory {directory.path} has failed: {directory.failure}"
        )
        keys = [key for key, place in self._places.items() if place is directory]
        for key in keys:
            del self._places[key]
            unopened = self._unopened.pop(key, None)
            partition = self._partitions.pop(key, None)
            if partition is not None:
                self._roles.remove(partition)
                partition.close(error)
                with suppress(OSError):  # there is nothing left that this could tell
                    partition.log.close_without_flush()
                self._failed.append(partition.log)
            elif unopened is None:
                continue  # not ours, but on the disk
            self._offline[key] = error
        self.on_offline(directory)

    def _disk_failed(self, log: Log, place: DataDirectory, error: OSError) -> None:
        place.suspect(error)
        if log.condition.is_given_up:
            self.has_given_up = True
            self.on_given_up()

    def suspect(self, partition: Partition, error: OSError) -> None:
        """Something of the partition has failed: is it all of its directory?"""
        self.place(partition).suspect(error)

    # -- log start ----------------------------------------------------------------------------------------------

    async def delete_records(self, partition: Partition, offset: int) -> None:
        """Moves the log start, on disk before it returns: records below it never come back here (KIP-107).

        Raises KafkaError: KAFKA_STORAGE_ERROR, UNKNOWN_TOPIC_OR_PARTITION when the topic was deleted meanwhile,
        NOT_LEADER_OR_FOLLOWER when this replica was given away, or cut.
        """
        try:
            await self._log_starts.move(partition, offset)
        except KafkaError:
            self.find(partition.topic, partition.index)  # knows better what has become of one that is not there
            raise

    # -- all of them ---------------------------------------------------------------------------------------------

    def check_in_sync(self) -> None:
        """Has the in-sync sets written anew of those that this broker leads and a follower of which lags behind."""
        for partition in self._partitions.values():
            self._roles.check_in_sync(partition)

    async def settle(self) -> None:
        """Syncs every log in helper threads, a few at a time, so that `close`, which blocks, has next to nothing to
        wait for. Returns when no log is being synced. For logs that take no more appends; a failure is logged."""
        waiting = iter(list(self._partitions.values()))

        async def lane() -> None:
            for partition in waiting:
                if partition in self:
                    await partition.durability.settle()

        await run_together([lane() for _ in range(LANES)], "sync the logs")

    # -- end ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Flushes and closes every log, and says so in the directory. Blocks: `settle` comes before it. What cannot be
        flushed is logged; the next start recovers it."""
        for directory in self.directories:
            directory.stop_watching()
        unclean = {self._places[key] for key in self._unopened}
        for key, partition in self._partitions.items():
            self._roles.remove(partition)
            partition.close()
            try:
                partition.log.close()
            except (KafkaError, OSError) as error:
                unclean.add(self._places[key])
                logger.error("%s-%d could not be flushed: %s", partition.topic, partition.index, error)
        for log in self._failed:
            log.durability.leave_mark()
        self.written.close([each for each in self.directories if self._is_loaded and each not in unclean])
        self._partitions.clear()
        self._unopened.clear()
        self._openings.clear()


def _nothing(directory: DataDirectory) -> None: ...


def _nobody() -> None: ...
