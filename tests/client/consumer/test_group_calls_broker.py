"""Consumers of one group against our own broker in this process, over sockets."""

import re
from collections import Counter

import pytest

from odradek.client.consumer.group.offsets import CommitOutcome, OffsetAndMetadata
from odradek.client.topic_partition import TopicPartition
from tests.client.consuming import read, read_batches
from tests.client.group_readers import PROTOCOLS, Reader, member, orders, send, until


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_what_was_done_is_not_read_again_and_the_rest_is(protocol: str) -> None:
    async with orders() as servers:
        async with member(servers, protocol) as consumer:
            done = await read_batches(consumer, 60, 20)
            hand = await consumer.get_batch(10)
            assert hand
        async with member(servers, protocol) as consumer:
            rest = await read_batches(consumer, 100 - len(done))
        assert sorted(record.value for record in done + rest) == sorted(b"%d" % number for number in range(100))


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_members_share_partitions_as_they_come_and_go(protocol: str) -> None:
    async with orders() as servers:
        first = Reader(await member(servers, protocol).start())
        await until(lambda: len(first.partitions) == 4 and len(first.values) == 100)
        second = Reader(await member(servers, protocol).start())
        await until(lambda: len(first.partitions) == len(second.partitions) == 2)
        assert first.partitions.isdisjoint(second.partitions)
        third = Reader(await member(servers, protocol).start())
        await until(lambda: sorted(len(each.partitions) for each in (first, second, third)) == [1, 1, 2])
        await send(servers, range(100, 200))
        await until(lambda: sum(len(each.values) for each in (first, second, third)) >= 200)
        await second.stop()
        await until(lambda: len(first.partitions) + len(third.partitions) == 4)
        await send(servers, range(200, 300))
        await until(lambda: sum(len(each.values) for each in (first, second, third)) >= 300)
        found = Counter(first.values + second.values + third.values)
        assert found.keys() == {b"%d" % number for number in range(300)}
        assert found.most_common(1)[0][1] <= 2
        for each in (first, third):
            await each.stop()


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_commits_are_answered_partition_by_partition(protocol: str) -> None:
    async with orders(2) as servers:
        async with member(servers, protocol, enable_auto_commit=False) as consumer:
            (record,) = await read(consumer, 1)
            partition = TopicPartition(record.topic, record.partition)
            assert await consumer.commit(record) == {partition: CommitOutcome.COMMITTED}
            foreign = TopicPartition("other", 0)
            offsets: dict[TopicPartition, int | OffsetAndMetadata] = {
                partition: OffsetAndMetadata(1, "note"),
                foreign: 3,
            }
            assert await consumer.commit(offsets) == {
                partition: CommitOutcome.COMMITTED,
                foreign: CommitOutcome.NOT_OURS,
            }
            assert await consumer.committed([partition, foreign]) == {
                partition: OffsetAndMetadata(1, "note", -1),
                foreign: None,
            }
            batch = await consumer.get_batch(50)
            outcomes = await consumer.commit(batch)
            assert set(outcomes.values()) == {CommitOutcome.COMMITTED}
            assert outcomes.keys() == {part.partition for part in batch.parts}
            assert consumer.group_metadata().group_id == "billing"
        async with member(servers, protocol) as consumer:
            again = await read_batches(consumer, 1)
            assert {each.offset for each in again if each.partition == record.partition}.isdisjoint(
                {each.offset for each in batch if each.partition == record.partition}
            )


async def test_a_pattern_leaves_out_internal_topics_and_finds_new_ones() -> None:
    async with orders(1) as servers:
        consumer = member(servers, topics=[], metadata_max_age_ms=200)
        async with consumer:
            consumer.subscribe(re.compile(".*"))
            await read(consumer, 1)
            assert consumer.subscription() == {"orders"}
            reader = Reader(consumer)
            await send(servers, range(100, 110), "payments")
            await until(lambda: consumer.subscription() == frozenset({"orders", "payments"}))
            await until(lambda: b"105" in reader.values)
            await reader.stop()
