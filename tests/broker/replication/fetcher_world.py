"""A follower and its leaders in memory, for the tests of fetchers.

A busy loop, a task or a timer left behind, and a connection left open fail every test that uses it.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.log import Log
from odradek.broker.replication.fetch_requests import Replica
from odradek.broker.replication.fetchers import Fetchers
from odradek.runtime.tasks import Tasks
from tests.broker.log.logs import T0, batch, open_log, read_all
from tests.broker.replication.fake_leader import FakeLeader, connecting
from tests.broker.replication.replicas_world import FollowingReplica, Led
from tests.client.memory_network import MemoryEnvironment, MemoryNetwork

EPOCH = 3
BROKER_EPOCH = 77
NO_SETTINGS: Mapping[str, str] = {}


class World:
    """One leader (two where a test asks for it), one follower, partitions of the topic `orders`."""

    def __init__(self, settings: Mapping[str, str], slots: int) -> None:
        self.network = MemoryNetwork()
        self.environment = MemoryEnvironment(self.network)
        self.tasks = Tasks(self.environment.loop)
        self.leader = FakeLeader(self.network, 1, slots)
        self.other = FakeLeader(self.network, 2)
        self.config = BrokerConfig(settings)
        replica = Replica(0, lambda: BROKER_EPOCH)
        connect = connecting(self.environment, {1: self.leader, 2: self.other})
        self.fetchers = Fetchers(replica, connect, self.environment, self.config)
        self.replicas: dict[int, FollowingReplica] = {}

    def lead(self, index: int = 0, *, log: Log | None = None, epoch: int = EPOCH) -> Led:
        led = Led(log or open_log(MemoryDisk()), epoch)
        self.leader.lead(index, led)
        return led

    def follow(self, index: int = 0, *, log: Log | None = None, epoch: int = EPOCH) -> FollowingReplica:
        replica = FollowingReplica(log or open_log(MemoryDisk()), epoch, index)
        self.replicas[index] = replica
        self.fetchers.follow(replica, 1)
        return replica

    def pair(self, index: int = 0) -> FollowingReplica:
        self.lead(index)
        return self.follow(index)

    def is_equal(self, index: int = 0) -> bool:
        led = self.leader.led[b"o" * 16, index]
        return read_all(self.replicas[index].log) == read_all(led.log)

    async def run(self, duration_ms: float = 100.0) -> None:
        """Lets so much virtual time pass."""
        await self.environment.sleep(duration_ms)


@asynccontextmanager
async def world(settings: Mapping[str, str] = NO_SETTINGS, slots: int = 100) -> AsyncGenerator[World]:
    it = World(settings, slots)
    try:
        yield it
    finally:
        await it.fetchers.close()
        await it.tasks.close()
        it.leader.stop()
        it.other.stop()
        it.network.check_closed()
        it.network.stop()


def data(number: int = 0, size_bytes: int = 10) -> bytes:
    return batch(T0 + number, value=b"v" * size_bytes)
