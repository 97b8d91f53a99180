"""Several brokers in one process, one of which loses its data directory: the others go on, and so does the process."""

import asyncio
import errno
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest

from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.config.listeners import Listener
from odradek.broker.launch.cluster_settings import cluster_settings
from odradek.broker.launch.stopping import stop_all, until_stopped
from odradek.broker.server import Broker
from odradek.broker.startup_errors import BrokerFailed
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.runtime.environment import Environment
from tests.broker.failing_disk import FailingDisk
from tests.broker.wire import batch, connected, produced

WAIT_S = 20.0


class Cluster(NamedTuple):
    disk: FailingDisk
    brokers: list[Broker]
    stop: asyncio.Event


@asynccontextmanager
async def cluster(count: int) -> AsyncGenerator[Cluster]:
    """Brokers 1 and so on, each on a device of its own."""
    disk, store, environment = FailingDisk(), MemoryStore(), Environment()
    listener = Listener("PLAINTEXT", "127.0.0.1", 0)
    settings = cluster_settings(count, listener, "dir", {})
    brokers = [Broker(each, environment, disk, store=store) for each in settings]
    for broker in brokers:
        await broker.start()
    running = list(brokers)
    try:
        yield Cluster(disk, running, asyncio.Event())
    finally:
        await stop_all(running)
        await store.close()


def lose(here: Cluster, broker: Broker) -> None:
    """The device is gone, and somebody has noticed."""
    here.disk.fail(f"dir/broker-{broker.settings.node_id}")
    broker.directories.first.suspect(OSError(errno.EIO, "gone"))


async def create(broker: Broker) -> None:
    """A topic of three partitions with all the replicas that there can be."""
    topic = CreatableTopic(name="orders", num_partitions=3, replication_factor=-1, assignments=[], configs=[])
    async with connected(broker) as client:
        answer = await client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
        assert answer.topics[0].error_code == ErrorCode.NONE


async def until_led_by(broker: Broker, leaders: set[int]) -> None:
    """Returns when the partitions are led by these brokers alone, all of them in sync."""
    metadata = broker.context.metadata
    async with asyncio.timeout(WAIT_S):
        while any(
            state.leader not in leaders or set(state.isr) != leaders
            for state in metadata.image.topics["orders"].partitions
        ):
            await metadata.revision.reach(metadata.image.revision + 1)


async def test_a_broker_without_its_directory_stops_and_the_others_lead_what_it_led() -> None:
    async with cluster(3) as here:
        first, second, _ = here.brokers
        await create(second)
        await until_led_by(second, {1, 2, 3})
        ended = asyncio.ensure_future(until_stopped(here.brokers, second.environment, here.stop))
        lose(here, first)
        await until_led_by(second, {2, 3})
        for state, index in zip(second.context.metadata.image.topics["orders"].partitions, range(3), strict=True):
            leader = next(broker for broker in here.brokers if broker.settings.node_id == state.leader)
            async with connected(leader) as client:
                assert (await produced(client, "orders", batch(b"x"), index=index)).error_code == ErrorCode.NONE
        assert not ended.done()
        here.stop.set()
        await asyncio.wait_for(ended, WAIT_S)
        assert [broker.settings.node_id for broker in here.brokers] == [2, 3]


async def test_with_the_last_broker_the_process_ends() -> None:
    async with cluster(2) as here:
        first, second = here.brokers
        ended = asyncio.ensure_future(until_stopped(here.brokers, first.environment, here.stop))
        lose(here, first)
        lose(here, second)
        with pytest.raises(BrokerFailed, match=r"no broker is left: the last data directory has failed: dir/broker-\d"):
            await asyncio.wait_for(ended, WAIT_S)
        assert here.brokers == []
