"""Brokers without logs and sockets: what each of them knows, its registration, and its controller, over one store.

Each has its own way to the store (`tests/broker/cluster/faulty_store.py`), so that one can be cut off, blind or paused
while the others go on. Time is virtual.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from odradek.broker.cluster.image import ClusterImage, Delta
from odradek.broker.cluster.keys import PartitionState, partition_key
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.store import Txn
from odradek.broker.cluster.topics import create_topic
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.controller.controller import Controller
from odradek.broker.membership.image_follower import ImageFollower
from odradek.broker.membership.registration import Identity, Registration
from odradek.runtime.tasks import Tasks
from tests.broker.cluster.faulty_store import FaultyStore
from tests.broker.support import stored_partition
from tests.client.virtual_time import VirtualEnvironment, virtual_loop

LEASE_MS = 2_000
TOPIC_ID = bytes(range(16))


class Member:
    """One broker."""

    def __init__(self, store: MemoryStore, node_id: int, config: BrokerConfig) -> None:
        self.node_id = node_id
        self.store = FaultyStore(store)
        self.environment = VirtualEnvironment(seed=node_id)
        self.config = config
        self.metadata = ImageFollower(self.store, ClusterImage())
        identity = Identity(node_id, {"PLAINTEXT": (f"10.0.0.{node_id}", 9092)}, (bytes([node_id]) * 16,))
        self.registration = Registration(self.store, self.environment, identity, LEASE_MS)
        self.metadata.subscribe(self._follow)
        self.controller = Controller(self.metadata, config, self.registration, self.environment)
        self.registration.on_renewed = self.controller.wake
        self.tasks = Tasks(self.environment.loop)
        self.is_heard = True
        """In place of heartbeats: the controller answers at once."""

    def _follow(self, image: ClusterImage, delta: Delta) -> None:
        if delta.broker_configs:
            self.config.update(image.configs_of_broker(None), image.configs_of_broker(self.node_id))
        if delta.brokers:
            self.registration.follow(image)
            if self.is_heard:
                self.registration.controller_answered()

    async def join(self, *, runs: bool = True) -> None:
        """Registers and follows, and with `runs` decides if it is elected."""
        await self.registration.register()
        self.tasks.start(self.metadata.follow(self.environment), "follow the metadata")
        await self.metadata.applied(self.registration.epoch)
        self.tasks.start(self.registration.keep(), "stay registered")
        if runs:
            self.tasks.start(self.controller.run(), "control")

    async def crash(self) -> None:
        """Its process is gone; its lease ends by itself."""
        self.store.see()
        await self.tasks.close()


class Brokers:
    """Some brokers and their store."""

    def __init__(self, count: int, min_insync: int, topic_settings: dict[str, str]) -> None:
        self.store = MemoryStore()
        self.min_insync = min_insync
        self.members: dict[int, Member] = {}
        self.gone: list[Member] = []
        self._settings = {"min.insync.replicas": str(min_insync), **topic_settings}
        for node_id in range(1, count + 1):
            self.make(node_id)

    async def reborn(self, node_id: int) -> Member:
        """Its process is killed and started again."""
        await self.members[node_id].crash()
        member = self.make(node_id)
        await member.join()
        return member

    def make(self, node_id: int) -> Member:
        if (former := self.members.get(node_id)) is not None:
            self.gone.append(former)
        member = self.members[node_id] = Member(self.store, node_id, BrokerConfig(self._settings))
        return member

    def __getitem__(self, node_id: int) -> Member:
        return self.members[node_id]

    async def create(self, *states: PartitionState, topic: str = "orders", topic_id: bytes = TOPIC_ID) -> None:
        await create_topic(self.store, topic, topic_id, list(states), {})
        await settle()

    async def state(self, index: int = 0, topic: str = "orders") -> PartitionState:
        return await stored_partition(self.store, topic, index)

    async def states(self) -> dict[tuple[str, int], PartitionState]:
        return {
            (topic.name, index): state
            for topic in (await self.image()).topics.values()
            for index, state in enumerate(topic.partitions)
        }

    async def write(self, state: PartitionState, index: int = 0) -> None:
        """As a leader does, or somebody else."""
        await self.store.commit(Txn(put={partition_key("orders", index): state.encode()}))

    async def image(self) -> ClusterImage:
        return ClusterImage.from_snapshot(await self.store.read("/"))

    def active(self) -> list[int]:
        """Who takes itself for the controller."""
        return [node_id for node_id, member in self.members.items() if member.controller.is_active]

    async def close(self) -> None:
        for member in (*self.members.values(), *self.gone):
            member.store.is_cut = False
            await member.crash()
        for member in (*self.members.values(), *self.gone):
            await member.store.close()


@asynccontextmanager
async def brokers(
    count: int = 3, *, joining: Sequence[int] | None = None, min_insync: int = 1, **settings: str
) -> AsyncGenerator[Brokers]:
    """`count` brokers, of which those `joining`, by default all, have joined in order. `settings`: with `_` for `.`."""
    cluster = Brokers(count, min_insync, {name.replace("_", "."): value for name, value in settings.items()})
    try:
        for node_id in range(1, count + 1) if joining is None else joining:
            await cluster[node_id].join()
            await settle()
        yield cluster
    finally:
        await cluster.close()


async def settle() -> None:
    await virtual_loop().settle()


async def sleep_ms(delay_ms: float) -> None:
    await asyncio.sleep(delay_ms / 1000)
