"""Sends that are cancelled, on a scripted cluster: what `send` returned a Delivery for goes out, and nothing else."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from odradek.client.metrics.metrics import BATCH_SIZE
from odradek.client.producer.batching.accumulator import BATCH_WEIGHT
from odradek.client.producer.hooks.interceptors import Interceptor
from odradek.client.producer.producer import Producer
from odradek.client.producer.record import ProducerRecord
from odradek.client.producer.record_calls import BACKLOG_MAX
from odradek.client.producer.results.delivery import Delivery
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.produce import ProduceRequest
from tests.client.broker_faults import late
from tests.client.producing import TOPIC, begun, producing, turns
from tests.client.recorded_metrics import RecordedMetrics
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster

pytestmark = pytest.mark.virtual_time

BATCHES_A_TURN = BACKLOG_MAX // BATCH_WEIGHT
"""So many small batches become ready before `send` gives the loop a turn."""


@pytest.fixture
async def cluster() -> AsyncIterator[ScriptedCluster]:
    with scripted_cluster() as cluster:
        cluster.create_topic(TOPIC)
        yield cluster


class Sending:
    """A task that sends without waiting for anything, until it is cancelled."""

    def __init__(self, producer: Producer) -> None:
        self.producer = producer
        self.deliveries: list[Delivery] = []
        self.task = begun(self.run())

    async def run(self) -> None:
        while len(self.deliveries) < 100_000:
            self.deliveries.append(await self.producer.send(TOPIC, b"%0200d" % len(self.deliveries)))

    async def cancel(self) -> None:
        self.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await self.task


@pytest.mark.parametrize("after", [1, 2, 3, 10, 50])
@pytest.mark.parametrize("settings", [{"linger_ms": 0}, {"batch_size": 200}, {"buffer_memory": 4_000}], ids=str)
async def test_a_cancelled_send_has_sent_nothing(
    cluster: ScriptedCluster, settings: dict[str, Any], after: int
) -> None:
    async with producing(cluster, **settings) as producer:
        await producer.prepare(TOPIC)
        sending = Sending(producer)
        await turns(after)
        await sending.cancel()
        await producer.flush()
        assert all(delivery.done() for delivery in sending.deliveries)
    assert 0 < len(sending.deliveries) < 100_000
    assert cluster.values(TOPIC) == [b"%0200d" % number for number in range(len(sending.deliveries))]


@pytest.mark.parametrize("waits_for", ["metadata", "room"])
async def test_a_send_cancelled_wherever_it_waits_has_sent_nothing(cluster: ScriptedCluster, waits_for: str) -> None:
    cluster.on(ProduceRequest, late(500))
    if waits_for == "metadata":
        cluster.on(MetadataRequest, late(500), nth=2)
    async with producing(cluster, buffer_memory=10_000, batch_size=1_000) as producer:
        if waits_for == "room":
            await producer.send(TOPIC, bytes(7_000))
        waiting = begun(producer.send(TOPIC, bytes(7_001)))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert [len(value or b"") for value in cluster.values(TOPIC)] == [7_000] * (waits_for == "room")


async def test_who_never_waits_gives_the_sender_a_turn_every_few_batches(cluster: ScriptedCluster) -> None:
    """Otherwise the whole buffer would be full before the first batch left."""
    metrics = RecordedMetrics()
    async with producing(cluster, batch_size=500, linger_ms=0, metrics=metrics) as producer:
        await (await producer.send(TOPIC, b"there is a connection"))
        before = len(metrics.values[BATCH_SIZE.name, (producer.config.client_id, TOPIC)])
        for _ in range(BATCHES_A_TURN + 1):  # each fills a batch; no time passes meanwhile
            await producer.send(TOPIC, bytes(450))
        assert len(metrics.values[BATCH_SIZE.name, (producer.config.client_id, TOPIC)]) == before, "not after each"
        await producer.send(TOPIC, bytes(450))
        assert len(metrics.values[BATCH_SIZE.name, (producer.config.client_id, TOPIC)]) > before


async def test_the_last_record_goes_out_without_another_call(cluster: ScriptedCluster) -> None:
    async with producing(cluster, linger_ms=5) as producer:
        await producer.prepare(TOPIC)
        for way in ("send", "send_nowait"):
            sent = producer.send(TOPIC, b"v") if way == "send" else producer.send_nowait(TOPIC, b"v")
            delivery = sent if isinstance(sent, Delivery) else await sent
            await asyncio.sleep(0.1)
            assert delivery.done()


async def test_interceptors_have_not_seen_a_send_that_was_cancelled_before_its_turn(cluster: ScriptedCluster) -> None:
    class Spy(Interceptor):
        def __init__(self) -> None:
            self.seen: list[bytes] = []

        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            self.seen.append(record.value)
            return record

    async def send_many(producer: Producer) -> None:
        for number in range(10):
            await producer.send(TOPIC, b"%d" % number)

    spy = Spy()
    async with producing(cluster, interceptors=[spy], batch_size=0) as producer:
        await producer.prepare(TOPIC)
        sending = begun(send_many(producer))
        await turns(1)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
    assert spy.seen == cluster.values(TOPIC) == [b"%d" % number for number in range(BATCHES_A_TURN + 1)]
