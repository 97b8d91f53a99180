"""Batches that are compressed, in the loop and in a thread, on a scripted cluster in virtual time: meanwhile the sender
rests, and what cannot be compressed fails by itself."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from odradek.client.errors.client_errors import ClientError, ProducerClosed, UndeliveredRecords
from odradek.client.producer.batching import batch
from odradek.client.producer.producer import Producer
from odradek.protocol.batches.compression import Codec
from odradek.protocol.batches.compression import compress as compress_really
from odradek.protocol.messages.produce import ProduceRequest
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster
from tests.client.virtual_time import virtual_loop

pytestmark = pytest.mark.virtual_time

SMALL, LARGE = bytes(1_000), bytes(100_000)
"""A batch with the one is compressed in the loop, with the other in a thread."""


def made(cluster: ScriptedCluster, **settings: Any) -> Producer:
    cluster.create_topic("orders", 2)
    chosen: dict[str, Any] = {"compression_type": "gzip", "batch_size": 200_000, "linger_ms": 0} | settings
    return Producer(cluster.bootstrap, environment=lambda: cluster.environment, **chosen)


async def test_the_sender_rests_while_a_thread_compresses() -> None:
    with scripted_cluster() as cluster:
        async with made(cluster) as producer:
            await producer.prepare("orders")
            virtual_loop().blocking_ms = 10_000
            first = await producer.send("orders", LARGE, partition=0)
            await asyncio.sleep(1)
            second = await producer.send("orders", SMALL, partition=1)
            rounds = virtual_loop().iterations
            await asyncio.sleep(8)
            assert virtual_loop().iterations - rounds < 20
            assert cluster.count(ProduceRequest) == 0
            await asyncio.sleep(2)
            assert first.done()
            assert second.done()


async def test_closed_while_a_thread_compresses_the_memory_is_free_again() -> None:
    with scripted_cluster() as cluster:
        producer = made(cluster, close_timeout_ms=0)
        await producer.start()
        await producer.prepare("orders")
        virtual_loop().blocking_ms = 10_000
        sent = await producer.send("orders", LARGE, partition=0)
        await asyncio.sleep(1)  # virtual: a tenth of what the thread takes
        with pytest.raises(UndeliveredRecords):
            await producer.close()
        assert isinstance(sent.exception(), ProducerClosed)
        assert producer.buffer_available_bytes == producer.config.buffer_memory
        await asyncio.sleep(9)  # virtual: the thread ends, which nobody can cancel


async def test_a_node_is_not_passed_over_because_a_thread_compresses_for_it() -> None:
    with scripted_cluster(brokers=2) as cluster:
        cluster.create_topic("payments", leaders=[0])
        async with made(cluster, partitioner_availability_timeout_ms=100) as producer:
            await producer.prepare("payments")
            await producer.gather([await producer.send("orders", SMALL, partition=partition) for partition in (0, 1)])
            virtual_loop().blocking_ms = 2_000
            sent = [await producer.send("orders", LARGE, partition=0), await producer.send("payments", SMALL)]
            for _ in range(30):
                await asyncio.sleep(0.05)
                sent.append(await producer.send("orders", LARGE))
            await producer.gather(sent)
    assert {delivery.partition for delivery in sent[-20:]} == {0, 1}


@pytest.fixture
def compress(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Lets the next compression fail."""
    fails = False

    def fail_next() -> None:
        nonlocal fails
        fails = True

    def compress(codec: Codec, data: bytes, level: int | None) -> bytes:
        nonlocal fails
        if fails:
            fails = False
            raise MemoryError("no room for the window")
        return compress_really(codec, data, level)

    monkeypatch.setattr(batch, "compress", compress)
    return fail_next


@pytest.mark.parametrize("value", [SMALL, LARGE], ids=["in the loop", "in a thread"])
@pytest.mark.parametrize("max_in_flight", [1, 5])
async def test_what_cannot_be_compressed_fails_and_what_follows_arrives(
    compress: Callable[[], None], value: bytes, max_in_flight: int
) -> None:
    with scripted_cluster() as cluster:
        async with made(cluster, max_in_flight_requests_per_connection=max_in_flight) as producer:
            await (await producer.send("orders", b"before", partition=0))
            compress()
            began_ms = cluster.now_ms()
            refused = await producer.send("orders", value, partition=0)
            with pytest.raises(ClientError, match=r"orders-0 .* gzip: MemoryError: no room for the window") as caught:
                await refused
            assert isinstance(caught.value.__cause__, MemoryError)
            for partition in (0, 1):
                await (await producer.send("orders", value, partition=partition))
            assert cluster.now_ms() - began_ms < 1_000
            assert producer.buffer_available_bytes == producer.config.buffer_memory
        assert cluster.values("orders") == [b"before", value, value]
