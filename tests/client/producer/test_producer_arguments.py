"""Arguments of a wrong kind are refused by name, before anything of the record is accepted."""

import asyncio
import re
from collections.abc import AsyncIterator
from functools import partial
from typing import Any, cast

import pytest

from odradek.client.producer.results.delivery import Delivery
from tests.client.producing import TOPIC, producing
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster
from tests.client.virtual_time import threads_run

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def cluster() -> AsyncIterator[ScriptedCluster]:
    with scripted_cluster() as cluster:
        cluster.create_topic(TOPIC, partitions=1)
        yield cluster


async def awaited(delivery: Delivery) -> None:
    raise AssertionError("nobody awaits it")


class Awaited:
    async def __call__(self, delivery: Delivery) -> None: ...


@pytest.mark.parametrize("callback", [awaited, partial(awaited), Awaited(), 5])
async def test_a_callback_that_nobody_would_await_is_refused(cluster: ScriptedCluster, callback: Any) -> None:
    async with producing(cluster) as producer:
        await producer.prepare(TOPIC)
        with pytest.raises(TypeError, match="on_delivery must be a callable"):
            await producer.send(TOPIC, b"v", on_delivery=callback)
        with pytest.raises(TypeError, match="on_delivery must be a callable"):
            producer.send_nowait(TOPIC, b"v", on_delivery=callback)
        delivery = await producer.send(TOPIC, b"sent")
        with pytest.raises(TypeError, match="the callback must be a callable"):
            delivery.add_done_callback(callback)
        await delivery
        with pytest.raises(TypeError, match="the callback must be a callable"):
            delivery.add_done_callback(callback)
    assert cluster.values(TOPIC) == [b"sent"]


@pytest.mark.parametrize("topic", [b"orders", None, 5, ["orders"], {"orders"}, ("orders", 0)])
async def test_what_is_no_name_of_a_topic_is_refused_by_name(cluster: ScriptedCluster, topic: Any) -> None:
    wanted = re.escape(f"topic must be a topic's name (str), not {topic!r} ({type(topic).__name__})")
    async with producing(cluster) as producer:
        await producer.prepare(TOPIC)
        for partition in (None, 0):
            with pytest.raises(TypeError, match=wanted):
                await producer.send(topic, b"v", partition=partition)
            with pytest.raises(TypeError, match=wanted):
                producer.send_nowait(topic, b"v", partition=partition)
        for values in ([b"v"], []):
            with pytest.raises(TypeError, match=wanted):
                await producer.send_batch(topic, values)
        with pytest.raises(TypeError, match=re.escape(f"prepare must be topics' names (str), and has {topic!r}")):
            await producer.prepare(TOPIC, topic)
        with threads_run(), pytest.raises(TypeError, match=wanted):
            await asyncio.wrap_future(producer.send_threadsafe(topic, b"v"))
    assert cluster.values(TOPIC) == []


@pytest.mark.parametrize("partition", ["0", b"0", [0], {}, 0.5])
async def test_what_is_no_number_of_a_partition_is_refused_by_name(cluster: ScriptedCluster, partition: Any) -> None:
    wanted = re.escape(f"partition must be a whole number or None, not {partition!r}")
    async with producing(cluster) as producer:
        await producer.prepare(TOPIC)
        with pytest.raises(TypeError, match=wanted):
            await producer.send(TOPIC, b"v", partition=partition)
        with pytest.raises(TypeError, match=wanted):
            producer.send_nowait(TOPIC, b"v", partition=partition)
        with pytest.raises(TypeError, match=wanted):
            await producer.send_batch(TOPIC, [b"v"], partition=partition)
    assert cluster.values(TOPIC) == []


@pytest.mark.parametrize("column", ["abc", b"abc", 5])
@pytest.mark.parametrize("name", ["values", "keys", "timestamps_ms", "headers"])
async def test_what_is_no_column_is_refused_before_anything_is_sent(
    cluster: ScriptedCluster, name: str, column: Any
) -> None:
    """A text would be sent by its characters."""
    async with producing(cluster) as producer:
        columns: dict[str, Any] = {"values": [b"v"]} | {name: column}
        with pytest.raises(TypeError, match=f"{name} must be an iterable with an item for each record, not "):
            await producer.send_batch(TOPIC, **columns)
    assert cluster.values(TOPIC) == []


async def test_only_deliveries_can_be_gathered(cluster: ScriptedCluster) -> None:
    async with producing(cluster) as producer:
        sending = producer.send(TOPIC, b"v")
        with pytest.raises(TypeError, match="deliveries must be Delivery objects, as send returns them when awaited"):
            await producer.gather(cast(Any, [sending]))
        assert await producer.gather([await sending])
        with pytest.raises(TypeError, match="deliveries must be an iterable of Delivery objects, not 5"):
            await producer.gather(cast(Any, 5))
