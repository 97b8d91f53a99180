"""Brokers in the caller's event loop, with one metadata store in memory: what `async with cluster()` runs.

They share the loop with the test, so that a debugger sees all of it in one thread; none can be killed or paused alone.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from odradek.broker.config.settings import Settings
from odradek.broker.launch.stopping import drain_all
from odradek.broker.server import Broker
from odradek.testing.broker_state import BrokerState, WrongBrokerState
from odradek.testing.faults.cluster_faults import ClusterFaults
from odradek.testing.hosting import inside
from odradek.testing.hosting.broker_place import BrokerPlace
from odradek.testing.hosting.gate import Gate
from odradek.testing.hosting.hosted_broker import HELPER_THREADS
from odradek.testing.hosting.hosted_environment import HostedEnvironment
from odradek.testing.hosting.kept_metadata import KeptMetadata
from odradek.testing.hosting.shared_memory import SharedMemory, SharedMemoryStore
from odradek.testing.hosting.shifted_clock import ShiftedClock
from odradek.testing.running_cluster import servers_of


class LoopBroker:
    """One broker in the running loop: started, stopped, and started again."""

    def __init__(self, place: BrokerPlace, memory: SharedMemory, clock: ShiftedClock) -> None:
        self.place: Final = place
        self._memory = memory
        self._clock = clock
        self._environment: HostedEnvironment | None = None
        self._store: SharedMemoryStore
        self._broker: Broker

    @property
    def node_id(self) -> int:
        return self.place.node_id

    @property
    def address(self) -> str:
        """HOST:PORT, which stays the same once it has been started."""
        return self.place.address

    @property
    def state(self) -> BrokerState:
        return BrokerState.DOWN if self._environment is None else BrokerState.RUNNING

    @property
    def broker(self) -> Broker:
        """Raises WrongBrokerState."""
        if self._environment is None:
            raise WrongBrokerState(f"broker {self.node_id} is down")
        return self._broker

    async def start(self) -> None:
        """Returns when it accepts connections. Raises WrongBrokerState, and what `Broker.start` raises."""
        if self._environment is not None:
            raise WrongBrokerState(f"broker {self.node_id} cannot be started: it is running")
        loop = asyncio.get_running_loop()
        environment = HostedEnvironment(loop, Gate(), self._clock, has_device=self.place.has_device)
        environment.allow_helper_threads(HELPER_THREADS)
        self._store, place = self._memory.open(loop), self.place
        broker = place.make_broker(environment, place.files(), self._store)
        try:
            await broker.start()
        except BaseException:
            await self._close(environment)
            raise
        place.keep_port(broker)
        self._environment, self._broker = environment, broker

    async def stop(self, *, all_stop: bool = False) -> None:
        """A clean stop: others lead what it led, if they can. `all_stop`: the whole cluster does. Raises
        WrongBrokerState."""
        if self._environment is None:
            raise WrongBrokerState(f"broker {self.node_id} cannot be stopped: it is down")
        environment, self._environment = self._environment, None
        await self._broker.stop(all_stop=all_stop)
        await self._close(environment)

    async def _close(self, environment: HostedEnvironment) -> None:
        await self._store.close()
        environment.end_helper_threads()


class ClusterInLoop:
    """See the module."""

    def __init__(self, settings: Sequence[Settings], data_dir: str | None) -> None:
        """`data_dir`: where the brokers' directories are; None: in memory. Raises as `KeptMetadata`."""
        self._kept = None if data_dir is None else KeptMetadata(data_dir)
        self.memory: Final = SharedMemory() if self._kept is None else self._kept.memory
        self.clock: Final = ShiftedClock()
        self.faults: Final = ClusterFaults()
        self.brokers: Final = {
            each.node_id: LoopBroker(BrokerPlace(each, self.faults), self.memory, self.clock) for each in settings
        }

    @property
    def bootstrap_servers(self) -> str:
        """HOST:PORT of all brokers, whether they run or not, with commas between them."""
        return servers_of(self.brokers.values())

    @property
    def running_servers(self) -> str:
        """Of those that run."""
        return servers_of(self._running)

    async def start(self) -> None:
        """Returns when all accept connections and know one another. Raises what `Broker.start` raises, and then none of
        them runs."""
        try:
            for broker in self.brokers.values():
                await broker.start()
            await self.settle()
        except BaseException:
            await self.stop()
            raise

    async def start_again(self, node_id: int) -> None:
        """Its former registration is taken over. Returns when all know that it is there."""
        await self.brokers[node_id].start()
        await self.settle()

    async def settle(self) -> None:
        """Returns when all brokers that run have heard of everything that the metadata store has by now."""
        revision = self.memory.revision
        for broker in self._running:
            await broker.broker.context.metadata.applied(revision)

    async def create_topics(
        self, topics: Mapping[str, int], replication_factor: int = -1, config: Mapping[str, str] | None = None
    ) -> None:
        """As `HostedCluster.create_topics`."""
        first = self._running[0] if self._running else next(iter(self.brokers.values()))
        await inside.create_topics(first.broker, topics, replication_factor, config)
        await self.settle()

    async def shift_clock(self, by_s: float) -> None:
        """As `HostedCluster.shift_clock`."""
        self.clock.shift(by_s)
        for broker in self._running:
            await inside.clock_moved(broker.broker)

    async def empty(self, kept: Mapping[str, int]) -> None:
        """As `HostedCluster.empty`."""
        self.faults.table.clear()
        for work in (inside.loaded, inside.end_transactions):
            for broker in self._running:
                await work(broker.broker)
        await inside.renew_topics(self._running[0].broker, self.memory, kept)
        await self.settle()
        for broker in self._running:
            await inside.delete_groups(broker.broker)
        self.faults.recorder.clear()

    def name_by_id(self, topic_id: bytes) -> str:
        """Of a topic, as any broker that runs knows it; "" where there is none."""
        names = (each.broker.context.metadata.image.name_by_id(topic_id) for each in self._running)
        return next((name for name in names if name), "")

    async def stop(self) -> None:
        """All stop: nobody takes over from anybody, and what they have in files is complete."""
        self.faults.table.clear()  # else brokers would wait for requests that are held
        running = self._running
        await drain_all([each.broker for each in running])
        for each in running:
            await each.stop(all_stop=True)
        if self._kept is not None:
            self._kept.close()

    @property
    def _running(self) -> list[LoopBroker]:
        return [broker for broker in self.brokers.values() if broker.state is BrokerState.RUNNING]
