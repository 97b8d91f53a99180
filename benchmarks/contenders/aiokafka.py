"""aiokafka, with its extension in C: `await send`, then every future; a task for each record; `getmany`, `async for`.

Awaiting the futures in a loop at the end was its fastest way (116,000 records/s): in windows of a thousand it was 107,
by `asyncio.gather` 87. Without a key it takes a random partition for each record. It has a `create_batch` as well, for
callers who choose the partition and make up the batch themselves; that is not what is compared here.

Its `async for` asks its fetcher for every record.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from importlib import import_module

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition, __version__

from benchmarks.contenders.client_load import PARTITION_COUNT, Pair
from benchmarks.contenders.job import (
    BATCH_BYTES,
    LINGER_MS,
    TASKS_AT_A_TIME,
    AwaitedSend,
    Client,
    ContenderFailed,
    Job,
    Reading,
    Timing,
    run_sending,
)
from benchmarks.contenders.reading import BATCH_RECORDS, SILENCE_S, group_of, run_reading, went_silent

EXTENSION = "aiokafka.record._crecords."
IN_C = (
    ("aiokafka.record.default_records", "DefaultRecordBatchBuilder"),
    ("aiokafka.record.default_records", "DefaultRecordBatch"),
    ("aiokafka.record.memory_records", "MemoryRecords"),
    ("aiokafka.consumer.fetcher", "MemoryRecords"),
)
"""What writes and reads records, which has to be the extension's."""


def send(job: Job) -> Timing:
    return run_sending(job, producer_of, send_all)


def task_per_record(job: Job) -> Timing:
    return run_sending(job, producer_of, send_by_tasks)


def producer_of(job: Job, linger_ms: int = LINGER_MS) -> AIOKafkaProducer:
    return AIOKafkaProducer(
        bootstrap_servers=job.bootstrap,
        acks="all",
        enable_idempotence=True,
        linger_ms=linger_ms,
        max_batch_size=BATCH_BYTES,
    )


async def send_all(producer: AIOKafkaProducer, topic: str, records: list[Pair]) -> None:
    futures = [await producer.send(topic, value, key) for value, key in records]
    for future in futures:
        if (await future).offset < 0:
            raise ContenderFailed("aiokafka acknowledged a record without an offset")


async def send_by_tasks(producer: AIOKafkaProducer, topic: str, records: list[Pair]) -> None:
    for begin in range(0, len(records), TASKS_AT_A_TIME):
        window = records[begin : begin + TASKS_AT_A_TIME]
        tasks = [asyncio.create_task(producer.send_and_wait(topic, value, key)) for value, key in window]
        for task in tasks:
            if (await task).offset < 0:
                raise ContenderFailed("aiokafka acknowledged a record without an offset")


@contextlib.asynccontextmanager
async def awaited(job: Job) -> AsyncGenerator[AwaitedSend, None]:
    topic = job.load.topic
    async with producer_of(job, linger_ms=0) as producer:

        async def awaited_send(value: bytes) -> object:
            return await producer.send_and_wait(topic, value)

        yield awaited_send


def getmany(job: Job) -> Reading:
    return run_reading(job, consumer_of, take_many)


def async_for(job: Job) -> Reading:
    return run_reading(job, consumer_of, take_each)


@contextlib.asynccontextmanager
async def consumer_of(job: Job) -> AsyncGenerator[AIOKafkaConsumer, None]:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=job.bootstrap, group_id=group_of(job), auto_offset_reset="earliest", check_crcs=True
    )
    consumer.assign([TopicPartition(job.load.topic, number) for number in range(PARTITION_COUNT)])
    async with consumer:
        yield consumer


async def take_many(consumer: AIOKafkaConsumer, wanted: int) -> int:
    count = total = 0
    while count < wanted:
        max_records = min(BATCH_RECORDS, wanted - count)
        found = await consumer.getmany(timeout_ms=int(SILENCE_S * 1000), max_records=max_records)
        if not found:
            raise went_silent("aiokafka", count, wanted)
        for records in found.values():
            for record in records:
                total += record.offset + record.timestamp + record.key[-1] + record.value[-1]
            count += len(records)
    return total


async def take_each(consumer: AIOKafkaConsumer, wanted: int) -> int:
    total = 0
    left = wanted
    async for record in consumer:
        total += record.offset + record.timestamp + record.key[-1] + record.value[-1]
        left -= 1
        if not left:
            break
    return total


def client() -> Client:
    for module, name in IN_C:
        found = getattr(import_module(module), name).__module__
        if not found.startswith(EXTENSION):
            raise ContenderFailed(f"{name} of aiokafka is that of {found}, not of its extension in C")
    idioms = {"send": send, "task per record": task_per_record}
    consuming = {"getmany": getmany, "async for": async_for}
    return Client("aiokafka", __version__, idioms, "with its C extension", awaited, consuming=consuming)
