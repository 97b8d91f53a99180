"""A consumer of our own that is bound to transactions, on our own broker in this process, with both protocols of groups
and both transaction versions: read, process and write, each record exactly once."""

import asyncio
import logging
from collections import Counter
from typing import Any

import pytest

from odradek.client.admin.admin import Admin
from odradek.client.consumer.consumer import Consumer
from odradek.client.consumer.errors import ConsumerClosed, NoGroup
from odradek.client.errors.client_errors import BatchError, WrongUse
from odradek.client.errors.transaction_errors import TransactionFailed
from odradek.client.producer.producer import Producer
from odradek.client.topic_partition import TopicPartition
from tests.client.group_readers import PROTOCOLS, member, send, until
from tests.client.producer.test_transaction_broker import committed, orders

INPUTS = [TopicPartition("orders", 0), TopicPartition("orders", 1)]
both_protocols = pytest.mark.parametrize("protocol", PROTOCOLS)


def numbers(count: int) -> list[bytes]:
    return sorted(b"%d" % number for number in range(count))


async def stored(servers: str) -> list[int]:
    """What the group has committed, by partition; -1: nothing."""
    async with Consumer(servers, group_id="billing", enable_auto_commit=False) as other:
        return [-1 if each is None else each.offset for each in (await other.committed(INPUTS)).values()]


async def copy_once(consumer: Consumer, producer: Producer, count: int = 7, **batch: Any) -> int:
    async with producer.transaction(consumer=consumer) as txn:
        found = await consumer.get_batch(count, **batch)
        await txn.send_batch("payments", [record.value for record in found.records])
        return len(found)


# ------------------------------------------------------------------------------------------------------------ the way
@both_protocols
async def test_each_record_is_copied_once_whatever_is_aborted(version: str, protocol: str) -> None:
    async with orders(100) as servers, member(servers, protocol) as consumer:
        async with Producer(servers, transactional_id="a") as producer:
            count = aborted = 0
            while len(await committed(servers)) < 100:
                count += 1
                try:
                    async with producer.transaction(consumer=consumer) as txn:
                        batch = await consumer.get_batch(20, timeout_ms=1_000)
                        await txn.send_batch("payments", [record.value for record in batch.records])
                        if count % 3 == 2:
                            raise KeyError(count)
                except KeyError:
                    aborted += 1
            assert aborted > 1
        assert await committed(servers) == numbers(100)
        assert sum(await stored(servers)) == 100


async def test_records_one_by_one_are_read_again_after_an_abort(version: str) -> None:
    async with orders(40) as servers, member(servers) as consumer, Producer(servers, transactional_id="a") as producer:
        seen: list[bytes] = []
        for is_good in (False, True, False, True):
            try:
                async with producer.transaction(consumer=consumer) as txn:
                    async for record in consumer:
                        seen.append(record.value)
                        await txn.send("payments", record.value)
                        if len(seen) % 10 == 0:
                            break
                    if not is_good:
                        raise KeyError
            except KeyError:
                continue
        assert sorted(seen[10:20] + seen[30:]) == await committed(servers)
        assert sum(await stored(servers)) == 20
        assert len(set(seen[10:20] + seen[30:])) == 20


@both_protocols
async def test_nothing_is_committed_but_by_transactions(protocol: str, caplog: pytest.LogCaptureFixture) -> None:
    """Neither in the background, nor by marks, nor when partitions are given up, nor at the end."""
    async with orders(20) as servers:
        async with (
            member(servers, protocol, auto_commit_interval_ms=10) as consumer,
            Producer(servers, transactional_id="a") as producer,
        ):
            txn = await producer.transaction(consumer=consumer).begin()
            batch = await consumer.get_batch(5)
            consumer.done(batch)
            await consumer.get_batch(5)
            await asyncio.sleep(0.1)  # ten times the interval of commits: there is none
            assert await stored(servers) == [-1, -1]
            consumer.unsubscribe()
            await until(lambda: not consumer.assignment())
            assert await stored(servers) == [-1, -1]
            await txn.abort()
        async with member(servers, protocol) as consumer, Producer(servers, transactional_id="a") as producer:
            async with producer.transaction(consumer=consumer):
                await consumer.get_batch(5)
            before = await stored(servers)
            await consumer.get_batch(5)
        assert await stored(servers) == before


