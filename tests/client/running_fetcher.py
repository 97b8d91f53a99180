"""A `Fetcher` on a scripted cluster in memory that serves reading, and what tests fill in and read out."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from odradek.client.cluster.cluster import Cluster
from odradek.client.fetching.config import FetchConfig
from odradek.client.fetching.fetch_settings import FetchSettings
from odradek.client.fetching.fetcher import Fetcher
from odradek.client.topic_partition import TopicPartition
from odradek.runtime.tasks import Tasks
from tests.client.reading_handlers import Reading, serve_reading
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster

TOPIC = "orders"
P0, P1, P2 = (TopicPartition(TOPIC, index) for index in range(3))


@asynccontextmanager
async def reading_cluster(brokers: int = 3, partitions: int = 3) -> AsyncGenerator[tuple[ScriptedCluster, Reading]]:
    with scripted_cluster(brokers=brokers) as scripted:
        for broker in scripted.brokers.values():
            broker.path.to_client.delay_ms = 5
        scripted.create_topic(TOPIC, partitions)
        yield scripted, serve_reading(scripted)


@asynccontextmanager
async def fetching(scripted: ScriptedCluster, **settings: Any) -> AsyncGenerator[Fetcher]:
    environment = scripted.environment
    config = FetchConfig(scripted.bootstrap, environment=lambda: environment)
    tasks = Tasks(environment.loop)
    cluster = Cluster(config, environment, tasks)
    try:
        await cluster.start()
        async with Fetcher(cluster, environment, FetchSettings(**settings)) as fetcher:
            yield fetcher
    finally:
        await cluster.close()
        await tasks.close()


def values(count: int, prefix: str = "v") -> list[bytes]:
    return [b"%s%d" % (prefix.encode(), number) for number in range(count)]


async def read(fetcher: Fetcher, timeout_ms: float = 60_000) -> dict[int, list[bytes | None]]:
    """Everything up to the ends, by partition."""
    found: dict[int, list[bytes | None]] = {}
    while (batch := await fetcher.next(timeout_ms)) is not None:
        found.setdefault(batch.partition, []).extend(record.value for record in batch.records)
    assert fetcher.is_finished, f"no more came, after {found}"
    return found
