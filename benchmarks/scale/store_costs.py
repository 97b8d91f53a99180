"""What etcd takes for the commits of a cluster: commits a second, what each waits, and CPU time of etcd for it.

    single      one partition in a commit, as a leader writes an in-sync set, one after the other
    together    the same by sixteen writers at once
    full        a hundred partitions in a commit, as the controller writes after a loss
    watched     full ones, while so many watches follow, as many brokers do

etcd is a process of its own on the same filesystem, and syncs each commit. Values are those of a partition with three
replicas. What a watch costs etcd is the difference to the same commits without.
"""

import asyncio
import time
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.host.machine import cpu_seconds
from benchmarks.scale.metadata_costs import replicas_of
from odradek.broker.cluster.etcd.store import EtcdStore
from odradek.broker.cluster.keys import PartitionState, partition_key
from odradek.broker.cluster.store import OPERATIONS_MAX, Txn
from odradek.runtime.tasks import Tasks
from processes.etcd_process import Etcd
from processes.etcd_stores import etcd_store

WRITERS = 16
WATCHES = 20
TOPIC_ID = bytes(16)
PATIENCE = {"metadata.request.timeout.ms": "60000"}
"""All watches are followed by this one process, which may keep it from an answer for long."""


@dataclass(frozen=True, slots=True)
class StoreCost:
    """Of commits of one kind."""

    name: str
    commits: int
    seconds: float
    etcd_cpu_s: float

    @property
    def per_s(self) -> float:
        return self.commits / self.seconds

    @property
    def etcd_ms(self) -> float:
        """CPU time of etcd for a commit."""
        return 1000 * self.etcd_cpu_s / self.commits


def store_costs(directory: Path, commits: int) -> list[StoreCost]:
    """`commits` of each kind but the full ones, of which there are a tenth. Raises OSError, and as etcd's start."""
    with Etcd(directory) as etcd:
        return asyncio.run(_costs(etcd, commits))


async def _costs(etcd: Etcd, commits: int) -> list[StoreCost]:
    full = max(1, commits // 10)
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(etcd_store(etcd.address("/scale"), PATIENCE))
        tasks = Tasks(asyncio.get_running_loop())
        stack.push_async_callback(tasks.close)

        async def together() -> None:
            share = commits // WRITERS
            writers = [
                tasks.start(_write(store, range(writer * share, (writer + 1) * share), 1), f"writer {writer}")
                for writer in range(WRITERS)
            ]
            for writing in writers:
                await writing

        costs = [
            await _cost(etcd, "single", commits, _write(store, range(commits), 1)),
            await _cost(etcd, "together", commits // WRITERS * WRITERS, together()),
            await _cost(etcd, "full", full, _write(store, range(full), OPERATIONS_MAX)),
        ]
        now = (await store.read("/controller")).revision
        for number in range(WATCHES):
            watching = await stack.enter_async_context(etcd_store(etcd.address("/scale"), PATIENCE))
            tasks.start(_follow(watching, now), f"watch {number}")
        costs.append(await _cost(etcd, "watched", full, _write(store, range(full), OPERATIONS_MAX)))
    return costs


async def _cost(etcd: Etcd, name: str, commits: int, run: Coroutine[Any, Any, None]) -> StoreCost:
    cpu, began = cpu_seconds(etcd.pid), time.perf_counter()
    await run
    return StoreCost(name, commits, time.perf_counter() - began, cpu_seconds(etcd.pid) - cpu)


async def _write(store: EtcdStore, numbers: range, keys: int) -> None:
    """A commit for each number, of so many partitions, after a condition on a key that is not there."""
    for number in numbers:
        partitions = range(number * keys, (number + 1) * keys)
        await store.commit(
            Txn(
                expect={"/controller": 0},
                put={partition_key("topic", index): value_of(index) for index in partitions},
            )
        )


def value_of(number: int) -> bytes:
    replicas = replicas_of(number)
    return PartitionState(TOPIC_ID, replicas, replicas, replicas[0]).encode()


async def _follow(store: EtcdStore, after: int) -> None:
    async for _change in store.watch("/", after):
        pass
