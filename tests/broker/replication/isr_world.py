"""A leader with its partitions, and what it writes about them to a store on which things happen.

Broker 0 leads; the others fetch when the test says so. The image follows the store when the test says so.
"""

from collections.abc import Collection

from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import (
    BrokerState,
    PartitionState,
    broker_key,
    encode_stopping,
    partition_key,
    stopping_key,
)
from odradek.broker.cluster.store import Txn
from odradek.broker.cluster.topics import create_topic
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.config import LogConfig
from odradek.broker.log.log import Log
from odradek.broker.replica.partition import Partition
from odradek.broker.replica.partition_listener import Alone
from odradek.broker.replication.isr_writer import IsrWriter
from odradek.broker.replication.roles import Roles
from odradek.runtime.tasks import Tasks
from tests.broker.alone import NobodyFetches, hosted
from tests.broker.cluster.faulty_store import FaultyStore
from tests.broker.support import append, batch, stored_partition
from tests.client.virtual_time import VirtualEnvironment, virtual_loop

TOPIC_ID = bytes(range(16))
LAG_MS_MAX = 30_000.0
LEADER = 0
BROKERS = (0, 1, 2, 3)


class InSync(Alone):
    """A partition's listener that knows the others by what the writer of in-sync sets knows."""

    def __init__(self, writer: IsrWriter) -> None:
        self._writer = writer

    def isr_outdated(self, partition: Partition) -> None:
        self._writer.wake(partition)

    def may_join(self, broker_id: int, broker_epoch: int) -> bool:
        return self._writer.may_join(broker_id, broker_epoch)

    def live_replicas(self, partition: Partition) -> Collection[int]:
        return self._writer.live_replicas(partition)


class IsrWorld:
    """Broker 0's side of the in-sync sets."""

    def __init__(self, min_insync: int = 1) -> None:
        self.environment = VirtualEnvironment()
        self.tasks = Tasks(self.environment.loop)
        self.store = FaultyStore()
        self.image = ClusterImage()
        self.epochs: dict[int, int] = {}
        self.own_epoch = 0
        self.writer = IsrWriter(
            self.store,
            LEADER,
            self.environment,
            self.tasks,
            image=lambda: self.image,
            broker_epoch=lambda: self.own_epoch,
        )
        self.fetchers = NobodyFetches()
        self.roles = Roles(LEADER, self.environment, self.writer, self.fetchers, {})
        self.config = BrokerConfig({"min.insync.replicas": str(min_insync)}).topic({})
        self.partitions: list[Partition] = []

    async def begin(self, *states: PartitionState) -> None:
        for broker_id in BROKERS:
            await self.register(broker_id)
        self.own_epoch = self.epochs[LEADER]
        await create_topic(self.store.store, "orders", TOPIC_ID, list(states), {})
        host = hosted(self.environment, self.tasks, LEADER, LAG_MS_MAX)
        for index in range(len(states)):
            log = Log.open(MemoryDisk(), f"data/orders-{index}", LogConfig(), 0)
            partition = Partition("orders", TOPIC_ID, index, log, self.config, host, InSync(self.writer))
            self.partitions.append(partition)
        await self.see()

    @property
    def partition(self) -> Partition:
        return self.partitions[0]

    # -- the cluster ---------------------------------------------------------------------------------------------

    async def register(self, broker_id: int) -> None:
        state = BrokerState(broker_id, {"PLAINTEXT": (f"10.0.0.{broker_id}", 9092)})
        put = {broker_key(broker_id): state.encode()}
        self.epochs[broker_id] = await self.store.store.commit(Txn(put=put, delete=(stopping_key(broker_id),)))

    async def unregister(self, broker_id: int) -> None:
        """It is gone."""
        await self.store.store.commit(Txn(delete=(broker_key(broker_id),)))

    async def stop(self, broker_id: int) -> None:
        put = {stopping_key(broker_id): encode_stopping(self.epochs[broker_id])}
        await self.store.store.commit(Txn(put=put))

    async def see(self) -> None:
        """The image comes as far as the store, and the partitions hear of it."""
        self.image = ClusterImage.from_snapshot(await self.store.store.read("/"))
        for partition, state in zip(self.partitions, self.image.topics["orders"].partitions, strict=True):
            self.roles.apply(partition, state)
            partition.acknowledgements.update()

    async def stored(self, index: int = 0) -> PartitionState:
        return await stored_partition(self.store.store, index=index)

    async def write(self, state: PartitionState, index: int = 0) -> None:
        """As the controller does."""
        key = partition_key("orders", index)
        await self.store.store.commit(Txn(expect={key: state.revision}, put={key: state.encode()}))

    # -- the partition -------------------------------------------------------------------------------------------

    def append(self, index: int = 0) -> int:
        """Appends a record; returns the end of the log."""
        append(self.partitions[index], batch(b"a"))
        return self.partitions[index].log.log_end_offset

    def fetch(self, broker_id: int, offset: int | None = None, index: int = 0) -> None:
        """By default the follower asks for what comes behind all there is."""
        partition = self.partitions[index]
        end = partition.log.log_end_offset if offset is None else offset
        partition.follower_fetched(broker_id, self.epochs[broker_id], end)

    async def close(self) -> None:
        await self.tasks.close()
        for partition in self.partitions:
            partition.close()
        await self.store.close()


async def settle() -> None:
    await virtual_loop().settle()
