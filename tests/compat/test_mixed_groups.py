"""Our consumer in one group with others: kafka-python, aiokafka and confluent-kafka, which share its partitions."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer as ConfluentConsumer
from kafka import KafkaConsumer

from tests.client.group_readers import Reader, member, orders, send, until
from tests.compat.group_clients import KAFKA_PYTHON_POLL_MS

pytestmark = [pytest.mark.compat, pytest.mark.timeout(120)]


class InThread:
    """A consumer of another client that blocks: it reads in a thread until it is stopped."""

    def __init__(self, poll: Callable[[], list[bytes]], close: Callable[[], None]) -> None:
        self.values: list[bytes] = []
        self._poll, self._close = poll, close
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while not self._stop.is_set():
            self.values += self._poll()
        self._close()

    async def stop(self) -> None:
        self._stop.set()
        await asyncio.to_thread(self._thread.join)


def kafka_python(servers: str) -> InThread:
    consumer = KafkaConsumer(
        bootstrap_servers=servers,
        group_id="billing",
        auto_offset_reset="earliest",
        session_timeout_ms=6_000,
        heartbeat_interval_ms=200,
    )
    assert consumer.partitions_for_topic("orders")  # see group_clients.py
    consumer.subscribe(["orders"])

    def poll() -> list[bytes]:
        return [record.value for records in consumer.poll(KAFKA_PYTHON_POLL_MS).values() for record in records]

    return InThread(poll, consumer.close)


def confluent(servers: str, protocol: str) -> InThread:
    settings: dict[str, Any] = {"bootstrap.servers": servers, "group.id": "billing", "auto.offset.reset": "earliest"}
    if protocol == "classic":
        settings |= {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 200}
    consumer = ConfluentConsumer(settings | {"group.protocol": protocol})
    consumer.subscribe(["orders"])

    def poll() -> list[bytes]:
        return [message.value() or b"" for message in consumer.consume(100, 0.1) if message.error() is None]

    return InThread(poll, consumer.close)


class InLoop:
    """aiokafka's consumer."""

    def __init__(self, consumer: AIOKafkaConsumer) -> None:
        self.values: list[bytes] = []
        self._consumer = consumer
        self._task = asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        async for record in self._consumer:
            self.values.append(record.value)

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._consumer.stop()


async def aiokafka(servers: str) -> InLoop:
    consumer = AIOKafkaConsumer(
        "orders",
        bootstrap_servers=servers,
        group_id="billing",
        auto_offset_reset="earliest",
        session_timeout_ms=6_000,
        heartbeat_interval_ms=200,
    )
    await consumer.start()
    return InLoop(consumer)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_a_group_of_several_clients_reads_every_record(protocol: str) -> None:
    async with orders(12, 300) as servers:
        settings: dict[str, Any] = {}
        if protocol == "classic":  # aiokafka has roundrobin alone
            settings = {"session_timeout_ms": 6_000, "partition_assignment_strategy": "range,roundrobin"}
        ours = [Reader(await member(servers, protocol, **settings).start())]
        others: list[InThread | InLoop] = [confluent(servers, protocol)]
        if protocol == "classic":
            others += [await asyncio.to_thread(kafka_python, servers), await aiokafka(servers)]
        ours.append(Reader(await member(servers, protocol, **settings).start()))

        def found() -> Counter[bytes]:
            return Counter(value for each in (*ours, *others) for value in each.values)

        count = 300
        async with asyncio.timeout(60):
            while not all(each.values for each in (*ours[1:], *others)):
                await send(servers, range(count, count + 100))
                count += 100
                await asyncio.sleep(0.2)  # between two looks at what each has read
        await others[0].stop()
        await ours[0].stop()
        await send(servers, range(count, count + 100))
        count += 100
        await until(lambda: len(found()) == count)
        for each in (*ours[1:], *others[1:]):
            await each.stop()
