"""Whoever cancels all tasks, as `asyncio.run` does when its main coroutine has ended, takes nothing from a producer.

What was accepted is delivered while the block is left, and a producer that is still used goes on."""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from random import Random
from typing import Any

import pytest

from odradek.client.cluster.refresher import Refresher
from odradek.client.errors.client_errors import ClientError
from odradek.client.producer.results.delivery import Ack, Delivery
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.produce import ProduceRequest
from tests.client.broker_faults import late
from tests.client.producing import TOPIC, begun, made, producing, turns
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster
from tests.client.virtual_time import virtual_loop

pytestmark = pytest.mark.virtual_time

LARGE: dict[str, Any] = {"compression_type": "zstd", "linger_ms": 0, "batch_size": 200_000}
"""Batches of records of 100 KB are compressed in a thread."""


@pytest.fixture
async def cluster() -> AsyncIterator[ScriptedCluster]:
    with scripted_cluster(brokers=2) as cluster:
        cluster.create_topic(TOPIC, partitions=3)
        yield cluster


def cancel_all_others() -> None:
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()


async def test_leaving_the_block_delivers_what_was_accepted(cluster: ScriptedCluster) -> None:
    """The block belongs to another task than the one that ends, and batches are being compressed in a thread."""
    values = [Random(number).randbytes(50_000) * 2 for number in range(60)]
    deliveries: list[Delivery] = []

    async def body() -> None:
        async with made(cluster, **LARGE) as producer:
            await producer.prepare(TOPIC)
            virtual_loop().blocking_ms = 20
            for value in values:
                deliveries.append(await producer.send(TOPIC, value, partition=0))  # noqa: PERF401 (a call each)
            accepted.set()
            await asyncio.sleep(3_000)

    accepted = asyncio.Event()
    task = begun(body())
    await accepted.wait()
    assert not any(delivery.done() for delivery in deliveries)
    cancel_all_others()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [delivery.exception() for delivery in deliveries] == [None] * 60
    assert cluster.values(TOPIC, 0) == values


Moment = Callable[[ScriptedCluster], None]


def while_it_compresses(cluster: ScriptedCluster) -> None:
    virtual_loop().blocking_ms = 500


def while_metadata_is_asked_for(cluster: ScriptedCluster) -> None:
    cluster.on(MetadataRequest, late(500), times=None)


def while_it_connects(cluster: ScriptedCluster) -> None:
    for broker in cluster.brokers.values():
        broker.close_connections()
    cluster.on(ApiVersionsRequest, late(500), times=None)


def while_an_answer_is_awaited(cluster: ScriptedCluster) -> None:
    cluster.on(ProduceRequest, late(500), times=None)


@pytest.mark.parametrize(
    "begin", [while_it_compresses, while_metadata_is_asked_for, while_it_connects, while_an_answer_is_awaited]
)
async def test_a_producer_that_is_used_further_goes_on(cluster: ScriptedCluster, begin: Moment) -> None:
    """Also for topics that it has not heard of yet."""
    async with producing(cluster, **LARGE) as producer:
        await producer.prepare(TOPIC)
        begin(cluster)
        before = await producer.send(TOPIC, bytes(100_000), partition=0)
        await asyncio.sleep(0.1)
        cancel_all_others()
        await turns(5)
        cluster.create_topic("payments")
        after = await producer.send("payments", bytes(100_000))
        assert (await before).offset == 0
        assert (await after).offset == 0


async def test_a_producer_id_that_is_being_asked_for_comes(cluster: ScriptedCluster) -> None:
    cluster.on(InitProducerIdRequest, late(500))
    async with producing(cluster) as producer:
        delivery = await producer.send(TOPIC, b"v", partition=0)
        await asyncio.sleep(0.1)
        cancel_all_others()
        assert (await delivery).offset == 0


async def test_a_thread_that_waits_gets_its_acknowledgement(cluster: ScriptedCluster) -> None:
    cluster.on(ProduceRequest, late(500))
    async with producing(cluster) as producer:
        await producer.prepare(TOPIC)
        found: Future[Ack] = producer.send_threadsafe(TOPIC, b"v", partition=0)
        await asyncio.sleep(0.1)
        cancel_all_others()
        assert (await asyncio.wrap_future(found)).offset == 0


async def test_a_producer_that_learns_nothing_more_fails_with_a_sentence(
    cluster: ScriptedCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Should its refreshing ever end, nobody waits for a timeout to find out."""

    def break_off(refresher: Refresher) -> None:
        raise LookupError("no such thing")

    async with made(cluster, linger_ms=0, max_block_ms=60_000) as producer:
        cluster.on(ProduceRequest, late(5_000))
        delivery = await producer.send(TOPIC, b"v", partition=0)
        monkeypatch.setattr(Refresher, "any_connection", break_off)
        with pytest.raises(ClientError, match="does not learn of brokers and topics any more: LookupError: no such"):
            await asyncio.wait_for(producer.send("payments", b"v"), 10)
        with pytest.raises(ClientError, match="does not learn of brokers and topics any more"):
            await asyncio.wait_for(delivery, 1)
    assert "task producer" in caplog.text
