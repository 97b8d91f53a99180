"""A partition whose syncs the test holds in its hands: each begins in its helper thread, and ends when it is let go.

No sleeps: what never comes fails by a timeout.
"""

import asyncio
import errno
import os
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.disk.disk import File
from odradek.broker.disk.memory_disk import Content, MemoryDisk
from odradek.broker.log.config import LogConfig
from odradek.broker.log.leftovers import UNSYNCED
from odradek.broker.log.log import Log
from odradek.broker.log.validation import Origin
from odradek.broker.replica.partition import Partition
from odradek.broker.replica.partition_listener import Alone
from odradek.broker.replica.replicas import Replicas
from odradek.protocol.batches.batch import read_header
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks, running_tasks
from tests.broker.alone import hosted, nothing
from tests.broker.log.logs import T0, batch

DIRECTORY = "data/orders-0"
EACH = {"flush.messages": "1"}
LONG_MS = 10_000.0
WAIT_S = 10.0
STORAGE = ErrorCode.KAFKA_STORAGE_ERROR


def failure() -> OSError:
    return OSError(errno.EIO, os.strerror(errno.EIO))


class Sync:
    """A sync that has begun, and ends when it is let go."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._error: OSError | None = None
        self._gate = threading.Event()

    def let_go(self, error: OSError | None = None) -> None:
        self._error = error
        self._gate.set()

    def wait(self) -> None:
        assert self._gate.wait(WAIT_S), f"nobody let the sync of {self.name} go"
        if self._error is not None:
            raise self._error


class GatedDisk(MemoryDisk):
    """While `is_gated`, each sync of a `.log` file waits in its thread until it is let go.

    `syncs` counts these syncs, `errors` are raised by the next ones, `dir_errors` by those of directories.
    """

    def __init__(self) -> None:
        super().__init__()
        self.begun: asyncio.Queue[Sync] = asyncio.Queue()
        self.syncs = 0
        self.is_gated = False
        self.errors: list[OSError] = []
        self.dir_errors: list[OSError] = []
        self.distrusted = asyncio.Event()
        """A log has been told that it could not be synced."""
        self._loop = asyncio.get_running_loop()
        self._waiting: list[Sync] = []

    def sync(self, content: Content) -> None:
        name = next((name for name in self.list_dir(DIRECTORY) if self._find(f"{DIRECTORY}/{name}") is content), "")
        if name.endswith(".log"):
            self.syncs += 1
            if self.errors:
                raise self.errors.pop()
            if self.is_gated:
                sync = Sync(name)
                self._waiting.append(sync)
                self._loop.call_soon_threadsafe(self.begun.put_nowait, sync)
                sync.wait()
        super().sync(content)

    def sync_dir(self, path: str) -> None:
        if self.dir_errors:
            raise self.dir_errors.pop()
        super().sync_dir(path)

    def open(self, path: str, size_bytes: int | None = None) -> File:
        if path.endswith(UNSYNCED):
            self.distrusted.set()
        return super().open(path, size_bytes)

    async def next_sync(self) -> Sync:
        return await asyncio.wait_for(self.begun.get(), WAIT_S)

    def open_gate(self) -> None:
        """Nothing waits any more."""
        self.is_gated = False
        for sync in self._waiting:
            sync.let_go()


@asynccontextmanager
async def led(
    options: Mapping[str, str] = EACH,
    disk: MemoryDisk | None = None,
    *,
    segment_bytes: int = 1 << 20,
    require_lease: Callable[[], None] = nothing,
) -> AsyncGenerator[Partition]:
    """A partition that this broker leads alone; `options` are the topic's."""
    config = BrokerConfig({}).topic(dict(options))
    log = Log.open(disk or MemoryDisk(), DIRECTORY, LogConfig(segment_bytes=segment_bytes), 0)
    environment = Environment()
    tasks = Tasks(environment.loop)
    host = hosted(environment, tasks, require_lease=require_lease)
    partition = Partition("orders", bytes(16), 0, log, config, host, Alone())
    partition.become_leader(0, Replicas(0, (0,), (0,)))
    try:
        yield partition
    finally:
        if isinstance(disk, GatedDisk):
            disk.open_gate()
        await tasks.close()


def append(partition: Partition, count: int = 1, *, sequence: int | None = None) -> int:
    """Appends so many records in one batch; the last offset."""
    data = batch(*[T0] * count, producer=(-1, -1, -1) if sequence is None else (7, 0, sequence))
    return partition.append(data, 1, T0, origin=Origin.COORDINATOR).appended.last_offset


def produce(partition: Partition, acks: int, count: int = 1) -> asyncio.Task[None]:
    """Appends, and waits for the acknowledgement."""
    return acknowledged(partition, append(partition, count), acks, LONG_MS)


def acknowledged(partition: Partition, last_offset: int, acks: int, timeout_ms: float) -> asyncio.Task[None]:
    return asyncio.ensure_future(partition.acknowledgements.reach(last_offset, acks, timeout_ms))


def visible(partition: Partition) -> int:
    """How many records a consumer can read."""
    data = partition.reader.fetch(partition.log.log_start_offset, 1 << 20, at_least_one_batch=True).records
    count = position = 0
    while position < len(data):
        header = read_header(data, position)
        count, position = count + header.record_count, position + header.size_bytes
    return count


async def code_of(task: asyncio.Task[None]) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        await asyncio.wait_for(task, WAIT_S)
    return caught.value.code


async def done(*tasks: asyncio.Task[None]) -> None:
    await asyncio.wait_for(asyncio.gather(*tasks), WAIT_S)


async def syncs_ended() -> None:
    """Returns once no sync is under way any more."""
    syncs = [task for task in running_tasks() if task.get_name().startswith("sync ")]
    await asyncio.wait_for(asyncio.gather(*syncs, return_exceptions=True), WAIT_S)
