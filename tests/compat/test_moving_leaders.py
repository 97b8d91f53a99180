"""Leaders move from broker to broker while real clients send and read: nothing is lost or doubled, and no send fails.

Each partition's preferred leader becomes another one, again and again, and is elected. kafka-python, librdkafka and our
own client send with acks=all and idempotence, and read, meanwhile. They learn of it by errors and metadata, or by the
leader that an answer names (KIP-951). `LEADER_ROUNDS` sets how often all leaders move. What clients were told is judged
as the histories of the simulator are.
"""

import asyncio
import os
from collections.abc import Generator
from pathlib import Path

import pytest

from odradek.client.admin.admin import Admin
from odradek.client.topic_partition import TopicPartition
from odradek.testing.sim.checking.checker import check
from processes.cluster_processes import Processes
from tests.cluster.clients import Clients
from tests.cluster.rounds import everything, history_of
from tests.compat.clusters import THREE_BROKERS, Ours, ours, soon

pytestmark = [pytest.mark.compat, pytest.mark.three_brokers, pytest.mark.timeout(300)]

TOPIC = "moving"
PARTITIONS = 6
ROUNDS = int(os.environ.get("LEADER_ROUNDS", "6"))
ACKNOWLEDGED_A_ROUND = 200
BURST = 100


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Generator[Ours]:
    with ours(THREE_BROKERS, tmp_path_factory.mktemp("moving")) as running:
        yield running


async def leaders(admin: Admin) -> list[int | None]:
    return [partition.leader for partition in (await admin.describe_topic(TOPIC)).partitions]


async def move_all(bootstrap: str) -> None:
    """Each partition gets the next of its replicas as its leader."""
    async with Admin(bootstrap) as admin:
        described = (await admin.describe_topic(TOPIC)).partitions
        orders = {TopicPartition(TOPIC, each.partition): [*each.replicas[1:], each.replicas[0]] for each in described}
        await admin.alter_partition_reassignments(orders)
        assert set((await admin.elect_leaders(orders)).values()) == {True}
        await soon(lambda: leaders(admin), [order[0] for order in orders.values()])


async def create(bootstrap: str) -> None:
    async with Admin(bootstrap) as admin:
        assert (await admin.create_topic(TOPIC, PARTITIONS, 3)).replication_factor == 3


async def epochs(bootstrap: str) -> list[int]:
    async with Admin(bootstrap) as admin:
        return [partition.leader_epoch or 0 for partition in (await admin.describe_topic(TOPIC)).partitions]


def test_nothing_is_lost_or_doubled_while_leaders_move(cluster: Ours, tmp_path: Path) -> None:
    bootstrap = cluster.bootstrap
    asyncio.run(create(bootstrap))
    with Processes(tmp_path) as processes:
        clients = Clients(processes, bootstrap, TOPIC, PARTITIONS, burst=BURST)
        clients.start()
        for _ in range(ROUNDS):
            clients.wait_for_progress(ACKNOWLEDGED_A_ROUND)
            asyncio.run(move_all(bootstrap))
        clients.wait_for_progress(ACKNOWLEDGED_A_ROUND)
        clients.stop()
        clients.look()
        assert clients.failures() == []
        check(history_of(clients, [], everything(bootstrap, TOPIC, [0] * PARTITIONS))).check()
    assert min(asyncio.run(epochs(bootstrap))) >= ROUNDS
