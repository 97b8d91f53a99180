"""The shards of one internal topic on this broker: one for each partition that it leads, by key.

Told of leadership (replica/leadership.py), it begins a shard before the first request for it can arrive, and ends it
before anything else happens to the partition. Shards are loaded one after the other, in the order in which they began.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from odradek.broker.coordinator.key_partition import partition_of
from odradek.broker.coordinator.loading import load
from odradek.broker.coordinator.machine import Now, Outbox
from odradek.broker.coordinator.shard import Machine, Shard, ShardOptions, ShardState
from odradek.broker.disk.disk import Disk
from odradek.broker.replica.partition import Partition
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.runtime.tasks import Tasks

M = TypeVar("M", bound=Machine)


class Shards(Generic[M]):
    """Those of one topic."""

    __slots__ = (
        "_by_index",
        "_disk",
        "_loader",
        "_make_machine",
        "_options",
        "_partition_count",
        "_tasks",
        "_to_load",
        "topic",
    )

    def __init__(
        self,
        topic: str,
        make_machine: Callable[[Outbox], M],
        options: ShardOptions,
        partition_count: Callable[[str], int | None],
        disk: Disk,
        tasks: Tasks,
    ) -> None:
        """`partition_count`: of a topic, None where there is none of that name."""
        self.topic = topic
        self._make_machine = make_machine
        self._options = options
        self._partition_count = partition_count
        self._disk = disk
        self._tasks = tasks
        self._by_index: dict[int, Shard[M]] = {}
        self._to_load: deque[Shard[M]] = deque()
        self._loader: object | None = None

    # -- leadership -------------------------------------------------------------------------------------------------

    def leads(self, partition: Partition, leader_epoch: int) -> None:
        if partition.topic != self.topic:
            return
        shard = Shard(partition, leader_epoch, self._make_machine, self._options, self._tasks, self._load)
        self._by_index[partition.index] = shard
        self._load(shard)

    def leads_no_longer(self, partition: Partition, leader_epoch: int) -> None:
        if partition.topic != self.topic:
            return
        shard = self._by_index.get(partition.index)
        if shard is not None and shard.leader_epoch == leader_epoch:
            del self._by_index[partition.index]
            shard.end()

    def _load(self, shard: Shard[M]) -> None:
        self._to_load.append(shard)
        if self._loader is None:
            self._loader = self._tasks.start(self._load_all(), f"load what is led of {self.topic}")

    async def _load_all(self) -> None:
        try:
            while self._to_load:
                await load(self._to_load.popleft(), self._disk)
        finally:
            self._loader = None

    def stop(self) -> None:
        """The broker stops: whoever waits is told that it coordinates nothing any more."""
        while self._by_index:
            self._by_index.popitem()[1].end()

    # -- by key -----------------------------------------------------------------------------------------------------

    def index_of(self, key: str) -> int | None:
        """Of the partition that the key belongs to; None where there is no topic."""
        count = self._partition_count(self.topic)
        return None if count is None else partition_of(key, count)

    def of(self, key: str) -> Shard[M]:
        """Raises KafkaError: COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS."""
        index = self.index_of(key)
        if index is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, f"there is no {self.topic}; find the coordinator first")
        return self.at(index)

    def at(self, index: int) -> Shard[M]:
        """That of one partition. Raises as `of`."""
        shard = self._by_index.get(index)
        if shard is None:
            raise KafkaError(
                ErrorCode.NOT_COORDINATOR, f"this broker does not lead {self.topic}-{index}; find the coordinator"
            )
        shard.require_active()
        return shard

    @property
    def all(self) -> Iterable[Shard[M]]:
        """In the order of their partitions, whatever their state."""
        return (self._by_index[index] for index in sorted(self._by_index))

    def tell(self, operation: Callable[[M, Now], None]) -> None:
        """Something has happened that all active ones have to know."""
        for shard in tuple(self.all):
            if shard.state is ShardState.ACTIVE:
                shard.do(operation)
