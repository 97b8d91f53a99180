"""Records without a key follow the speed of the brokers: three scripted ones, of which one takes ten times as long, and
a whole producer that hands over more than they take."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from odradek.client.producer.producer import Producer
from odradek.protocol.messages.produce import ProduceRequest
from tests.client.broker_faults import never
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster

pytestmark = pytest.mark.virtual_time

TOPIC = "clicks"
COUNT = 5_000
SERVICE_MS = 10.0
SLOW = 2
"""The slow broker, and the number of the partition that it leads."""


@pytest.fixture
async def cluster() -> AsyncIterator[ScriptedCluster]:
    with scripted_cluster(brokers=3) as cluster:
        cluster.create_topic(TOPIC, partitions=3)
        for broker in cluster.brokers.values():
            broker.service_ms = SERVICE_MS
        cluster.brokers[SLOW].service_ms = 10 * SERVICE_MS
        yield cluster


def producer_for(cluster: ScriptedCluster, **settings: Any) -> Producer:
    return Producer(
        cluster.bootstrap, environment=lambda: cluster.environment, batch_size=1000, buffer_memory=100_000, **settings
    )


def counts(cluster: ScriptedCluster) -> list[int]:
    return [len(cluster.values(TOPIC, partition)) for partition in range(3)]


@pytest.mark.parametrize("way", ["send", "send_batch"])
async def test_records_follow_speed(cluster: ScriptedCluster, way: str) -> None:
    began_ms = cluster.now_ms()
    async with producer_for(cluster) as producer:
        if way == "send":
            for _ in range(COUNT):
                await producer.send(TOPIC, bytes(100))
        else:
            await producer.send_batch(TOPIC, [bytes(100) for _ in range(COUNT)])
    took_ms = cluster.now_ms() - began_ms
    *fast, slow = counts(cluster)
    assert sum(fast) + slow == COUNT
    assert fast[0] == pytest.approx(fast[1], rel=0.1)
    assert fast[0] / 15 < slow < fast[0] / 4
    # 8 records a batch: with equal shares, the slow broker alone would take this long.
    assert took_ms < COUNT / 3 / 8 * cluster.brokers[SLOW].service_ms / 2


async def test_without_the_adaptive_partitioner_they_do_not(cluster: ScriptedCluster) -> None:
    async with producer_for(cluster, partitioner_adaptive_partitioning_enable=False) as producer:
        await producer.send_batch(TOPIC, [bytes(100) for _ in range(COUNT)])
    *fast, slow = counts(cluster)
    assert slow > sum(fast) / 4


@pytest.mark.parametrize(("timeout_ms", "partitions"), [(200, {0, 1}), (0, {0, 1, SLOW})])
async def test_a_broker_that_takes_nothing_more_gets_nothing_after_a_while(
    cluster: ScriptedCluster, timeout_ms: int, partitions: set[int]
) -> None:
    """Without the setting it gets less, like any slow one."""
    cluster.on(ProduceRequest, never(applies=False), nth=2, times=None, node=SLOW)
    settings = {"partitioner_availability_timeout_ms": timeout_ms, "close_timeout_ms": 10_000}
    async with producer_for(cluster, **settings) as producer:
        deliveries = [await producer.send(TOPIC, bytes(100)) for _ in range(500)]
        assert {delivery.partition for delivery in deliveries} == {0, 1, SLOW}
        await cluster.environment.sleep(500)
        later = [await producer.send(TOPIC, bytes(100)) for _ in range(2_000)]
        assert {delivery.partition for delivery in later[50:]} == partitions
        for delivery in deliveries + later:
            if delivery.partition == SLOW:
                delivery.add_done_callback(lambda ended: None)  # closing fails it, which is no surprise
