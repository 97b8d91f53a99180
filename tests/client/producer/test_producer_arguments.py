"""Arguments of a wrong kind are refused by name, before anything of the record is accepted."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from client.producer.delivery import Delivery
from tests.client.producing import TOPIC, producing
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster

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
