"""A producer whose broker is gone, in real time, on real sockets: it tries again and again, and costs next to nothing.

(In virtual time, every story counts the rounds of the loop: `story.py`, `test_producer_faults.py`.)
"""

import asyncio
import time

import pytest

from odradek.client.errors.client_errors import ClientError, ProducerClosed, UndeliveredRecords
from odradek.client.producer.producer import Producer
from tests.broker.wire import connected, create_topic, running_broker

SECONDS = 10
# asyncio's debug mode, in which all tests run, costs about as much again, and is switched off here.
CPU_SHARE_MAX = 0.01


@pytest.mark.slow
@pytest.mark.both_loops
async def test_with_the_broker_down_a_producer_takes_less_than_a_hundredth_of_a_processor() -> None:
    async with running_broker() as broker:
        endpoint = next(iter(broker.bound.values()))
        async with connected(broker) as client:
            await create_topic(client, "orders", 3)
        producer = Producer(f"{endpoint.host}:{endpoint.port}", close_timeout_ms=100)
        await producer.start()
        await (await producer.send("orders", b"while it runs"))
    pending = [await producer.send("orders", b"%d" % number, partition=number % 3) for number in range(30)]
    await asyncio.sleep(1)  # the connections end
    asyncio.get_running_loop().set_debug(False)
    used_s = -time.process_time()
    await asyncio.sleep(SECONDS)  # the rest that is measured
    used_s += time.process_time()
    assert not any(delivery.done() for delivery in pending)
    with pytest.raises(UndeliveredRecords):
        await producer.close()
    for delivery in pending:
        error = delivery.exception()
        assert isinstance(error, ProducerClosed)
    assert used_s < CPU_SHARE_MAX * SECONDS


@pytest.mark.slow
async def test_a_producer_that_finds_nobody_rests_too_until_it_gives_up() -> None:
    async with running_broker() as broker:
        endpoint = next(iter(broker.bound.values()))
    producer = Producer(f"{endpoint.host}:{endpoint.port}", request_timeout_ms=SECONDS * 1_000)
    asyncio.get_running_loop().set_debug(False)
    used_s = -time.process_time()
    began_s = time.monotonic()
    with pytest.raises(ClientError, match=f"{endpoint.port}"):
        await producer.start()
    used_s += time.process_time()
    assert SECONDS <= time.monotonic() - began_s < SECONDS + 2
    assert used_s < CPU_SHARE_MAX * SECONDS
