"""Transactions of our client on Apache Kafka, in both transaction versions and with both protocols of groups."""

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from typing import Literal

import pytest

from odradek import (
    Admin,
    Consumer,
    NewTopic,
    Producer,
    ProducerFenced,
    TopicPartition,
    TransactionFailed,
)
from odradek.client.admin.features import FeatureChange
from processes.apache_kafka import ApacheKafka

pytestmark = [
    pytest.mark.compat,
    pytest.mark.only_in_compat,
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.timeout(180),
]

PROPERTIES = {"offsets.topic.num.partitions": "4", "transaction.state.log.num.partitions": "4"}
RECORDS = 100


@pytest.fixture(scope="module")
def kafka() -> Generator[ApacheKafka]:
    with ApacheKafka(properties=PROPERTIES) as running:
        yield running


@pytest.fixture(params=[1, 2], ids=["v1", "v2"])
async def level(request: pytest.FixtureRequest, kafka: ApacheKafka) -> int:
    """The transaction version that is finalized."""
    wanted = int(request.param)
    async with Admin(kafka.bootstrap) as admin:
        found = (await admin.describe_features())["transaction.version"].finalized
        if found != wanted:
            change = FeatureChange.UPGRADE if wanted > found else FeatureChange.SAFE_DOWNGRADE
            await admin.update_features({"transaction.version": wanted}, change)
    return wanted


@asynccontextmanager
async def topics(kafka: ApacheKafka, name: str) -> AsyncGenerator[tuple[str, str]]:
    """A topic with records, and an empty one."""
    source, target = f"{name}-input", f"{name}-output"
    async with Admin(kafka.bootstrap) as admin:
        await admin.create_topics([NewTopic(source, 2, 1), NewTopic(target, 2, 1)])
    values = [b"%d" % number for number in range(RECORDS)]
    async with Producer(kafka.bootstrap) as producer:
        await producer.send_batch(source, values, values)
    yield source, target


async def committed(kafka: ApacheKafka, topic: str) -> list[int]:
    partitions = [TopicPartition(topic, number) for number in range(2)]
    found: list[int] = []
    reader = Consumer(kafka.bootstrap, auto_offset_reset="earliest", isolation_level="read_committed")
    async with reader:
        reader.assign(partitions)
        ends = await reader.end_offsets(partitions)
        while any([await reader.position(each) < ends[each] for each in partitions]):
            batch = await reader.get_batch(timeout_ms=500)
            found += [int(record.value) for record in batch.records]
    return sorted(found)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_each_input_is_once_in_the_output_whatever_is_aborted(
    kafka: ApacheKafka, level: int, protocol: Literal["classic", "consumer"]
) -> None:
    name = f"v{level}-{protocol}"
    async with topics(kafka, name) as (source, target):
        for aborts_after in (4, 10**6):
            consumer = Consumer(
                kafka.bootstrap,
                group_id=name,
                group_protocol=protocol,
                topics=[source],
                auto_offset_reset="earliest",
                enable_auto_commit=False,
            )
            async with consumer, Producer(kafka.bootstrap, transactional_id=name) as producer:
                await copy(consumer, producer, source, target, aborts_after)
        assert await committed(kafka, target) == list(range(RECORDS))


async def copy(consumer: Consumer, producer: Producer, source: str, target: str, aborts_after: int) -> None:
    """Until all is copied, or so many transactions are; then the last one is aborted by an error."""
    places = [TopicPartition(source, number) for number in range(2)]
    count = 0
    while sum(each.offset for each in (await consumer.committed(places)).values() if each is not None) < RECORDS:
        batch = await consumer.get_batch(7)
        count += 1
        try:
            async with producer.transaction() as txn:
                await txn.send_batch(target, [record.value for record in batch.records])
                await txn.send_offsets(consumer)
                if count > aborts_after:
                    raise KeyError(count)
        except KeyError:
            return


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_a_bound_consumer_goes_back_after_each_abort_and_copies_each_input_once(
    kafka: ApacheKafka, level: int, protocol: Literal["classic", "consumer"]
) -> None:
    name = f"bound-v{level}-{protocol}"
    async with topics(kafka, name) as (source, target):
        consumer = Consumer(
            kafka.bootstrap, group_id=name, group_protocol=protocol, topics=[source], auto_offset_reset="earliest"
        )
        async with consumer, Producer(kafka.bootstrap, transactional_id=name) as producer:
            count = aborted = 0
            while count < RECORDS:
                try:
                    async with producer.transaction(consumer=consumer) as txn:
                        batch = await consumer.get_batch(9, timeout_ms=5_000)
                        await txn.send_batch(target, [record.value for record in batch.records])
                        if batch and aborted < 3 and count >= aborted * 30:
                            aborted += 1
                            raise KeyError(count)
                    count += len(batch)
                except KeyError:
                    continue
            assert aborted == 3
            places = [TopicPartition(source, number) for number in range(2)]
            found = await consumer.committed(places)
            assert sum(each.offset for each in found.values() if each is not None) == RECORDS
        assert await committed(kafka, target) == list(range(RECORDS))


