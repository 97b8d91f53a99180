"""Whoever is about to send while another task closes the producer is told, and nothing is accepted after that."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any

import pytest

from odradek.client.errors.client_errors import BatchError, ProducerClosed
from odradek.client.producer.producer import Producer
from odradek.client.producer.results.delivery import Delivery
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.produce import ProduceRequest
from tests.client.broker_faults import late, never
from tests.client.producing import TOPIC, begun, made, turns
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster

pytestmark = pytest.mark.virtual_time

SCARCE: dict[str, Any] = {"buffer_memory": 10_000, "batch_size": 1_000, "close_timeout_ms": 2_000}
OTHER = "payments"


@pytest.fixture
async def cluster() -> AsyncIterator[ScriptedCluster]:
    with scripted_cluster(brokers=2) as cluster:
        cluster.create_topic(TOPIC, partitions=3)
        cluster.create_topic(OTHER)
        yield cluster


def numbers(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


class Closing:
    """Values of a bulk, in the middle of which somebody closes the producer."""

    def __init__(self, producer: Producer, count: int = 20_000, at: int = 7_000) -> None:
        self.producer = producer
        self.values = [b"%d" % number for number in range(count)]
        self.at = at
        self.task: asyncio.Task[None] | None = None

    def __iter__(self) -> Iterator[bytes]:
        for number, value in enumerate(self.values):
            if number == self.at:
                self.task = begun(self.producer.close())
            yield value


@pytest.mark.parametrize("answers", [True, False])
@pytest.mark.parametrize("columns", ["values", "keys", "headers"])
async def test_a_bulk_stops_and_ends(cluster: ScriptedCluster, columns: str, answers: bool) -> None:
    if not answers:
        cluster.on(ProduceRequest, never(), times=None)
    producer = await made(cluster, close_timeout_ms=2_000, linger_ms=0).start()
    closing = Closing(producer)
    keys = closing.values if columns == "keys" else None
    headers = [[("name", b"value")]] * len(closing.values) if columns == "headers" else None
    with pytest.raises(BatchError) as raised:
        await asyncio.wait_for(producer.send_batch(TOPIC, closing, keys, headers=headers), 10)
    failed = raised.value
    assert isinstance(failed.__cause__, ProducerClosed)
    assert closing.task is not None
    await closing.task
    assert producer.buffer_available_bytes == producer.config.buffer_memory
    accepted = set(range(len(failed.acks))) - set(failed.unsent)
    assert closing.at < len(failed.acks) < len(closing.values)
    if answers:
        assert failed.errors == {}
        assert set(cluster.values(TOPIC)) == {closing.values[index] for index in accepted}
    else:
        assert set(failed.errors) == accepted
        assert all(isinstance(error, ProducerClosed) for error in failed.errors.values())


async def test_a_bulk_that_waits_for_room_stops_and_ends(cluster: ScriptedCluster) -> None:
    cluster.on(ProduceRequest, late(500))
    producer = await made(cluster, **SCARCE, linger_ms=0).start()
    bulk = begun(producer.send_batch(TOPIC, [bytes(3_000)] * 10, partition=0))
    await asyncio.sleep(0.1)
    await producer.close()
    assert producer.buffer_available_bytes == 10_000
    with pytest.raises(BatchError) as raised:
        await bulk
    assert isinstance(raised.value.__cause__, ProducerClosed)
    assert raised.value.errors == {}
    assert len(cluster.values(TOPIC, 0)) == 10 - len(raised.value.unsent) > 0


async def test_a_send_whose_room_comes_with_the_end_is_refused(cluster: ScriptedCluster) -> None:
    """It waits for metadata when the closing begins, would then wait for room, and get it from what is failed."""
    cluster.on(ProduceRequest, never(), times=None)
    producer = await made(cluster, **SCARCE).start()
    first = await producer.send(OTHER, bytes(7_000))
    cluster.on(MetadataRequest, late(500), times=None)
    waiting = begun(producer.send(TOPIC, bytes(7_000)))
    await asyncio.sleep(0.1)
    closing = begun(producer.close())
    with pytest.raises(ProducerClosed, match="waited"):
        await asyncio.wait_for(waiting, 0.1)
    await asyncio.gather(closing, return_exceptions=True)
    assert isinstance(first.exception(), ProducerClosed)
    assert producer.buffer_available_bytes == 10_000


async def send_one(producer: Producer) -> None:
    await producer.send("nowhere", b"v")


async def send_many(producer: Producer) -> None:
    await producer.send_batch("nowhere", [b"v"])


async def prepare(producer: Producer) -> None:
    await producer.prepare(TOPIC, "nowhere")


@pytest.mark.parametrize("use", [send_one, send_many, prepare])
async def test_who_waits_for_metadata_is_told_at_once(
    cluster: ScriptedCluster, use: Callable[[Producer], Coroutine[Any, Any, None]]
) -> None:
    cluster.on(ProduceRequest, late(1_000))
    producer = await made(cluster).start()
    accepted = await producer.send(TOPIC, b"v", partition=0)
    waiting = begun(use(producer))
    await asyncio.sleep(0.1)
    closing = begun(producer.close())
    with pytest.raises((ProducerClosed, BatchError)) as raised:
        await asyncio.wait_for(waiting, 0.1)
    assert isinstance(raised.value.__cause__ or raised.value, ProducerClosed)
    await closing
    assert accepted.result().offset == 0


@pytest.mark.parametrize("in_bulk", [False, True])
async def test_who_was_given_room_in_the_turn_of_the_closing_is_refused(
    cluster: ScriptedCluster, in_bulk: bool
) -> None:
    """The answer has freed the memory and granted the claim; before its owner has had its turn, the closing begins."""
    cluster.on(ProduceRequest, late(500))
    producer = await made(cluster, **SCARCE, linger_ms=0).start()

    def close_at_once(_: Delivery) -> None:
        closing = producer.close()
        closing.send(None)  # its first step, in which it closes to others
        closing.close()

    first = await producer.send(TOPIC, bytes(7_000), partition=0, on_delivery=close_at_once)
    send = producer.send_batch(TOPIC, [bytes(7_000)], partition=0) if in_bulk else producer.send(TOPIC, bytes(7_000))
    with pytest.raises((ProducerClosed, BatchError)) as raised:
        await asyncio.wait_for(send, 1)
    assert isinstance(raised.value.__cause__ or raised.value, ProducerClosed)
    await producer.close()
    assert first.result().offset == 0
    assert producer.buffer_available_bytes == 10_000
    assert len(cluster.values(TOPIC)) == 1


async def test_nothing_is_accepted_when_the_closing_is_cancelled_at_once(
    cluster: ScriptedCluster,
) -> None:
    producer = await made(cluster).start()
    await producer.prepare(TOPIC)
    closing = Closing(producer)
    bulk = begun(producer.send_batch(TOPIC, closing, partition=0))
    while closing.task is None:
        await turns(1)
    await turns(1)
    closing.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing.task
    with pytest.raises(BatchError):
        await asyncio.wait_for(bulk, 10)
    await producer.close()
    assert producer.buffer_available_bytes == producer.config.buffer_memory


async def test_leaving_the_block_by_cancellation_delivers_what_was_accepted(cluster: ScriptedCluster) -> None:
    deliveries: list[Delivery] = []

    async def body() -> None:
        async with made(cluster, linger_ms=60_000) as producer:
            for value in numbers(100):
                deliveries.append(await producer.send(TOPIC, value, partition=0))  # noqa: PERF401 (it is cancelled)
            await asyncio.sleep(3_000)

    task = begun(body())
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(deliveries) == 100
    assert all(delivery.exception() is None for delivery in deliveries)
    assert cluster.values(TOPIC, 0) == numbers(100)


async def test_leaving_the_block_by_cancellation_ends_with_its_timeout(cluster: ScriptedCluster) -> None:
    """The cancellation is not lost by it, and a second one ends the wait."""
    cluster.on(ProduceRequest, never(), times=None)
    for cancels_twice in (False, True):
        deliveries: list[Delivery] = []

        async def body(accepted: list[Delivery]) -> None:
            async with made(cluster, close_timeout_ms=2_000) as producer:
                accepted.append(await producer.send(TOPIC, b"v", on_delivery=lambda _: None))
                await asyncio.sleep(3_000)

        task = begun(body(deliveries))
        await asyncio.sleep(1)
        began_ms = cluster.now_ms()
        task.cancel()
        if cancels_twice:
            await asyncio.sleep(0.5)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert cluster.now_ms() - began_ms == pytest.approx(500 if cancels_twice else 2_000, abs=100)
        assert isinstance(deliveries[0].exception(), ProducerClosed)
