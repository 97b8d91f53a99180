"""Consumers of one group on our own broker in this process: what the tests of groups begin with.

async with orders(partitions=4, count=100) as servers:
    reader = Reader(await member(servers, protocol).start())
    await until(lambda: len(reader.values) == 100)
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, Final

from odradek.broker.launch.serving import serving
from odradek.client.admin.admin import Admin
from odradek.client.admin.topics import NewTopic
from odradek.client.consumer.consumer import Consumer
from odradek.client.producer.producer import Producer
from odradek.client.topic_partition import TopicPartition

FAST: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.session.timeout.ms": "600",
    "group.consumer.min.session.timeout.ms": "500",
    "offsets.topic.num.partitions": "4",
}
PROTOCOLS: Final = ("classic", "consumer")
_NUMBERS: Final = count(1)


@asynccontextmanager
async def orders(partitions: int = 4, records: int = 100) -> AsyncGenerator[str]:
    """A broker with a topic of so many records."""
    async with serving(memory=True, config=FAST) as broker:
        servers = broker.bootstrap_servers
        async with Admin(servers) as admin:
            await admin.create_topics([NewTopic("orders", partitions, 1)])
        await send(servers, range(records))
        yield servers


async def send(servers: str, numbers: range, topic: str = "orders") -> None:
    values = [b"%d" % number for number in numbers]
    async with Producer(servers) as producer:
        await producer.send_batch(topic, values, values)


def member(servers: str, protocol: str = "classic", **settings: Any) -> Consumer:
    """One of the group that reads from the beginning."""
    if protocol == "classic":
        settings = {"heartbeat_interval_ms": 100, "session_timeout_ms": 600} | settings
    client_id = f"consumer-{next(_NUMBERS):06}"
    usual: dict[str, Any] = {"group_id": "billing", "topics": ["orders"], "auto_offset_reset": "earliest"}
    usual |= {"client_id": client_id}
    all_settings: dict[str, Any] = usual | {"group_protocol": protocol} | settings
    return Consumer(servers, **all_settings)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():  # noqa: ASYNC110 - what is waited for is the state of consumers, who tell nobody
            await asyncio.sleep(0.01)


class Reader:
    """Reads in a task, until it is stopped or killed."""

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self.values: list[bytes] = []
        self._task = asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        async for record in self.consumer:
            self.values.append(record.value)

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        return self.consumer.assignment()

    async def kill(self) -> None:
        """As if the process had died: nothing is committed, nobody told."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if (group := self.consumer._group) is not None:  # pyright: ignore[reportPrivateUsage]
            group.end()

    async def stop(self) -> None:
        await self.consumer.close()
        await self._task