async def test_the_version_that_is_finalized_is_spoken(kafka: ApacheKafka, level: int) -> None:
    async with topics(kafka, f"spoken-{level}") as (_, target):
        async with Producer(kafka.bootstrap, transactional_id="spoken") as producer:
            epochs: set[int] = set()
            for number in range(3):
                async with producer.transaction() as txn:
                    await txn.send(target, b"%d" % number)
                epochs.add(producer._transactions.session._machine.identity.epoch)  # type: ignore[union-attr]  # pyright: ignore
        assert len(epochs) == (3 if level == 2 else 1)
        assert await committed(kafka, target) == [0, 1, 2]


async def test_the_second_producer_fences_the_first(kafka: ApacheKafka, level: int) -> None:
    async with (
        topics(kafka, f"fenced-{level}") as (_, target),
        Producer(kafka.bootstrap, transactional_id="f") as first,
    ):
        txn = await first.transaction().begin()
        await (await txn.send(target, b"1"))
        async with Producer(kafka.bootstrap, transactional_id="f") as second:
            async with second.transaction() as its:
                await its.send(target, b"2")
            with pytest.raises(ProducerFenced):
                await txn.commit()
        assert await committed(kafka, target) == [2]


async def test_after_a_generation_that_is_over_the_next_transaction_is_good(kafka: ApacheKafka, level: int) -> None:
    name = f"stale-{level}"
    async with topics(kafka, name) as (source, target):
        consumer = Consumer(
            kafka.bootstrap, group_id=name, topics=[source], auto_offset_reset="earliest", enable_auto_commit=False
        )
        async with consumer, Producer(kafka.bootstrap, transactional_id=name) as producer:
            await consumer.get_batch(1, timeout_ms=30_000)
            stale = consumer.group_metadata()._replace(generation=1_000)
            with pytest.raises(TransactionFailed, match="ILLEGAL_GENERATION"):
                async with producer.transaction() as txn:
                    await txn.send(target, b"1")
                    await txn.send_offsets({TopicPartition(source, 0): 3}, stale)
            async with producer.transaction() as txn:
                await txn.send(target, b"2")
                await txn.send_offsets({TopicPartition(source, 0): 3}, consumer.group_metadata())
            found = await consumer.committed([TopicPartition(source, 0)])
            assert [each.offset for each in found.values() if each is not None] == [3]
        assert await committed(kafka, target) == [2]


async def test_after_a_record_that_was_refused_the_next_transaction_is_good(kafka: ApacheKafka, level: int) -> None:
    """With version 1 the producer has asked for another epoch by then."""
    name = f"refused-{level}"
    async with Admin(kafka.bootstrap) as admin:
        await admin.create_topics([NewTopic(name, 2, 1, configs={"max.message.bytes": "2000"})])
    async with Producer(kafka.bootstrap, transactional_id=name) as producer:
        for number in (1, 2):
            with pytest.raises(TransactionFailed, match=r"max\.message\.bytes"):
                async with producer.transaction() as txn:
                    await (await txn.send(name, b"0", partition=0))
                    await txn.send(name, bytes(5_000), partition=0)
            async with producer.transaction() as txn:
                await txn.send(name, b"%d" % number, partition=0)
    assert await committed(kafka, name) == [1, 2]
