"""Partitions by themselves: side by side, each in order, to the end of their assignment; done when it is said."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from odradek.client.consumer.consumer import Consumer
from odradek.client.consumer.records import ConsumerRecord
from odradek.client.topic_partition import TopicPartition
from tests.client.consuming import consuming
from tests.client.producing import begun
from tests.client.reading_handlers import fill
from tests.client.running_fetcher import P0, P1, P2, TOPIC, reading_cluster, values

pytestmark = pytest.mark.virtual_time


class Workers:
    """A task for each partition, which notes what it gets, and when its partition ends."""

    def __init__(self, consumer: Consumer, *, is_slow: TopicPartition | None = None) -> None:
        self.consumer = consumer
        self.is_slow = is_slow
        self.seen: dict[TopicPartition, list[int]] = {}
        self.ended: list[TopicPartition] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.main = begun(self.run())

    async def run(self) -> None:
        async for partition, records in self.consumer.by_partition():
            self.tasks.append(begun(self.work(partition, records)))

    async def work(self, partition: TopicPartition, records: AsyncIterator[ConsumerRecord]) -> None:
        async for record in records:
            self.seen.setdefault(partition, []).append(record.offset)
            if partition == self.is_slow:
                await asyncio.sleep(0.1)
            self.consumer.done(record)
        self.ended.append(partition)


def done(consumer: Consumer) -> dict[TopicPartition, int]:
    found = consumer._core.committable()  # pyright: ignore[reportPrivateUsage]
    return {partition: each.offset for partition, each in found.items()}


async def test_a_slow_partition_holds_up_no_other_and_each_is_in_order() -> None:
    async with reading_cluster() as (cluster, _), consuming(cluster) as consumer:
        for index in range(3):
            fill(cluster, TOPIC, index, values(20), values(20))
        consumer.assign([P0, P1, P2])
        workers = Workers(consumer, is_slow=P1)
        await asyncio.sleep(0.45)
        assert workers.seen == {P0: list(range(40)), P1: list(range(5)), P2: list(range(40))}
        assert done(consumer) == {P0: 40, P1: 4, P2: 40}
        await consumer.close()
        await asyncio.wait_for(workers.main, 1)
        await asyncio.gather(*workers.tasks)
        assert workers.seen[P1] == list(range(5)), "closing ends what was at hand"


async def test_records_end_when_their_partition_is_taken_away() -> None:
    async with reading_cluster() as (cluster, _), consuming(cluster) as consumer:
        for index in range(2):
            fill(cluster, TOPIC, index, values(20))
        consumer.assign([P0, P1])
        workers = Workers(consumer, is_slow=P0)
        await asyncio.sleep(0.15)
        consumer.assign([P1])
        await asyncio.sleep(0.1)
        assert workers.ended == [P0]
        assert workers.seen == {P0: [0, 1], P1: list(range(20))}
        assert done(consumer) == {P1: 20}
        consumer.assign({P0: 18, P1: 0})
        await asyncio.sleep(0.35)
        assert workers.seen[P0] == [0, 1, 18, 19], "it is there again, by another iterator"
        assert P1 in workers.ended
        assert workers.seen[P1] == list(range(20)) * 2
        assert len(workers.tasks) == 4
        await consumer.close()
        await asyncio.gather(workers.main, *workers.tasks)


async def test_only_what_is_said_to_be_done_counts() -> None:
    async with reading_cluster(1, 1) as (cluster, _), consuming(cluster) as consumer:
        fill(cluster, TOPIC, 0, values(5))
        consumer.assign([P0])
        async for _, records in consumer.by_partition():
            first, second = [await anext(records) for _ in range(2)]
            assert done(consumer) == {P0: 0}
            consumer.done(second)
            assert done(consumer) == {P0: 0}
            consumer.done(first)
            assert done(consumer) == {P0: 2}
            consumer.pause(P0)
            consumer.seek(P0, 4)
            consumer.resume(P0)
            assert (await anext(records)).offset == 4
            break
