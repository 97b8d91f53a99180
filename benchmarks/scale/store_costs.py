"""What a metadata store takes for the commits of a cluster: commits a second, and CPU time of its process for each.

    single      one partition in a commit, as a leader writes an in-sync set, one after the other
    together    the same by sixteen writers at once
    full        a hundred partitions in a commit, as the controller writes after a loss
    watched     full ones, while so many watches follow, as many brokers do

The store is a process of its own on the same filesystem, and syncs each commit: etcd, or what the supervisor of one
machine serves (`store_process.py`). Values are those of a partition with three replicas. What a watch costs is the
difference to the same commits without.
"""

import asyncio
import sys
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.host.machine import cpu_seconds
from benchmarks.scale.metadata_costs import replicas_of
from odradek.broker.cluster.keys import PartitionState, partition_key
from odradek.broker.cluster.socket_store.store import SocketStore
from odradek.broker.cluster.store import OPERATIONS_MAX, MetadataStore, Txn
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks
from processes.child_process import ChildProcess
from processes.etcd_process import Etcd
from processes.etcd_stores import etcd_store

WRITERS = 16
WATCHES = 20
TOPIC_ID = bytes(16)
PATIENCE_MS = 60_000
PATIENCE = {"metadata.request.timeout.ms": str(PATIENCE_MS)}
"""All watches are followed by this one process, which may keep it from an answer for long."""


@dataclass(frozen=True, slots=True)
class StoreCost:
    """Of commits of one kind."""

    name: str
    commits: int
    seconds: float
    store_cpu_s: float

    @property
    def per_s(self) -> float:
        return self.commits / self.seconds

    @property
    def store_ms(self) -> float:
        """CPU time of the store's process for a commit."""
        return 1000 * self.store_cpu_s / self.commits


Opening = Callable[[], AbstractAsyncContextManager[MetadataStore]]


def store_costs(directory: Path, commits: int) -> list[StoreCost]:
    """Of etcd: `commits` of each kind but the full ones, of which there are a tenth. Raises OSError, and as etcd's
    start."""
    with Etcd(directory) as etcd:
        return asyncio.run(_costs(lambda: etcd_store(etcd.address("/scale"), PATIENCE), etcd.pid, commits))


def socket_store_costs(directory: Path, commits: int) -> list[StoreCost]:
    """The same of a supervisor's store. Raises OSError, ProcessFailed."""
    with StoreProcess(directory) as process:
        return asyncio.run(_costs(lambda: socket_store(process.path), process.pid, commits))


class StoreProcess(ChildProcess):
    """`store_process.py` on this directory."""

    def __init__(self, directory: Path) -> None:
        super().__init__("store")
        self._directory = directory
        self.path = ""
        """Of its socket."""

    def command(self) -> list[str]:
        return [sys.executable, "-m", "benchmarks.scale.store_process", str(self._directory)]

    def is_ready_line(self, line: str) -> bool:
        self.path = line
        return bool(line)


@asynccontextmanager
async def socket_store(path: str) -> AsyncGenerator[SocketStore, None]:
    """The store behind this socket, as a broker opens it."""
    store = SocketStore(Environment(), path, PATIENCE_MS)
    try:
        yield store
    finally:
        await store.close()


async def _costs(opened: Opening, pid: int, commits: int) -> list[StoreCost]:
    full = max(1, commits // 10)
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(opened())
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
            await _cost(pid, "single", commits, _write(store, range(commits), 1)),
            await _cost(pid, "together", commits // WRITERS * WRITERS, together()),
            await _cost(pid, "full", full, _write(store, range(full), OPERATIONS_MAX)),
        ]
        now = (await store.read("/controller")).revision
        for number in range(WATCHES):
            watching = await stack.enter_async_context(opened())
            tasks.start(_follow(watching, now), f"watch {number}")
        costs.append(await _cost(pid, "watched", full, _write(store, range(full), OPERATIONS_MAX)))
    return costs


async def _cost(pid: int, name: str, commits: int, run: Coroutine[Any, Any, None]) -> StoreCost:
    cpu, began = cpu_seconds(pid), time.perf_counter()
    await run
    return StoreCost(name, commits, time.perf_counter() - began, cpu_seconds(pid) - cpu)


async def _write(store: MetadataStore, numbers: range, keys: int) -> None:
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


async def _follow(store: MetadataStore, after: int) -> None:
    async for _change in store.watch("/", after):
        pass
