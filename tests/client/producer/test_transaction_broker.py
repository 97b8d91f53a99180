"""Transactions on our own broker in this process, in both versions; a consumer of ours reads what is committed."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from odradek.broker.launch.serving import serving
from odradek.client.admin.admin import Admin
from odradek.client.admin.topics import NewTopic
from odradek.client.consumer.consumer import Consumer
from odradek.client.consumer.group.offsets import OffsetAndMetadata
from odradek.client.errors.broker_errors import ProducerFenced
from odradek.client.errors.client_errors import WrongUse
from odradek.client.errors.transaction_errors import TransactionFailed
from odradek.client.producer.producer import Producer
from odradek.client.topic_partition import TopicPartition
from tests.client.group_readers import FAST, PROTOCOLS, member, send, until

OPTIONS: Mapping[str, str] = FAST | {"transaction.state.log.num.partitions": "2"}
OUTPUT = [TopicPartition("payments", 0), TopicPartition("payments", 1)]


@asynccontextmanager
async def orders(records: int = 0) -> AsyncGenerator[str]:
    async with serving(memory=True, config=OPTIONS) as broker:
        async with Admin(broker.bootstrap_servers) as admin:
            await admin.create_topics([NewTopic("orders", 2, 1), NewTopic("payments", 2, 1)])
        await send(broker.bootstrap_servers, range(records))
        yield broker.bootstrap_servers


async def committed(servers: str) -> list[bytes]:
    """What a reader sees, sorted: all there is."""
    reader = Consumer(servers, auto_offset_reset="earliest", isolation_level="read_committed")
    found: list[bytes] = []
    async with reader:
        reader.assign(OUTPUT)
        ends = await reader.end_offsets(OUTPUT)
        while any([await reader.position(each) < ends[each] for each in OUTPUT]):
            batch = await reader.get_batch(timeout_ms=100)
            found += [record.value for record in batch.records]
    return sorted(found)


async def test_commits_are_read_and_aborts_are_not(version: str) -> None:
    async with orders() as servers:
        async with Producer(servers, transactional_id="a") as producer:
            for number in range(6):
                try:
                    async with producer.transaction() as txn:
                        values = [b"%d-%d" % (number, index) for index in range(20)]
                        await txn.send_batch("payments", values, values)
                        if number % 3 == 1:
                            raise KeyError(number)
                except KeyError:
                    continue
            assert producer._transactions is not None  # pyright: ignore[reportPrivateUsage]
            uses_v2 = producer._transactions.session._machine.uses_v2  # pyright: ignore[reportPrivateUsage]
            assert uses_v2 is (version == "v2")
        expected = [b"%d-%d" % (number, index) for number in (0, 2, 3, 5) for index in range(20)]
        assert await committed(servers) == sorted(expected)


async def test_an_open_transaction_is_not_read(version: str) -> None:
    async with orders() as servers, Producer(servers, transactional_id="a") as producer:
        async with producer.transaction() as txn:
            await (await txn.send("payments", b"1"))
            assert await committed(servers) == []
        assert await committed(servers) == [b"1"]


async def test_the_second_producer_fences_the_first(version: str) -> None:
    async with orders() as servers, Producer(servers, transactional_id="a") as first:
        txn = await first.transaction().begin()
        await (await txn.send("payments", b"zombie"))
        async with Producer(servers, transactional_id="a") as second:
            async with second.transaction() as its:
                await its.send("payments", b"alive")
            with pytest.raises(ProducerFenced):
                await txn.commit()
            with pytest.raises(ProducerFenced):
                await first.transaction().begin()
        assert await committed(servers) == [b"alive"]


async def test_after_a_record_that_was_refused_the_next_transaction_is_good(version: str) -> None:
    async with orders() as servers, Producer(servers, transactional_id="a") as producer:
        async with Admin(servers) as admin:
            await admin.create_topics([NewTopic("small", 1, 1, {"max.message.bytes": "2000"})])
        for number in (1, 2):
            with pytest.raises(TransactionFailed, match=r"max\.message\.bytes"):
                async with producer.transaction() as txn:
                    await (await txn.send("payments", b"0"))
                    await txn.send("small", bytes(5_000))
            async with producer.transaction() as txn:
                await txn.send("small", b"small")
                await txn.send("payments", b"%d" % number)
        assert await committed(servers) == [b"1", b"2"]


async def test_a_transaction_that_timed_out_cannot_be_committed(version: str) -> None:
    async with serving(memory=True, config=OPTIONS) as broker:
        servers = broker.bootstrap_servers
        async with Admin(servers) as admin:
            await admin.create_topics([NewTopic("payments", 2, 1)])
        async with Producer(servers, transactional_id="a", transaction_timeout_ms=200) as producer:
            txn = await producer.transaction().begin()
            await (await txn.send("payments", b"1"))
            async with asyncio.timeout(20):
                while not await _is_decided(servers):  # noqa: ASYNC110 - it happens at the broker, which tells nobody
                    await asyncio.sleep(0.05)
            with pytest.raises((ProducerFenced, TransactionFailed), match="transaction_timeout_ms") as caught:
                await txn.commit()
            assert caught.value.fatal
        assert await committed(servers) == []


async def _is_decided(servers: str) -> bool:
    """Whether the last stable offset has passed what the transaction wrote."""
    reader = Consumer(servers, isolation_level="read_committed")
    async with reader:
        return sum((await reader.end_offsets(OUTPUT)).values()) == 2


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_input_and_output_are_committed_together_or_not_at_all(version: str, protocol: str) -> None:
    async with orders(100) as servers:
        settings = {"enable_auto_commit": False, "isolation_level": "read_committed"}
        for ends_well in (False, True):
            consumer = member(servers, protocol, **settings)
            async with consumer, Producer(servers, transactional_id="a") as out:
                await copy(consumer, out, 100 if ends_well else 60, ends_well=ends_well)
        assert await committed(servers) == sorted(b"%d" % number for number in range(100))


async def copy(consumer: Consumer, out: Producer, count: int, *, ends_well: bool) -> None:
    """Reads, and writes what it has read, so many records in all; the second time it has less to do."""
    inputs = [TopicPartition("orders", 0), TopicPartition("orders", 1)]
    try:
        while True:
            done = await consumer.committed(inputs)
            if sum(each.offset for each in done.values() if each is not None) >= count:
                return
            batch = await consumer.get_batch(7)
            async with out.transaction() as txn:
                await txn.send_batch("payments", [record.value for record in batch.records])
                await txn.send_offsets(consumer)
                if not ends_well and sum(each.offset for each in done.values() if each is not None) >= count / 2:
                    raise KeyError("a crash")
    except KeyError:
        return


async def test_single_records_are_counted_with_the_one_in_hand(version: str) -> None:
    async with orders(10) as servers, member(servers, enable_auto_commit=False) as consumer:
        async with Producer(servers, transactional_id="a") as producer:
            async for record in consumer:
                async with producer.transaction() as txn:
                    await txn.send("payments", record.value)
                    await txn.send_offsets(consumer)
                position = TopicPartition(record.topic, record.partition)
                found = (await consumer.committed([position]))[position]
                assert found is not None
                assert found.offset == record.offset + 1
                if len(await committed(servers)) == 10:
                    break
        assert await consumer.commit() == {}, "nothing is left to be committed"


async def test_what_is_given_beside_a_consumer_counts_up_to_its_end_alone(version: str) -> None:
    async with (
        orders(20) as servers,
        member(servers, enable_auto_commit=False) as consumer,
        Producer(servers, transactional_id="a") as producer,
    ):
        for count in (1, 5):
            batch = await consumer.get_batch(5)
            given = batch.records[0] if count == 1 else batch
            ends = {TopicPartition(each.topic, each.partition): each.offset + 1 for each in batch.records[:count]}
            await consumer.get_batch(5)
            async with producer.transaction() as txn:
                await txn.send_offsets(given, consumer)
            found = await consumer.committed(ends)
            assert {place: each.offset for place, each in found.items() if each is not None} == ends
        with pytest.raises(TypeError, match="a record or a batch"):
            async with producer.transaction() as txn:
                await txn.send_offsets({TopicPartition("orders", 0): 1}, consumer)


async def test_explicit_offsets_count_with_the_transaction_alone(version: str) -> None:
    place = TopicPartition("orders", 0)
    async with (
        orders() as servers,
        Producer(servers, transactional_id="a") as producer,
        Consumer(servers, group_id="from outside", enable_auto_commit=False) as reader,
    ):
        with pytest.raises(KeyError):
            async with producer.transaction() as txn:
                await txn.send_offsets({place: 3}, "from outside")
                raise KeyError
        assert await reader.committed([place]) == {place: None}
        async with producer.transaction() as txn:
            await txn.send_offsets({place: OffsetAndMetadata(5, "note")}, reader.group_metadata())
        assert await reader.committed([place]) == {place: OffsetAndMetadata(5, "note", -1)}


async def test_a_generation_that_is_over_aborts_the_transaction(version: str) -> None:
    async with orders(10) as servers, member(servers, enable_auto_commit=False) as consumer:
        await until(lambda: len(consumer.assignment()) == 2)
        async with Producer(servers, transactional_id="a") as producer:
            stale = consumer.group_metadata()._replace(generation=99)
            with pytest.raises(TransactionFailed, match="ILLEGAL_GENERATION"):
                async with producer.transaction() as txn:
                    await txn.send("payments", b"1")
                    await txn.send_offsets({TopicPartition("orders", 0): 3}, stale)
            async with producer.transaction() as txn:
                await txn.send("payments", b"2")
        assert await committed(servers) == [b"2"]


async def test_a_consumer_that_commits_by_itself_is_refused() -> None:
    async with orders() as servers, member(servers) as consumer, Producer(servers, transactional_id="a") as producer:
        with pytest.raises(WrongUse, match="enable_auto_commit"):
            async with producer.transaction() as txn:
                await txn.send_offsets(consumer)


async def test_a_broker_that_restarts_in_the_middle_is_gone_on_with(version: str, tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        async with serving(tmp_path, config=OPTIONS) as broker:
            servers = broker.bootstrap_servers
            async with Admin(servers) as admin:
                await admin.create_topics([NewTopic("payments", 2, 1)])
            producer = await stack.enter_async_context(Producer(servers, transactional_id="a"))
            txn = await producer.transaction().begin()
            await (await txn.send("payments", b"before", partition=0))
        async with serving(tmp_path, listen=servers, config=OPTIONS):
            await (await txn.send("payments", b"after", partition=1))
            await txn.commit()
            async with producer.transaction() as txn:
                await txn.send("payments", b"next")
            assert await committed(servers) == [b"after", b"before", b"next"]
            await producer.close()
