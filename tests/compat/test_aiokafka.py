"""aiokafka against one broker and three: plain and idempotent, with each codec, read back without a group."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from tests.compat.clusters import Ours

pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]


async def send(broker: Ours, topic: str, count: int, **settings: Any) -> None:
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap, linger_ms=5, **settings) as producer:
        deliveries = [await producer.send(topic, b"value %d" % number) for number in range(count)]
        await asyncio.gather(*deliveries)


async def read_back(broker: Ours, topic: str, count: int) -> Counter[bytes]:
    values: Counter[bytes] = Counter()
    async with AIOKafkaConsumer(
        topic, bootstrap_servers=broker.bootstrap, group_id=None, auto_offset_reset="earliest"
    ) as consumer:
        async with asyncio.timeout(120):
            while values.total() < count:
                for records in (await consumer.getmany(timeout_ms=1000)).values():
                    values.update(record.value for record in records)
        partitions = [TopicPartition(topic, index) for index in consumer.partitions_for_topic(topic) or ()]
        assert sum((await consumer.end_offsets(partitions)).values()) == count
    return values


@pytest.mark.parametrize(
    "settings",
    [
        {},
        pytest.param({"enable_idempotence": True}, marks=pytest.mark.telling),
        {"acks": 0},
        {"compression_type": "gzip"},
        {"compression_type": "lz4"},
        {"compression_type": "zstd"},
        {"compression_type": "snappy"},
    ],
    ids=lambda settings: "-".join(map(str, settings.values())) or "defaults",
)
async def test_produce_and_consume(
    broker: Ours, record_count: int, settings: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    topic = "aio-" + "-".join(map(str, settings.values())) if settings else "aio-defaults"
    await send(broker, topic, record_count, **settings)
    assert await read_back(broker, topic, record_count) == Counter(
        b"value %d" % number for number in range(record_count)
    )
