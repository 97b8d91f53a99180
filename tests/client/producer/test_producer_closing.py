"""Where and how long a producer can be used, and how it ends, on a scripted cluster in memory and virtual time."""

import asyncio
import os
import pickle
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from odradek.client.errors.client_errors import (
    ClientError,
    ProducerClosed,
    ProducerNotStarted,
    UndeliveredRecords,
    WrongLoop,
)
from odradek.client.producer.producer import Producer
from odradek.protocol.messages.produce import ProduceRequest
from tests.client.broker_faults import late, never
from tests.client.producing import TOPIC, producing
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster
from tests.client.virtual_time import run_virtual, threads_run

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def cluster() -> AsyncIterator[ScriptedCluster]:
    with scripted_cluster(brokers=2) as cluster:
        cluster.create_topic(TOPIC, partitions=3)
        yield cluster


# --------------------------------------------------------------------------------------------- where it belongs
async def test_use_before_start_and_after_close_raises(cluster: ScriptedCluster) -> None:
    producer = Producer(cluster.bootstrap, environment=lambda: cluster.environment)
    with pytest.raises(ProducerNotStarted):
        await producer.send(TOPIC, b"v")
    with pytest.raises(ProducerNotStarted):
        producer.send_threadsafe(TOPIC, b"v")
    async with producer:
        pass
    for use in (producer.send(TOPIC, b"v"), producer.flush(), producer.prepare(TOPIC), producer.send_batch(TOPIC, [])):
        with pytest.raises(ProducerClosed):
            await use
    with pytest.raises(ProducerClosed):
        producer.send_nowait(TOPIC, b"v")
    with pytest.raises(ProducerClosed):
        await producer.start()
    await producer.close()


async def test_use_from_another_thread_raises_and_send_threadsafe_works(cluster: ScriptedCluster) -> None:
    async with producing(cluster) as producer:
        await producer.prepare(TOPIC)
        loop = asyncio.get_running_loop()
        seen: list[Any] = []

        def other_thread() -> None:
            try:
                producer.send_nowait(TOPIC, b"v")
            except WrongLoop as why:
                seen.append(why)
            seen.append(producer.send_threadsafe(TOPIC, b"from a thread", partition=1).result(10))
            loop.call_soon_threadsafe(ended.set)

        ended = asyncio.Event()
        with threads_run():
            thread = threading.Thread(target=other_thread)
            thread.start()
            await ended.wait()
            thread.join()
    assert isinstance(seen[0], WrongLoop)
    assert seen[1].partition == 1
    assert cluster.values(TOPIC, 1) == [b"from a thread"]


def test_use_without_a_loop_before_start_and_after_close_raises() -> None:
    """Where no loop runs, the running loop is None; that must not be taken for the producer's."""
    used: list[Producer] = []

    async def use() -> None:
        with scripted_cluster() as cluster:
            cluster.create_topic(TOPIC)
            async with producing(cluster) as producer:
                await producer.prepare(TOPIC)
                used.append(producer)

    def send(producer: Producer, expected: type[ClientError]) -> None:
        with pytest.raises(expected):
            producer.send_nowait(TOPIC, b"v")
        with pytest.raises(expected):
            producer.send(TOPIC, b"v").send(None)
        with pytest.raises(expected):
            producer.send_threadsafe(TOPIC, b"v")
        refused.append(expected)

    run_virtual(use())
    refused: list[type[ClientError]] = []
    for case in ((Producer("localhost:9092"), ProducerNotStarted), (used[0], ProducerClosed)):
        send(*case)
        thread = threading.Thread(target=send, args=case)
        thread.start()
        thread.join()
    assert refused == [ProducerNotStarted, ProducerNotStarted, ProducerClosed, ProducerClosed]
    assert used[0].buffer_available_bytes == used[0].config.buffer_memory


@pytest.mark.parametrize("call", ["send_nowait", "send_threadsafe"])
async def test_use_in_a_forked_child_raises(cluster: ScriptedCluster, call: str) -> None:
    async with producing(cluster) as producer:
        await producer.prepare(TOPIC)
        child = os.fork()
        if not child:
            try:
                getattr(producer, call)(TOPIC, b"v")
            except WrongLoop:
                os._exit(7)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7  # noqa: ASYNC222 (it ends at once)
    assert cluster.values(TOPIC) == []


async def test_it_cannot_be_pickled(cluster: ScriptedCluster) -> None:
    async with producing(cluster) as producer:
        with pytest.raises(TypeError, match="pickled"):
            pickle.dumps(producer)


# ------------------------------------------------------------------------------------------------------- closing
async def test_leaving_the_block_delivers_what_was_accepted(cluster: ScriptedCluster) -> None:
    async with producing(cluster, linger_ms=60_000) as producer:
        deliveries = [await producer.send(TOPIC, b"%d" % number, partition=0) for number in range(100)]
    assert all(delivery.exception() is None for delivery in deliveries)
    assert len(cluster.values(TOPIC, 0)) == 100


async def test_leaving_the_block_by_an_error_delivers_too(cluster: ScriptedCluster) -> None:
    with pytest.raises(KeyError):
        async with producing(cluster, linger_ms=60_000) as producer:
            await producer.send(TOPIC, b"v", partition=0)
            raise KeyError
    assert cluster.values(TOPIC, 0) == [b"v"]


async def test_closing_ends_with_its_timeout_and_fails_the_rest(cluster: ScriptedCluster) -> None:
    cluster.on(ProduceRequest, never(), times=1000)
    producer = await Producer(cluster.bootstrap, environment=lambda: cluster.environment, close_timeout_ms=2000).start()
    delivery = await producer.send(TOPIC, b"v")
    began_ms = cluster.environment.monotonic_ms()
    with pytest.raises(UndeliveredRecords):
        await producer.close()
    assert 2000 <= cluster.environment.monotonic_ms() - began_ms <= 2200
    with pytest.raises(ProducerClosed):
        await delivery
    await producer.close()


async def test_closing_ends_even_when_it_is_cancelled(cluster: ScriptedCluster) -> None:
    cluster.on(ProduceRequest, never(), times=1000)
    producer = await Producer(cluster.bootstrap, environment=lambda: cluster.environment).start()
    delivery = await producer.send(TOPIC, b"v")
    closing = asyncio.get_running_loop().create_task(producer.close())
    await asyncio.sleep(1)
    began_ms = cluster.environment.monotonic_ms()
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert isinstance(delivery.exception(), ProducerClosed)
    await producer.close()
    assert cluster.environment.monotonic_ms() - began_ms < 1000


async def test_who_waits_for_room_is_told_when_the_producer_closes(cluster: ScriptedCluster) -> None:
    cluster.on(ProduceRequest, late(500))
    producer = await Producer(
        cluster.bootstrap, environment=lambda: cluster.environment, buffer_memory=10_000, batch_size=1000
    ).start()
    first = await producer.send(TOPIC, bytes(7000))
    waiting = asyncio.get_running_loop().create_task(producer.send(TOPIC, bytes(7000)))
    await asyncio.sleep(0.01)
    await producer.close()
    assert first.exception() is None
    with pytest.raises(ProducerClosed):
        await waiting


async def test_a_start_that_fails_leaves_nothing_behind(cluster: ScriptedCluster) -> None:
    for broker in cluster.brokers.values():
        broker.stop()
    producer = Producer(cluster.bootstrap, environment=lambda: cluster.environment)
    with pytest.raises(ClientError):
        await producer.start()
    await producer.close()
