"""A producer on a scripted cluster: what the tests of one behaviour begin with.

with scripted_cluster() as cluster:
    cluster.create_topic(TOPIC, partitions=3)
    async with producing(cluster, linger_ms=0) as producer: ...
"""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

from odradek.client.producer.producer import Producer
from tests.client.scripted_broker import ScriptedCluster

T = TypeVar("T")

TOPIC: Final = "orders"


def made(cluster: ScriptedCluster, **settings: Any) -> Producer:
    """One that is not started."""
    return Producer(cluster.bootstrap, environment=lambda: cluster.environment, **settings)


@asynccontextmanager
async def producing(cluster: ScriptedCluster, **settings: Any) -> AsyncGenerator[Producer]:
    """One that is closed at the end, and has given all of its memory back then."""
    async with made(cluster, **settings) as producer:
        yield producer
    assert producer.buffer_available_bytes == producer.config.buffer_memory


def begun(what: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """In a task of its own."""
    return asyncio.get_running_loop().create_task(what)


async def turns(count: int) -> None:
    """Gives the loop so many turns."""
    for _ in range(count):
        await asyncio.sleep(0)
