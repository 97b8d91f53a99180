"""What the sender does about nodes that cannot take what is ready, and about topics without a leader, on a scripted
cluster in virtual time."""

import asyncio
from typing import Any

import pytest

from odradek.client.errors.client_errors import ClientError
from odradek.client.producer.producer import Producer
from odradek.client.producer.results.delivery import Delivery
from odradek.protocol.messages.metadata import MetadataRequest
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster

pytestmark = pytest.mark.virtual_time


def made(cluster: ScriptedCluster, **settings: Any) -> Producer:
    quick: dict[str, Any] = {"request_timeout_ms": 1_000, "delivery_timeout_ms": 2_000, "linger_ms": 0}
    return Producer(cluster.bootstrap, environment=lambda: cluster.environment, **quick | settings)


async def send_without_keys(producer: Producer, count: int) -> int:
    """How many of them failed."""
    sent: list[Delivery] = []
    for _ in range(count):
        await asyncio.sleep(0.01)
        sent.append(await producer.send("orders", bytes(100)))
    ended = await producer.gather(sent, return_exceptions=True)
    return sum(isinstance(each, ClientError) for each in ended)


async def test_a_broker_that_comes_back_gets_records_without_a_key_again() -> None:
    """It stays away until all that had waited for it has ended, so that it is not ready for anything (KIP-794)."""
    with scripted_cluster(brokers=2) as cluster:
        cluster.create_topic("orders", 2)
        async with made(cluster, batch_size=100, partitioner_availability_timeout_ms=100) as producer:
            assert await send_without_keys(producer, 50) == 0
            cluster.brokers[1].stop()
            assert 0 < await send_without_keys(producer, 1_000) < 250, "most of them were sent elsewhere"
            cluster.brokers[1].start()
            await asyncio.sleep(2)
            before = [len(cluster.values("orders", partition)) for partition in (0, 1)]
            assert await send_without_keys(producer, 100) == 0
            after = [len(cluster.values("orders", partition)) for partition in (0, 1)]
            assert [new - old > 20 for old, new in zip(before, after, strict=True)] == [True, True]


async def test_a_topic_without_a_leader_is_asked_for_alone() -> None:
    with scripted_cluster() as cluster:
        for name in ("a", "b", "c"):
            cluster.create_topic(name)
        async with made(cluster, delivery_timeout_ms=20_000) as producer:
            for name in ("a", "b", "c"):
                await (await producer.send(name))
            cluster.move_leader("b", 0, to=-1)
            waiting = await producer.send("b", b"later")
            await asyncio.sleep(3)
            asked = len(cluster.exchanges)
            await asyncio.sleep(10)
            questions = [each.request for each in cluster.exchanges[asked:]]
            assert 5 < len(questions) < 15
            for question in questions:
                assert isinstance(question, MetadataRequest)
                assert [topic.name for topic in question.topics or ()] == ["b"]
            cluster.move_leader("b", 0, to=0)
            await waiting
