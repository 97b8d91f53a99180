"""The consumer against our own broker in this process, over sockets: codecs, sessions, transactions' bits, columns."""

import asyncio
from typing import Literal

import pytest

from odradek.broker.launch.serving import serving
from odradek.client.admin.admin import Admin
from odradek.client.admin.topics import NewTopic
from odradek.client.consumer.consumer import Consumer
from odradek.client.producer.producer import Producer
from odradek.client.topic_partition import TopicPartition
from tests.client.consuming import read_batches

COUNT = 3_000


@pytest.mark.both_loops
@pytest.mark.parametrize("codec", ["none", "zstd"])
async def test_what_a_producer_has_sent_is_read_in_both_ways(codec: Literal["none", "zstd"]) -> None:
    async with serving(memory=True) as broker:
        servers = broker.bootstrap_servers
        async with Admin(servers) as admin:
            await admin.create_topics([NewTopic("orders", 4, 1)])
        values = [b"%d" % number * 20 for number in range(COUNT)]
        keys = [b"k%d" % (number % 50) for number in range(COUNT)]
        async with Producer(servers, compression_type=codec, batch_size=100_000, linger_ms=20) as producer:
            await producer.send_batch("orders", values, keys)
        async with Consumer(servers, auto_offset_reset="earliest") as consumer:
            partitions = await consumer.partitions_for("orders")
            consumer.assign(partitions)
            found = await read_batches(consumer, COUNT)
            by_partition = {partition: [each for each in found if each[1] == partition[1]] for partition in partitions}
            ends = await consumer.end_offsets(partitions)
            assert {partition: len(records) for partition, records in by_partition.items()} == ends
            for records in by_partition.values():
                assert [record.offset for record in records] == list(range(len(records)))
            assert sorted((record.key, record.value) for record in found) == sorted(zip(keys, values, strict=True))
            consumer.seek_to_beginning()
            again = 0
            async for record in consumer:
                again += len(record.value) > 0
                if again == COUNT:
                    break


async def test_records_that_come_later_are_read_when_they_come() -> None:
    async with serving(memory=True) as broker:
        servers = broker.bootstrap_servers
        async with Producer(servers) as producer, Consumer(servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition("late", 0)])
            waiting = asyncio.get_running_loop().create_task(consumer.get_batch(timeout_ms=10_000))
            await asyncio.sleep(0.05)  # a Fetch waits at the broker by then, mostly; else the test shows less
            await (await producer.send("late", b"1", partition=0))
            assert [record.value for record in await waiting] == [b"1"]
            await (await producer.send("late", b"2", partition=0))
            assert [record.value for record in await consumer.get_batch(timeout_ms=10_000)] == [b"2"]
