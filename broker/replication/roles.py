"""Gives each partition of this broker the role that the metadata image says: leader, follower, or neither.

A new leader stops fetching from the old one before it serves, and begins an epoch of its own. A broker that was just
started leads nothing at an epoch that it saw at its start: that one belongs to its former life, and the controller
gives it a new one first (controller/decisions.py).
"""

import logging
from collections.abc import Mapping
from typing import Protocol

from odradek.broker.cluster.keys import NO_LEADER, PartitionState
from odradek.broker.replica.partition import Partition
from odradek.broker.replica.replicas import Replicas
from odradek.broker.replication.isr_writer import IsrWriter
from odradek.protocol.errors import KafkaError
from odradek.runtime.environment import Environment

logger = logging.getLogger(__name__)

Key = tuple[bytes, int]
"""Topic id and partition index: a topic that is created again under its name begins with epochs of its own."""


class Fetchers(Protocol):
    """Who fetches for the followers here."""

    def follow(self, partition: Partition, leader_id: int) -> None:
        """From now on the partition's log follows that broker, at the partition's `leader_epoch`, and nobody else."""
        ...

    def stop(self, partition: Partition) -> None:
        """Nothing more is appended to the partition, not even what is on its way."""
        ...

    def changed(self, partition: Partition) -> None:
        """Its log start on the disk has moved: its leader is to hear of that."""
        ...


class Roles:
    """The roles of one broker's partitions."""

    def __init__(
        self,
        node_id: int,
        environment: Environment,
        isr_writer: IsrWriter,
        fetchers: Fetchers,
        epochs_at_start: Mapping[Key, int],
    ) -> None:
        """`epochs_at_start`: the leader epochs that the store had before this broker registered."""
        self._node_id = node_id
        self._environment = environment
        self.isr_writer = isr_writer
        self._fetchers = fetchers
        self._epochs_at_start = epochs_at_start

    def apply(self, partition: Partition, state: PartitionState) -> None:
        """The partition takes the role that `state` says."""
        if state.leader_epoch > partition.leader_epoch:
            if state.leader == self._node_id and not self._is_of_former_life(partition, state):
                self._fetchers.stop(partition)
                now_ms = self._environment.monotonic_ms()
                replicas = Replicas(self._node_id, state.replicas, state.isr, state.elr, now_ms=now_ms)
                try:
                    partition.become_leader(state.leader_epoch, replicas)
                except KafkaError as error:  # the disk: a truncation could not be completed
                    logger.error("%r cannot lead: %s", partition, error)
                    partition.become_follower(NO_LEADER, state.leader_epoch)
            else:
                leader_id = NO_LEADER if state.leader == self._node_id else state.leader
                self._fetchers.stop(partition)
                partition.become_follower(leader_id, state.leader_epoch)
                if leader_id != NO_LEADER:
                    self._fetchers.follow(partition, leader_id)
        partition.learn(state)

    def remove(self, partition: Partition) -> None:
        """The partition goes."""
        self._fetchers.stop(partition)

    def log_start_moved(self, partition: Partition) -> None:
        """It is on the disk: whoever leads the partition is to hear of it."""
        self._fetchers.changed(partition)

    def check_in_sync(self, partition: Partition) -> None:
        """Has the in-sync set written anew if a follower lags behind. To be called now and then for each leader: the
        high watermark, too, may have waited for one that does not fetch any more."""
        if partition.is_leader and partition.replicas.followers and not partition.is_in_step:
            partition.acknowledgements.update()
            self.isr_writer.wake(partition)

    def _is_of_former_life(self, partition: Partition, state: PartitionState) -> bool:
        return state.leader_epoch <= self._epochs_at_start.get((partition.topic_id, partition.index), -1)
