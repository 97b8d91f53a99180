"""A consumer on a scripted cluster that serves reading: what the tests of one behaviour begin with.

async with reading_cluster() as (cluster, reading):
    fill(cluster, TOPIC, 0, values(10))
    async with consuming(cluster) as consumer: ...
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from odradek.client.consumer.consumer import Consumer
from odradek.client.consumer.records import ConsumerRecord
from tests.client.scripted_broker import ScriptedCluster


def made(cluster: ScriptedCluster, **settings: Any) -> Consumer:
    """One that is not started."""
    settings.setdefault("auto_offset_reset", "earliest")
    return Consumer(cluster.bootstrap, environment=lambda: cluster.environment, **settings)


@asynccontextmanager
async def consuming(cluster: ScriptedCluster, **settings: Any) -> AsyncGenerator[Consumer]:
    async with made(cluster, **settings) as consumer:
        yield consumer


async def read(consumer: Consumer, count: int) -> list[ConsumerRecord]:
    """So many records, by `async for`."""
    found: list[ConsumerRecord] = []
    async for record in consumer:
        found.append(record)
        if len(found) == count:
            break
    return found


async def read_batches(consumer: Consumer, count: int, max_records: int = 10_000) -> list[ConsumerRecord]:
    """The same by `get_batch`; fewer where no more come."""
    found: list[ConsumerRecord] = []
    while len(found) < count and (batch := await consumer.get_batch(max_records, 5_000)):
        found += batch.records
    return found
