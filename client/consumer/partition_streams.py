"""The records of each partition by themselves: concurrency between partitions, and order within each.

    async for partition, records in consumer.by_partition():
        tasks.create_task(work(records))                     # async for record in records: …; consumer.done(record)

A partition comes up when it is assigned, and its records end when it is taken away or the consumer is closed. What is
read here is done when the program says so, record by record: whoever handles many at a time asks for the next one long
before it is done with this one.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable

from odradek.client.consumer.core import RUN_RECORDS, ConsumerCore
from odradek.client.consumer.records import ConsumerRecord
from odradek.client.fetching.fetcher import Fetcher
from odradek.client.topic_partition import TopicPartition
from odradek.runtime.tasks import breathe

__all__ = ["partition_streams"]


async def partition_streams(
    core: ConsumerCore, fetcher: Fetcher, is_open: Callable[[], bool], wait: Callable[[], Awaitable[None]]
) -> AsyncGenerator[tuple[TopicPartition, AsyncGenerator[ConsumerRecord]]]:
    """Yields each partition, once for each time that it is assigned, with its records. Ends when the consumer does.

    `wait`: until there may be news.
    """
    shown: dict[TopicPartition, object] = {}
    while is_open():
        tokens = {partition: core.token(partition) for partition in core.partitions}
        shown = {partition: token for partition, token in shown.items() if tokens.get(partition) is token}
        news = [partition for partition in sorted(tokens) if partition not in shown]
        for partition in news:
            token = core.token(partition)
            if token is not None and is_open():
                shown[partition] = token
                yield partition, _records(core, fetcher, is_open, wait, partition, token)
        if not news:
            await wait()


async def _records(
    core: ConsumerCore,
    fetcher: Fetcher,
    is_open: Callable[[], bool],
    wait: Callable[[], Awaitable[None]],
    partition: TopicPartition,
    token: object,
) -> AsyncGenerator[ConsumerRecord]:
    """The records of a partition for as long as it stays assigned. Raises what `ConsumerCore.take` raises."""
    while True:
        await breathe()
        if not is_open() or core.token(partition) is not token:
            return
        fetcher.check()
        part = core.take(RUN_RECORDS, partition)
        if part is None:
            if fetcher.is_packed(partition):
                await fetcher.prepare(partition)
            else:
                await wait()
            continue
        for record in core.walk_records(part):
            yield record
