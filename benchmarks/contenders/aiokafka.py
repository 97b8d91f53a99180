"""aiokafka, with its extension in C: `await send`, then every future; and with a task for each record.

Awaiting the futures in a loop at the end was its fastest way (116,000 records/s): in windows of a thousand it was 107,
by `asyncio.gather` 87. Without a key it takes a random partition for each record. It has a `create_batch` as well, for
callers who choose the partition and make up the batch themselves; that is not what is compared here.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from importlib import import_module

from aiokafka import AIOKafkaProducer, __version__

from benchmarks.contenders.client_load import Pair
from benchmarks.contenders.job import (
    BATCH_BYTES,
    LINGER_MS,
    TASKS_AT_A_TIME,
    AwaitedSend,
    Client,
    ContenderFailed,
    Job,
    Timing,
    run_sending,
)

EXTENSION = "aiokafka.record._crecords."


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


def client() -> Client:
    builder = import_module("aiokafka.record.default_records").DefaultRecordBatchBuilder
    if not builder.__module__.startswith(EXTENSION):
        raise ContenderFailed(f"aiokafka builds batches with {builder.__module__}, not with its extension in C")
    idioms = {"send": send, "task per record": task_per_record}
    return Client("aiokafka", __version__, idioms, "with its C extension", awaited)