@pytest.mark.parametrize("by", ["offset", "record"])
async def test_offsets_that_the_program_names_are_all_that_is_committed(by: str) -> None:
    async with orders(20) as servers, member(servers) as consumer, Producer(servers, transactional_id="a") as producer:
        async with producer.transaction(consumer=consumer) as txn:
            batch = await consumer.get_batch(10)
            first = batch.records[0]
            place = TopicPartition(first.topic, first.partition)
            if by == "offset":
                await txn.send_offsets({place: first.offset + 1}, consumer.group_metadata())
            else:
                await txn.send_offsets(first, consumer)
        assert (await consumer.committed([place]))[place].offset == first.offset + 1  # type: ignore[union-attr]
        assert sum(max(each, 0) for each in await stored(servers)) == 1
        async with producer.transaction(consumer=consumer):
            pass
        assert sum(await stored(servers)) == 10


async def test_where_nothing_is_committed_latest_does_not_leave_aborted_records_out() -> None:
    async with orders(20) as servers, member(servers, auto_offset_reset="latest") as consumer:
        async with Producer(servers, transactional_id="a") as producer:
            with pytest.raises(KeyError):
                async with producer.transaction(consumer=consumer):
                    await until(lambda: len(consumer.assignment()) == 2)
                    for place in INPUTS:
                        await consumer.position(place)
                    await send(servers, range(20, 30))
                    assert await consumer.get_batch(timeout_ms=5_000)
                    raise KeyError
            while len(await committed(servers)) < 10:
                await copy_once(consumer, producer, 100, timeout_ms=1_000)
        assert await committed(servers) == sorted(b"%d" % number for number in range(20, 30))


# ------------------------------------------------------------------------------------------------------- other members
@both_protocols
async def test_partitions_are_given_up_once_the_open_transaction_has_ended(version: str, protocol: str) -> None:
    async with orders(40) as servers, member(servers, protocol) as first:
        async with Producer(servers, transactional_id="a") as producer:
            txn = await producer.transaction(consumer=first).begin()
            await until(lambda: len(first.assignment()) == 2)
            values: list[bytes] = []
            while len(values) < 40:
                values += [record.value for record in (await first.get_batch(40)).records]
            async with member(servers, protocol) as second:
                for _ in range(10):  # asks, as a program does that waits for more
                    assert not await first.get_batch(timeout_ms=30)
                assert second.assignment() == frozenset()
                await txn.send_batch("payments", values)
                await txn.commit()
                await until(lambda: len(second.assignment()) == len(first.assignment()) == 1)
                assert not await second.get_batch(timeout_ms=200), "it begins where the transaction has ended"
        assert await committed(servers) == numbers(40)


@both_protocols
async def test_a_transaction_that_is_open_for_too_long_loses_its_partitions(protocol: str) -> None:
    async with orders(20) as servers, member(servers, protocol, max_poll_interval_ms=700) as first:
        async with Producer(servers, transactional_id="a") as producer:
            txn = await producer.transaction(consumer=first).begin()
            batch = await first.get_batch(20)
            await txn.send_batch("payments", [record.value for record in batch.records])
            async with member(servers, protocol) as second, Producer(servers, transactional_id="b") as other:
                while sum(await stored(servers)) < 20:  # nobody reads the output before the first one has ended
                    await copy_once(second, other, 20, timeout_ms=500)
                with pytest.raises(TransactionFailed, match="was taken away while its records were in work"):
                    await txn.commit()
                assert not await first.get_batch(timeout_ms=200)
        assert await committed(servers) == numbers(20)


@both_protocols
async def test_members_come_and_go_and_each_record_is_copied_once(version: str, protocol: str) -> None:
    async with orders(120) as servers:
        outcomes = Counter[str]()

        async def work(name: str, transactions: int) -> None:
            settings: dict[str, Any] = {"group_instance_id": name} if name.startswith("static") else {}
            consumer, producer = member(servers, protocol, **settings), Producer(servers, transactional_id=name)
            async with consumer, producer:
                for number in range(transactions):
                    try:
                        async with producer.transaction(consumer=consumer) as txn:
                            batch = await consumer.get_batch(9, timeout_ms=200)
                            await txn.send_batch("payments", [record.value for record in batch.records])
                            if number % 4 == 1:
                                raise KeyError(number)
                        outcomes["committed"] += 1
                    except (KeyError, TransactionFailed, BatchError) as error:
                        outcomes[type(error).__name__] += 1

        async with asyncio.timeout(60):
            turns = 0
            while len(await committed(servers)) < 120:
                turns += 1
                await asyncio.gather(work("static-1", 6), work("dynamic", 3), work(f"dynamic-{turns}", 2))
        assert await committed(servers) == numbers(120)
        assert outcomes["committed"] and outcomes["KeyError"]


