"""While slow code of the caller's feeds a bulk, or one send after another, what was accepted before is delivered."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import pytest

from odradek.client.producer.hooks.interceptors import Interceptor
from odradek.client.producer.record import ProducerRecord
from odradek.client.producer.results.delivery import Delivery
from tests.client.producing import TOPIC, begun, producing
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster
from tests.client.virtual_time import virtual_loop

pytestmark = pytest.mark.virtual_time

COUNT = 300
SLOW_MS = 20.0


@pytest.fixture
async def cluster() -> AsyncIterator[ScriptedCluster]:
    with scripted_cluster() as cluster:
        cluster.create_topic(TOPIC, partitions=1)
        yield cluster


def slow_values(count: int = COUNT) -> Iterator[bytes]:
    for number in range(count):
        virtual_loop().compute(SLOW_MS)
        yield b"%d" % number


def slow_serializer(topic: str, value: bytes) -> bytes:
    virtual_loop().compute(SLOW_MS)
    return value


class SlowPartitioner:
    def partition(
        self, topic: str, key: bytes | None, value: bytes | None, partition_count: int, available: Sequence[int]
    ) -> int:
        virtual_loop().compute(SLOW_MS)
        return 0


class SlowInterceptor(Interceptor):
    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        virtual_loop().compute(SLOW_MS)
        return record


@pytest.mark.parametrize(
    ("columns", "settings"),
    [
        ({"values": slow_values}, {}),
        ({"values": slow_values, "keys": slow_values}, {}),
        ({"values": lambda: [b"v"] * COUNT, "keys": slow_values}, {}),
        ({"values": lambda: [b"v"] * COUNT}, {"value_serializer": slow_serializer}),
        ({"values": lambda: [b"v"] * COUNT}, {"partitioner": SlowPartitioner()}),
        ({"values": lambda: [b"v"] * COUNT}, {"interceptors": [SlowInterceptor()]}),
    ],
    ids=["values", "values-keys", "keys", "serializer", "partitioner", "interceptor"],
)
async def test_a_record_accepted_before_is_delivered_meanwhile(
    cluster: ScriptedCluster, columns: dict[str, Any], settings: dict[str, Any]
) -> None:
    async with producing(cluster, delivery_timeout_ms=2_000, request_timeout_ms=1_000, **settings) as producer:
        await producer.prepare(TOPIC)
        began_s = asyncio.get_running_loop().time()
        before = await producer.send(TOPIC, b"before")
        bulk = begun(producer.send_batch(TOPIC, **{name: make() for name, make in columns.items()}))
        assert (await before).offset == 0
        assert asyncio.get_running_loop().time() - began_s < 1.0
        assert len(await bulk) == COUNT


async def test_deliveries_that_come_slowly_are_gathered_while_the_loop_goes_on(cluster: ScriptedCluster) -> None:
    async with producing(cluster, delivery_timeout_ms=2_000, request_timeout_ms=1_000) as producer:
        await producer.prepare(TOPIC)

        def sent() -> Iterator[Delivery]:
            return (producer.send_nowait(TOPIC, value) for value in slow_values())

        assert [ack.offset for ack in await producer.gather(sent())] == list(range(COUNT))


@pytest.mark.parametrize(
    "settings",
    [
        {"value_serializer": slow_serializer},
        {"partitioner": SlowPartitioner()},
        {"interceptors": [SlowInterceptor()]},
    ],
    ids=["serializer", "partitioner", "interceptor"],
)
async def test_sends_that_never_wait_give_the_loop_its_turns(
    cluster: ScriptedCluster, settings: dict[str, Any]
) -> None:
    async with producing(cluster, delivery_timeout_ms=2_000, request_timeout_ms=1_000, **settings) as producer:
        await producer.prepare(TOPIC)
        deliveries = [await producer.send(TOPIC, b"v") for _ in range(COUNT)]
        assert [ack.offset for ack in await producer.gather(deliveries)] == list(range(COUNT))
