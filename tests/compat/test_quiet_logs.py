"""What three brokers log while nothing is wrong: no warning by those that stop, roll and start, nor by the others."""

import asyncio
import os
import re
import signal
from pathlib import Path
from typing import Final

import pytest

from odradek.client.admin.admin import Admin
from odradek.client.producer.producer import Producer
from odradek.client.topic_partition import TopicPartition
from processes.child_process import start_together
from processes.odradek_broker import OdradekBroker
from tests.compat.brokers_on_etcd import NODE_IDS, brokers_on_etcd
from tests.compat.clusters import soon

pytestmark = [pytest.mark.compat, pytest.mark.three_brokers, pytest.mark.timeout(120)]

LOUD: Final = re.compile(r"^\S+ \S+ (?:WARNING|ERROR|CRITICAL) .*$", re.MULTILINE)
PARTITIONS: Final = 6
RECORDS: Final = 60


async def produced(bootstrap: str, topic: str) -> None:
    async with Producer(bootstrap, acks="all") as producer:
        for number in range(RECORDS):
            await producer.send(topic, b"value", partition=number % PARTITIONS)


async def in_sync(bootstrap: str, topic: str) -> None:
    """Returns once all replicas of all partitions are."""

    async def counts(admin: Admin) -> set[int]:
        return {len(partition.isr) for partition in (await admin.describe_topic(topic)).partitions}

    async with Admin(bootstrap) as admin:
        await soon(lambda: counts(admin), {len(NODE_IDS)})


async def created(bootstrap: str, topic: str, replication_factor: int) -> None:
    async with Admin(bootstrap) as admin:
        await admin.create_topic(topic, PARTITIONS, replication_factor)
    await produced(bootstrap, topic)


async def given_new_replicas(bootstrap: str, topic: str) -> None:
    """Of which the log start is above 0."""
    partitions = [TopicPartition(topic, index) for index in range(PARTITIONS)]
    async with Admin(bootstrap) as admin:
        await admin.delete_records(dict.fromkeys(partitions, 5))
        await admin.alter_partition_reassignments(dict.fromkeys(partitions, NODE_IDS))
    await in_sync(bootstrap, topic)


def loud(brokers: dict[int, OdradekBroker]) -> list[str]:
    return [f"{node_id}: {line}" for node_id, broker in brokers.items() for line in LOUD.findall(broker.output)]


def test_broker_stops_rolls_and_starts_and_replica_reassignments_log_no_warning(tmp_path: Path) -> None:
    with brokers_on_etcd(tmp_path) as brokers:
        bootstrap = ",".join(broker.bootstrap for broker in brokers.values())
        asyncio.run(created(bootstrap, "orders", 3))
        asyncio.run(created(bootstrap, "single", 1))
        for broker in brokers.values():
            broker.stop()
            asyncio.run(produced(bootstrap, "orders"))
            broker.start()
            asyncio.run(in_sync(bootstrap, "orders"))
        asyncio.run(given_new_replicas(bootstrap, "single"))
        for broker in brokers.values():
            os.kill(broker.pid, signal.SIGTERM)
        for broker in brokers.values():
            assert broker.ended() == 0
        start_together(*brokers.values())
        asyncio.run(in_sync(bootstrap, "orders"))
        assert loud(brokers) == []
        brokers[2].kill()
        asyncio.run(produced(bootstrap, "orders"))
        assert [line for line in loud(brokers) if "broker 2" in line], "a broker that is killed is one"
