"""Closing a consumer frees whoever waits and leaves nothing behind; any use at a wrong time or place is told."""

import asyncio
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest

from odradek.client.consumer.errors import ConsumerClosed, ConsumerNotStarted
from odradek.client.errors.client_errors import ConnectionFailed, RequestTimedOut, WrongLoop
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.messages.fetch import FetchRequest
from tests.client.broker_faults import never
from tests.client.consuming import consuming, made, read
from tests.client.producing import begun
from tests.client.reading_handlers import fill
from tests.client.running_fetcher import P0, TOPIC, reading_cluster, values

pytestmark = pytest.mark.virtual_time


async def test_who_waits_for_records_comes_to_an_end_and_other_calls_are_told() -> None:
    async with reading_cluster(1, 1) as (cluster, _):
        consumer = await made(cluster).start()
        consumer.assign([P0])
        loop = begun(read(consumer, 1))
        await asyncio.sleep(1)
        await consumer.close()
        assert await loop == []
        consumer = await made(cluster).start()
        consumer.assign([P0])
        batch = begun(consumer.get_batch(timeout_ms=60_000))
        await asyncio.sleep(1)
        await consumer.close()
        with pytest.raises(ConsumerClosed):
            await batch


async def test_after_closing_nothing_more_is_handed_out_though_it_is_at_hand() -> None:
    async with reading_cluster(1, 1) as (cluster, _):
        fill(cluster, TOPIC, 0, values(100))
        consumer = await made(cluster).start()
        consumer.assign([P0])
        found = 0
        async for _ in consumer:
            found += 1
            if found == 10:
                await consumer.close()
        assert found == 10
        await consumer.close()
        for call in (consumer.assignment, consumer.__aiter__):
            with pytest.raises(ConsumerClosed):
                call()


async def test_closing_is_quick_though_a_broker_does_not_answer() -> None:
    async with reading_cluster(1, 1) as (cluster, _):
        consumer = await made(cluster).start()
        consumer.assign([P0])
        cluster.on(FetchRequest, never(), times=None)
        await consumer.get_batch(timeout_ms=1_000)
        began = asyncio.get_running_loop().time()
        await consumer.close()
        assert asyncio.get_running_loop().time() - began < 1


async def test_a_broken_off_loop_leaves_no_task_behind() -> None:
    """The marker of this module looks for what is left."""
    async with reading_cluster(1, 1) as (cluster, _), consuming(cluster) as consumer:
        fill(cluster, TOPIC, 0, values(3))
        consumer.assign([P0])
        await read(consumer, 1)
        before = asyncio.all_tasks()
        await read(consumer, 1)
        assert asyncio.all_tasks() == before


async def test_two_loops_at_a_time_are_refused() -> None:
    async with reading_cluster(1, 1) as (cluster, _), consuming(cluster) as consumer:
        consumer.assign([P0])
        waiting = begun(read(consumer, 1))
        await asyncio.sleep(0.1)
        with pytest.raises(RuntimeError, match="already running"):
            await read(consumer, 1)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


async def test_use_before_the_start_and_a_second_start_are_told() -> None:
    async with reading_cluster(1, 1) as (cluster, _):
        consumer = made(cluster)
        with pytest.raises(ConsumerNotStarted):
            consumer.assign([P0])
        await consumer.close()
        with pytest.raises(ConsumerClosed):
            await consumer.start()
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(consumer)


async def test_a_start_without_a_broker_fails_and_leaves_nothing() -> None:
    async with reading_cluster(1, 1) as (cluster, _):
        cluster.brokers[0].stop()
        with pytest.raises(ConnectionFailed):
            await made(cluster, request_timeout_ms=1_000).start()


async def test_use_in_another_thread_is_told() -> None:
    async with reading_cluster(1, 1) as (cluster, _), consuming(cluster) as consumer:
        consumer.was_forked()
        with pytest.raises(WrongLoop, match="forked child"):
            consumer.assignment()
        consumer._state = "open"  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(WrongLoop, match="another thread"):
            consumer.assignment()
        consumer._thread_id = threading.get_ident()  # pyright: ignore[reportPrivateUsage]


async def test_a_position_that_is_not_learned_in_time_is_told() -> None:
    async with reading_cluster(1, 1) as (cluster, _), consuming(cluster) as consumer:
        consumer.assign([TopicPartition("nowhere", 0)])
        with pytest.raises(RequestTimedOut, match="the position of nowhere-0"):
            await consumer.position(TopicPartition("nowhere", 0), timeout_ms=2_000)


WRONG: list[tuple[Callable[[Any], object], str]] = [
    (lambda consumer: consumer.assign("orders"), "partitions must be an iterable"),
    (lambda consumer: consumer.assign([("orders", 0)]), "partitions must be TopicPartition"),
    (lambda consumer: consumer.assign({P0: "1"}), "offsets"),
    (lambda consumer: consumer.seek(P0, None), "offset must be a whole number"),
    (lambda consumer: consumer.pause("orders"), "the arguments must be TopicPartition"),
    (lambda consumer: consumer.done(P0), "a record or a batch"),
]


@pytest.mark.parametrize(("call", "said"), WRONG, ids=[said for _, said in WRONG])
async def test_an_argument_of_a_wrong_kind_is_named(call: Callable[[Any], object], said: str) -> None:
    async with reading_cluster(1, 1) as (cluster, _), consuming(cluster) as consumer:
        with pytest.raises(TypeError, match=said):
            call(consumer)
        with pytest.raises(ValueError, match="max_records"):
            await consumer.get_batch(0)