async def test_a_member_that_was_removed_hears_of_it_by_its_commit() -> None:
    """Its next heartbeat would tell it after a minute."""
    slow: dict[str, Any] = {"heartbeat_interval_ms": 60_000, "session_timeout_ms": 120_000}
    async with orders(20) as servers, member(servers, **slow) as consumer:
        async with Producer(servers, transactional_id="a") as producer, Admin(servers) as admin:
            with pytest.raises(TransactionFailed, match="UNKNOWN_MEMBER_ID"):
                async with producer.transaction(consumer=consumer) as txn:
                    batch = await consumer.get_batch(5, timeout_ms=5_000)
                    await txn.send_batch("payments", [record.value for record in batch.records])
                    await admin.remove_group_members("billing")
            async with asyncio.timeout(20):
                while len(await committed(servers)) < 20:
                    await copy_once(consumer, producer, timeout_ms=1_000)
        assert await committed(servers) == numbers(20)


# ------------------------------------------------------------------------------------------------------ what is refused
async def test_a_consumer_that_has_handed_out_records_comes_too_late() -> None:
    async with orders(20) as servers, member(servers) as consumer, Producer(servers, transactional_id="a") as producer:
        assert await consumer.get_batch(1, timeout_ms=5_000)
        with pytest.raises(WrongUse, match=r"handed out records already.*before the first record"):
            producer.transaction(consumer=consumer)


async def test_a_consumer_without_a_group_or_closed_is_refused() -> None:
    async with orders() as servers, Producer(servers, transactional_id="a") as producer:
        async with Consumer(servers) as consumer:
            with pytest.raises(NoGroup):
                producer.transaction(consumer=consumer)
        with pytest.raises(ConsumerClosed):
            producer.transaction(consumer=consumer)


async def test_commits_of_its_own_are_refused_once_it_is_bound() -> None:
    async with orders(10) as servers, member(servers) as consumer, Producer(servers, transactional_id="a") as producer:
        async with producer.transaction(consumer=consumer):
            batch = await consumer.get_batch(5)
            with pytest.raises(WrongUse, match=r"transactions of a commit for this consumer.*send_offsets"):
                await consumer.commit(batch)
            with pytest.raises(WrongUse, match="transactions of a commit"):
                consumer.commit_in_background()
        async with producer.transaction() as txn:
            with pytest.raises(WrongUse, match=r"producer\.transaction\(consumer=…\)"):
                await txn.send_offsets(consumer)


async def test_another_producer_gets_it_once_the_first_is_closed_and_reads_again() -> None:
    async with orders(20) as servers, member(servers) as consumer:
        async with Producer(servers, transactional_id="a") as producer:
            await copy_once(consumer, producer, 5, timeout_ms=5_000)
            async with Producer(servers, transactional_id="b") as other:
                with pytest.raises(WrongUse, match="bound to the transactions of a"):
                    other.transaction(consumer=consumer)
            txn = await producer.transaction(consumer=consumer).begin()
            batch = await consumer.get_batch(5, timeout_ms=5_000)
            await txn.send_batch("payments", [record.value for record in batch.records])
        async with Producer(servers, transactional_id="b") as other:
            while len(await committed(servers)) < 20:
                await copy_once(consumer, other, 5, timeout_ms=1_000)
        assert await committed(servers) == numbers(20)


async def test_partitions_assigned_by_hand_are_copied_once_too() -> None:
    async with orders(20) as servers, member(servers, topics=[]) as consumer:
        consumer.assign(INPUTS)
        async with Producer(servers, transactional_id="a") as producer:
            with pytest.raises(KeyError):
                async with producer.transaction(consumer=consumer):
                    assert await consumer.get_batch(10, timeout_ms=5_000)
                    raise KeyError
            while len(await committed(servers)) < 20:
                await copy_once(consumer, producer, timeout_ms=1_000)
        assert await committed(servers) == numbers(20)
        assert sum(await stored(servers)) == 20


async def test_a_consumer_that_is_closed_in_its_transaction_makes_an_abort_of_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.CRITICAL)
    async with orders(20) as servers, Producer(servers, transactional_id="a") as producer:
        consumer = await member(servers).start()
        with pytest.raises(TransactionFailed, match="was taken away"):
            async with producer.transaction(consumer=consumer) as txn:
                batch = await consumer.get_batch(10, timeout_ms=5_000)
                await txn.send_batch("payments", [record.value for record in batch.records])
                await consumer.close()
        assert await committed(servers) == []
        assert await stored(servers) == [-1, -1]
