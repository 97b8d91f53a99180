"""Odradek: `send` and then every delivery, `send_nowait` and then `flush`, `send_batch`, and a task for each record.

`send_nowait` is for those who do not keep what it returns: `flush` fails if a record did, and nobody asked for it. It
gives the loop a turn every thousand records, as a caller does that has anything else to do, and waits when there is no
room.
"""

import asyncio
import contextlib
import ctypes
import gc
import os
from collections.abc import AsyncGenerator, Callable, Coroutine
from itertools import islice
from typing import Any

from benchmarks.contenders.client_load import Pair
from benchmarks.contenders.job import (
    BATCH_BYTES,
    LINGER_MS,
    OURS,
    TASKS_AT_A_TIME,
    AwaitedSend,
    Client,
    ContenderFailed,
    Filled,
    Job,
    Timing,
    run_sending,
)
from benchmarks.contenders.odradek_consumer import CONSUMING
from benchmarks.host.machine import resident_bytes
from odradek import BufferFull, Producer, __version__

TURN_EVERY = 1000
ROOM_WAIT_S = 0.001
SETTLE_S = 0.2
"""After this long a sender has taken what it can from a full buffer, with no answer coming."""


def send(job: Job) -> Timing:
    return run_sending(job, producer_of, send_all)


def send_nowait(job: Job) -> Timing:
    return run_sending(job, producer_of, send_all_nowait)


def send_batch(job: Job) -> Timing:
    return run_sending(job, producer_of, send_in_bulk)


def task_per_record(job: Job) -> Timing:
    return run_sending(job, producer_of, send_by_tasks)


def producer_of(job: Job, linger_ms: int = LINGER_MS) -> Producer:
    return Producer(job.bootstrap, acks="all", enable_idempotence=True, linger_ms=linger_ms, batch_size=BATCH_BYTES)


async def send_all(producer: Producer, topic: str, records: list[Pair]) -> None:
    deliveries = [await producer.send(topic, value, key=key) for value, key in records]
    for delivery in deliveries:
        check((await delivery).offset)


async def send_all_nowait(producer: Producer, topic: str, records: list[Pair]) -> None:
    await producer.prepare(topic)
    for number, (value, key) in enumerate(records):
        while True:
            try:
                producer.send_nowait(topic, value, key=key)
                break
            except BufferFull:
                await asyncio.sleep(ROOM_WAIT_S)  # until batches have gone
        if number % TURN_EVERY == 0:
            await asyncio.sleep(0)
    await producer.flush()


async def send_in_bulk(producer: Producer, topic: str, records: list[Pair]) -> None:
    values = [value for value, _key in records]
    keys = None if records[0][1] is None else [key for _value, key in records]
    acks = await producer.send_batch(topic, values, keys=keys)
    if len(acks) != len(records):
        raise ContenderFailed(f"Odradek acknowledged {len(acks)} of {len(records)} records")


async def send_by_tasks(producer: Producer, topic: str, records: list[Pair]) -> None:
    async def one(value: bytes, key: bytes | None) -> None:
        delivery = await producer.send(topic, value, key=key)
        check((await delivery).offset)

    for begin in range(0, len(records), TASKS_AT_A_TIME):
        tasks = [asyncio.create_task(one(value, key)) for value, key in records[begin : begin + TASKS_AT_A_TIME]]
        for task in tasks:
            await task


def check(offset: int) -> None:
    if offset < 0:
        raise ContenderFailed("Odradek acknowledged a record without an offset")


@contextlib.asynccontextmanager
async def awaited(job: Job) -> AsyncGenerator[AwaitedSend, None]:
    topic = job.load.topic
    async with producer_of(job, linger_ms=0) as producer:

        async def awaited_send(value: bytes) -> object:
            return await (await producer.send(topic, value))

        yield awaited_send


@contextlib.asynccontextmanager
async def filling(job: Job) -> AsyncGenerator[Callable[[], Coroutine[Any, Any, Filled]], None]:
    """The buffer is as large as it is by default. Neither records nor deliveries are kept here."""
    load = job.load
    records = load.iterate()
    async with producer_of(job) as producer:
        await send_all(producer, load.topic, list(islice(records, load.warm_count)))

        async def fill() -> Filled:
            gc.collect()
            ctypes.CDLL(None).malloc_trim(0)  # what is free already is not to be filled unseen
            resident = resident_bytes(os.getpid())
            payload_bytes = taken = 0
            for value, key in records:
                if not await take(producer, load.topic, value, key):
                    break
                payload_bytes += len(value) + (0 if key is None else len(key))
                taken += 1
                if taken % TURN_EVERY == 0:
                    await asyncio.sleep(0)
            return Filled(resident_bytes(os.getpid()) - resident, payload_bytes, taken)

        yield fill


async def take(producer: Producer, topic: str, value: bytes, key: bytes | None) -> bool:
    """Whether there is room for the record, at once or after the sender has done what it can."""
    for _attempt in range(2):
        try:
            producer.send_nowait(topic, value, key=key)
            return True
        except BufferFull:
            await asyncio.sleep(SETTLE_S)
    return False


def client() -> Client:
    idioms = {"send": send, "send_nowait": send_nowait, "send_batch": send_batch, "task per record": task_per_record}
    return Client(OURS, __version__, idioms, awaited=awaited, filling=filling, consuming=CONSUMING)
