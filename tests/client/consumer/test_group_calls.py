"""The calls about groups on our own broker: arguments, subscriptions that change, commits in the background."""

import asyncio
from typing import Any

import pytest

from odradek.client.admin.admin import Admin
from odradek.client.consumer.errors import ConsumerClosed, NoGroup
from odradek.client.consumer.group.offsets import CommitFailed, CommitOutcome, OffsetAndMetadata
from odradek.client.errors.client_errors import WrongUse
from odradek.client.topic_partition import TopicPartition
from tests.client.consuming import read, read_batches
from tests.client.group_readers import PROTOCOLS, Reader, member, orders, send, until

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)

both_protocols = pytest.mark.parametrize("protocol", PROTOCOLS)


async def test_wrong_arguments_are_named() -> None:
    async with orders(1, 1) as servers, member(servers, topics=[]) as consumer:
        wrong: list[tuple[type[Exception], Any]] = [
            (TypeError, lambda: consumer.subscribe("orders")),
            (TypeError, lambda: consumer.subscribe([1])),  # type: ignore[list-item]
            (ValueError, lambda: consumer.subscribe([""])),
            (ValueError, lambda: consumer.subscribe(["a"], pattern="b")),
            (TypeError, lambda: consumer.subscribe(["a"], on_lost=3)),  # type: ignore[arg-type]
        ]
        for kind, call in wrong:
            with pytest.raises(kind):
                call()
        for offsets in ({P0: -1}, {P0: "5"}, {"orders": 1}, 7):
            with pytest.raises((TypeError, ValueError)):
                await consumer.commit(offsets)  # type: ignore[arg-type]
        consumer.assign([P0])
        with pytest.raises(WrongUse, match="assigned by hand"):
            consumer.subscribe(["orders"])
        consumer.unsubscribe()
        consumer.subscribe(["orders"])
        with pytest.raises(WrongUse, match="the group assigns"):
            consumer.assign([P0])
    with pytest.raises(ConsumerClosed):
        await consumer.commit()


async def test_without_a_group_there_are_no_group_calls() -> None:
    async with orders(1, 1) as servers, member(servers, group_id=None, topics=[]) as consumer:
        for call in (consumer.group_metadata, consumer.commit_in_background, lambda: consumer.subscribe(["orders"])):
            with pytest.raises(NoGroup):
                call()
        with pytest.raises(NoGroup):
            await consumer.commit()
        assert consumer.subscription() == frozenset()


@both_protocols
async def test_a_subscription_can_be_changed_and_ended(protocol: str) -> None:
    async with orders(2, 10) as servers:
        await send(servers, range(5), "refunds")
        async with member(servers, protocol) as consumer:
            assert len(await read_batches(consumer, 10)) == 10
            consumer.subscribe(["refunds"])
            assert {record.topic for record in await read_batches(consumer, 5)} == {"refunds"}
            await until(lambda: consumer.assignment() == frozenset({TopicPartition("refunds", 0)}))
            consumer.unsubscribe()
            await until(lambda: not consumer.assignment())
            async with Admin(servers) as admin:
                await until_empty(admin)
            consumer.subscribe(["orders", "refunds"])
            again = await read_batches(consumer, 5)  # those that were in hand
            assert {record.topic for record in again} == {"refunds"}


async def until_empty(admin: Admin) -> None:
    async with asyncio.timeout(10):
        while (await admin.describe_groups(["billing"]))["billing"].members:  # noqa: ASYNC110 - a broker tells nobody
            await asyncio.sleep(0.01)


@both_protocols
async def test_new_partitions_are_picked_up_and_read_from_their_beginning(protocol: str) -> None:
    async with orders(1, 10) as servers:
        settings: dict[str, Any] = {"auto_offset_reset": "latest", "metadata_max_age_ms": 200}
        async with member(servers, protocol, **settings) as consumer:
            await until(lambda: bool(consumer.assignment()))
            await consumer.position(P0)
            await consumer.commit()
            async with Admin(servers) as admin:
                await admin.create_partitions({"orders": 3})
            await send(servers, range(30))
            reader = Reader(consumer)
            await until(lambda: len(reader.values) == 30)
            assert len(consumer.assignment()) == 3
            await reader.stop()


@both_protocols
async def test_a_static_member_keeps_its_partitions_through_a_restart(protocol: str) -> None:
    async with orders(2, 10) as servers:
        other = Reader(await member(servers, protocol).start())
        first = Reader(await member(servers, protocol, group_instance_id="i-1").start())
        await until(lambda: len(first.partitions) == len(other.partitions) == 1)
        had, kept = first.partitions, other.partitions
        await first.stop()
        again = Reader(await member(servers, protocol, group_instance_id="i-1").start())
        await until(lambda: again.partitions == had)
        assert other.partitions == kept
        await again.stop()
        await other.stop()


async def test_commits_in_the_background_go_out_in_order_and_tell() -> None:
    told: list[dict[TopicPartition, CommitOutcome] | CommitFailed] = []
    async with orders(1, 10) as servers, member(servers, enable_auto_commit=False) as consumer:
        await read(consumer, 1)
        for offset in (3, 4, 5):
            consumer.commit_in_background({P0: offset}, told.append)
        consumer.commit_in_background({P0: OffsetAndMetadata(6, "x" * 10_000)}, told.append)
        await until(lambda: len(told) == 4)
        assert told[:3] == [{P0: CommitOutcome.COMMITTED}] * 3
        assert isinstance(told[3], CommitFailed)
        assert (await consumer.committed([P0]))[P0] == OffsetAndMetadata(5)


@both_protocols
async def test_records_by_partition_end_when_it_is_taken_away(protocol: str) -> None:
    async with orders(2, 20) as servers, member(servers, protocol) as consumer:
        ended: list[TopicPartition] = []
        done: list[bytes] = []

        async def work(partition: TopicPartition, records: Any) -> None:
            async for record in records:
                done.append(record.value)
                consumer.done(record)
            ended.append(partition)

        async def spread() -> None:
            async for partition, records in consumer.by_partition():
                tasks.append(asyncio.get_running_loop().create_task(work(partition, records)))

        tasks: list[asyncio.Task[None]] = []
        spreading = asyncio.get_running_loop().create_task(spread())
        await until(lambda: len(done) == 20)
        other = Reader(await member(servers, protocol).start())
        await until(lambda: len(other.partitions) == len(consumer.assignment()) == 1)
        assert other.partitions <= set(ended)
        assert other.values == []
        await other.stop()
        await consumer.close()
        await asyncio.gather(spreading, *tasks)
