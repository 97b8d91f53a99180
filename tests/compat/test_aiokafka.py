"""aiokafka against one broker and three: plain and idempotent, with each codec, read back without a group; and what it
makes of a coordinator that moves."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from odradek import testing
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


async def test_a_coordinator_that_moves_while_it_is_asked_for_offsets_sends_nobody_back() -> None:
    """aiokafka looks at the partitions of an answer alone: where there are none, because the whole answer is an error,
    it takes the group for one that has committed nothing, and begins at the start."""
    async with testing.cluster(brokers=2, topics={"orders": 1}) as kafka:
        await kafka.move_coordinator(group="billing", to=1)
        await kafka.produce("orders", [b"billed", b"new"])

        def billing() -> AIOKafkaConsumer:
            return AIOKafkaConsumer(
                "orders",
                bootstrap_servers=kafka.bootstrap_servers,
                group_id="billing",
                client_id="billing",
                auto_offset_reset="earliest",
                enable_auto_commit=False,
            )

        async with asyncio.timeout(60):
            async with billing() as consumer:
                assert (await consumer.getone()).value == b"billed"
                await consumer.commit({TopicPartition("orders", 0): 1})
            held = kafka.faults.hold(api="OffsetFetch", client_id="billing", times=1)
            async with billing() as consumer:
                await held.wait_until_held()
                await kafka.move_coordinator(group="billing", to=2)
                held.release()
                assert (await consumer.getone()).value == b"new"
        answers = kafka.requests(api="OffsetFetch", client_id="billing")
        assert [each.broker for each in answers] == [1, 1, 2], "of two that begin, the second was refused once"
