"""Our client copies a topic with consumers that are bound to transactions, on one broker of ours and on three.

Members come and go, are killed with a transaction open, and abort at random. kafka-python reads what is committed: each
input is in the output exactly once.
"""

import asyncio
import random
from collections import Counter
from typing import Any

import pytest

from odradek import Admin, BatchError, Consumer, NewTopic, Producer, TransactionFailed
from tests.compat.clusters import Ours, broker_count
from tests.compat.test_transactions_of_clients import read_by_kafka_python

pytestmark = [pytest.mark.compat, pytest.mark.only_in_compat, pytest.mark.timeout(300)]

PARTITIONS = 5
RECORDS = 2_000
PATIENCE_S = 240.0
SHORT_S = 1.0, 3.0
LONG_S = 8.0, 12.0
"""A guest of KIP-848 is given partitions after two heartbeats of 5 s, that of whoever gives them up and its own."""


class Chain:
    """Two topics, and the members that copy from one to the other."""

    def __init__(self, servers: str, name: str, protocol: str, seed: int) -> None:
        self.servers = servers
        self.source, self.target = f"{name}-input", f"{name}-output"
        self.protocol = protocol
        self.random = random.Random(seed)
        self.outcomes = Counter[str]()
        self.copied = Counter[str]()
        """Records in committed transactions, by the member's name."""
        self.has_begun = asyncio.Event()

    def consumer(self, instance: str | None) -> Consumer:
        settings: dict[str, Any] = {
            "group_id": self.target,
            "group_protocol": self.protocol,
            "group_instance_id": instance,
            "topics": [self.source],
            "auto_offset_reset": "earliest",
            "isolation_level": "read_committed",
        }
        if self.protocol == "classic":
            settings |= {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 200}
        return Consumer(self.servers, **settings)

    async def member(self, name: str, *, is_static: bool = False) -> None:
        """Copies until it is cancelled. One that dies leaves its transaction to its successor of the same name."""
        consumer = self.consumer(name if is_static else None)
        producer = Producer(self.servers, transactional_id=f"{self.target}-{name}", transaction_timeout_ms=10_000)
        async with consumer, producer:
            while True:
                await self.transact(name, consumer, producer)

    async def transact(self, name: str, consumer: Consumer, producer: Producer) -> None:
        count = 0
        try:
            async with producer.transaction(consumer=consumer) as txn:
                for _ in range(self.random.randint(1, 3)):
                    batch = await consumer.get_batch(self.random.randint(1, 60), timeout_ms=100)
                    await txn.send_batch(self.target, [record.value for record in batch.records])
                    count += len(batch)
                if self.random.random() < 0.3:
                    raise KeyError("at random")
            self.outcomes["committed"] += 1
            self.copied[name] += count
            if count:
                self.has_begun.set()
        except (KeyError, TransactionFailed, BatchError) as error:
            self.outcomes[type(error).__name__] += 1

    async def committed_count(self) -> int:
        """How many inputs the group has committed: there is nothing else in the topic."""
        async with Admin(self.servers) as admin:
            found = await admin.list_group_offsets([self.target])
        return sum(each.offset for each in found[self.target].values())


async def comes_and_goes(chain: Chain) -> None:
    """A second member, and now and then a third: none of them for long.

    A static one is missed when its session is over: until then, in a classic group, nobody gets anything new. And a
    group that is new puts its first generation off for as long as members come.
    """
    await chain.has_begun.wait()
    turn = 0
    while True:
        turn += 1
        guests = [chain.member("guest", is_static=turn % 4 == 2)]
        if turn % 3 == 0:
            guests.append(chain.member(f"guest-{turn}"))
        tasks = [asyncio.ensure_future(guest) for guest in guests]
        try:
            await asyncio.wait(tasks, timeout=chain.random.uniform(*(LONG_S if turn % 2 else SHORT_S)))
        finally:
            for task in tasks:
                task.cancel()
            for ended in await asyncio.gather(*tasks, return_exceptions=True):
                assert isinstance(ended, asyncio.CancelledError), ended


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_each_input_is_in_the_output_once_whoever_comes_and_goes(broker: Ours, protocol: str) -> None:
    chain = Chain(broker.bootstrap, f"bound-{protocol}", protocol, seed=27)
    values: list[bytes] = []
    async with Admin(broker.bootstrap) as admin:
        replicas = broker_count(broker)
        await admin.create_topics([NewTopic(each, PARTITIONS, replicas) for each in (chain.source, chain.target)])

    async def write() -> None:
        more = [b"%d" % number for number in range(len(values), len(values) + RECORDS)]
        async with Producer(broker.bootstrap) as producer:
            await producer.send_batch(chain.source, more, more)
        values.extend(more)

    await write()
    tasks = [asyncio.ensure_future(chain.member("host")), asyncio.ensure_future(comes_and_goes(chain))]
    try:
        async with asyncio.timeout(PATIENCE_S):
            while (committed := await chain.committed_count()) < len(values) or len(+chain.copied) == 1:
                if committed == len(values):
                    await write()  # until a guest has copied something, too
                await asyncio.wait(tasks, timeout=0.5, return_when=asyncio.FIRST_COMPLETED)
                assert not any(task.done() for task in tasks), [task.exception() for task in tasks if task.done()]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    output = await asyncio.to_thread(read_by_kafka_python, broker.bootstrap, chain.target, PARTITIONS, "read_committed")
    doubled = {value: count for value, count in Counter(output).items() if count > 1}
    assert (doubled, len(output)) == ({}, len(values))
    assert set(output) == set(values)
    assert chain.outcomes["committed"] > 10
    assert chain.outcomes["KeyError"] > 3
    assert len(+chain.copied) > 1, "a guest has copied something, too"
