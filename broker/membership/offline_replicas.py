"""Tells the cluster which of this broker's replicas lie in a data directory that has failed (KIP-112, KIP-858).

In Kafka a broker names the directory, and the controller looks up what is in it. Here the broker writes it to the
partitions themselves (`PartitionState.offline`), with nobody in between: it leaves their in-sync sets, and the
controller finds them without a leader. When a replica can be used again, after a start with its directory, or anew
without what was in it, that is taken back in the same way.

A replica whose log could not be synced is given up likewise, if others have what it has: the kernel may have dropped
what it did not write. It reads on, and a start finds out what is left (log/recovery.py). So is one in which a compacted
segment got only half of its place: a start gives it the rest.

It compares what the metadata says with what is here, at every change of either, so whoever wrote in between, and
whatever became of an answer, it comes to the same end. Each write expects the partition as it was seen, its leader's
registration (partition_writes.py), and this broker's present one.
"""

import logging
from collections.abc import Iterator
from contextlib import suppress

from odradek.broker.cluster.image import ClusterImage, Delta
from odradek.broker.cluster.keys import broker_key, partition_key
from odradek.broker.cluster.partition_changes import with_directory, without_directory, without_given_up
from odradek.broker.cluster.partition_writes import PartitionWrite, commits, with_epochs
from odradek.broker.cluster.store import Conflict, StoreClosed
from odradek.broker.cluster.topic_image import TopicImage
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.membership.image_follower import ImageFollower
from odradek.broker.membership.registration import Registration
from odradek.broker.partitions.table import Partitions
from odradek.runtime.environment import Environment
from odradek.runtime.signal import Signal

logger = logging.getLogger(__name__)

RETRY_MS = 100.0


class OfflineReplicas:
    """What the metadata says of this broker's directories, kept true."""

    def __init__(
        self,
        metadata: ImageFollower,
        config: BrokerConfig,
        registration: Registration,
        environment: Environment,
        partitions: Partitions,
    ) -> None:
        self._metadata = metadata
        self._config = config
        self._registration = registration
        self._environment = environment
        self._partitions = partitions
        self._due: dict[str, None] = {}  # names of topics to look at
        self._changes = Signal()
        self._is_silent = False
        metadata.subscribe(self._follow)

    def look_at_all(self) -> None:
        """A directory has failed, or a log, or the broker has started."""
        self._due |= dict.fromkeys(self._metadata.image.topics)
        self._wake()

    def _follow(self, image: ClusterImage, delta: Delta) -> None:
        if due := [topic.name for topic in (*delta.created, *delta.changed) if self._concerns_us(topic)]:
            self._due |= dict.fromkeys(due)
            self._wake()

    def _concerns_us(self, topic: TopicImage) -> bool:
        partitions = self._partitions
        return bool(partitions.offline) or partitions.has_given_up or any(state.offline for state in topic.partitions)

    def _wake(self) -> None:
        self._changes.give()

    async def run(self) -> None:
        """Writes what is due, for as long as the broker runs."""
        try:
            while True:
                seen = self._changes.count
                if await self._has_written():
                    await self._changes.after(seen)
        except StoreClosed:
            return

    async def _has_written(self) -> bool:
        """Whether nothing is due any more. Raises StoreClosed."""
        due, self._due = self._due, {}
        try:
            await self._write(due)
        except Conflict:
            self._due = due | self._due
            with suppress(TimeoutError):  # our image is behind, or the registration is being renewed
                await self._metadata.revision.reach(self._metadata.image.revision + 1, RETRY_MS)
            return False
        except OSError as error:
            self._due = due | self._due
            if not self._is_silent:
                logger.warning("that replicas are offline cannot be written yet, and is tried again: %s", error)
            self._is_silent = True
            await self._environment.sleep(RETRY_MS)
            return False
        self._is_silent = False
        return True

    async def _write(self, due: dict[str, None]) -> None:
        """Raises Conflict, OSError, StoreClosed."""
        image, node_id = self._metadata.image, self._registration.node_id
        writes = [write for name in due for write in self._changed(image, name)]
        for txn in commits(writes, image, {broker_key(node_id): self._registration.epoch}):
            await self._metadata.store.commit(txn)
        if writes:
            offline = sum(node_id in write.after.offline for write in writes)
            logger.warning(
                "broker %d: %d replicas are offline since a data directory, a sync or a compaction failed, %d are back",
                *(node_id, offline, len(writes) - offline),
            )

    def _changed(self, image: ClusterImage, name: str) -> Iterator[PartitionWrite]:
        """The partitions of a topic of which the metadata says what is not so."""
        topic = image.topics.get(name)
        if topic is None:
            return
        node_id = self._registration.node_id
        min_insync = self._config.topic(topic.configs).min_insync_replicas
        for index, before in enumerate(topic.partitions):
            after = before
            if node_id not in before.replicas:
                continue
            if (name, index) in self._partitions.offline:
                after = without_directory(before, node_id, min_insync)
            elif self._partitions.is_given_up((name, index)):
                after = without_given_up(before, node_id, min_insync)
            elif self._partitions.is_online((name, index)):
                after = with_directory(before, node_id)
            if after is not before:
                after = with_epochs(before, after, image)
                yield PartitionWrite(partition_key(name, index), before, after)
