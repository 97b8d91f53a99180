"""The fetchers of this broker, one for each broker that leads something it follows (ReplicaFetcherManager.scala).

Kafka may have several for each leader (`num.replica.fetchers`), to use several threads and connections; here all is one
thread. A fetcher without partitions is ended at once.
"""

from asyncio import Task
from typing import NamedTuple

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.replica.quota import ReplicationQuota
from odradek.broker.replication.fetch_requests import Replica
from odradek.broker.replication.fetcher import Connect, Fetcher
from odradek.broker.replication.following import FollowerReplica
from odradek.broker.replication.leader_session import PartitionId
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks


class Running(NamedTuple):
    """A fetcher, and its task."""

    fetcher: Fetcher
    task: Task[None]


class Fetchers:
    """See the module."""

    def __init__(self, replica: Replica, connect: Connect, environment: Environment, config: BrokerConfig) -> None:
        self._replica = replica
        self._connect = connect
        self._environment = environment
        self._config = config
        self._tasks = Tasks(environment.loop)
        self._running: dict[int, Running] = {}
        self._leaders: dict[PartitionId, int] = {}
        self._quota = ReplicationQuota(config.follower_replication_throttled_rate, environment.monotonic_ms())

    def __len__(self) -> int:
        """How many leaders are fetched from."""
        return len(self._running)

    def configure(self) -> None:
        """Takes over what the broker's configuration says now."""
        self._quota.configure(self._config.follower_replication_throttled_rate, self._environment.monotonic_ms())

    def follow(self, partition: FollowerReplica, leader_id: int) -> None:
        """Fetches the partition from this leader, at the partition's present leader epoch; from no other any more."""
        key = partition.topic_id, partition.index
        if self._leaders.get(key, leader_id) != leader_id:
            self.stop(partition)
        self._leaders[key] = leader_id
        if leader_id not in self._running:
            fetcher = Fetcher(leader_id, self._replica, self._connect, self._environment, self._config, self._quota)
            self._running[leader_id] = Running(
                fetcher, self._tasks.start(fetcher.run(), f"fetch from broker {leader_id}")
            )
        self._running[leader_id].fetcher.add(partition)

    def stop(self, partition: FollowerReplica) -> None:
        """Nothing more is applied to it from now on."""
        key = partition.topic_id, partition.index
        leader_id = self._leaders.pop(key, None)
        if leader_id is None:
            return
        fetcher, task = self._running[leader_id]
        fetcher.remove(key)
        if not len(fetcher):
            del self._running[leader_id]
            task.cancel()

    def changed(self, partition: FollowerReplica) -> None:
        """Its log start on the disk has moved: the leader is told with the next fetch."""
        key = partition.topic_id, partition.index
        if (leader_id := self._leaders.get(key)) is not None:
            self._running[leader_id].fetcher.changed(key)

    async def close(self) -> None:
        """Ends all of them, and returns when nothing of them runs any more."""
        self._leaders.clear()
        self._running.clear()
        await self._tasks.close()
