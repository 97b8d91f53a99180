"""Odradek's consumer: `get_batch` with a walk over its columns, and `async for`.

The sockets' buffers are the system's, as those of the other clients are; by default ours, like Java's, are 64 KiB.
"""

import contextlib
from collections.abc import AsyncGenerator

from benchmarks.contenders.client_load import PARTITION_COUNT
from benchmarks.contenders.job import OURS, Job, Reading
from benchmarks.contenders.reading import BATCH_RECORDS, SILENCE_S, group_of, run_reading, went_silent
from odradek import Consumer, TopicPartition


def get_batch(job: Job) -> Reading:
    return run_reading(job, consumer_of, take_batches)


def async_for(job: Job) -> Reading:
    return run_reading(job, consumer_of, take_each)


@contextlib.asynccontextmanager
async def consumer_of(job: Job) -> AsyncGenerator[Consumer, None]:
    async with Consumer(
        job.bootstrap, group_id=group_of(job), auto_offset_reset="earliest", receive_buffer_bytes=-1
    ) as consumer:
        consumer.assign([TopicPartition(job.load.topic, number) for number in range(PARTITION_COUNT)])
        yield consumer


async def take_batches(consumer: Consumer, wanted: int) -> int:
    count = total = 0
    while count < wanted:
        batch = await consumer.get_batch(min(BATCH_RECORDS, wanted - count), timeout_ms=SILENCE_S * 1000)
        if not batch:
            raise went_silent(OURS, count, wanted)
        for part in batch.parts:
            columns = zip(part.offsets, part.timestamps_ms, part.keys, part.values, strict=True)
            for offset, timestamp_ms, key, value in columns:
                total += offset + timestamp_ms + key[-1] + value[-1]
        count += len(batch)
    return total


async def take_each(consumer: Consumer, wanted: int) -> int:
    total = 0
    left = wanted
    async for record in consumer:
        total += record.offset + record.timestamp_ms + record.key[-1] + record.value[-1]
        left -= 1
        if not left:
            break
    return total


CONSUMING = {"get_batch": get_batch, "async for": async_for}
