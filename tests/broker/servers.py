"""Whole brokers in this process, on a disk of the test's, and what such a disk holds."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from odradek.broker.directories.data_directory import LOCK_FILE
from odradek.broker.disk.disk import Disk
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.server import Broker
from odradek.runtime.environment import Environment
from tests.broker.wire import settings


def broker_on(disk: Disk, data_dir: str | Sequence[str] = "data", node_id: int = 0) -> Broker:
    return Broker(settings(data_dir, node_id=node_id), Environment(), disk)


@asynccontextmanager
async def started(broker: Broker) -> AsyncGenerator[Broker]:
    await broker.start()
    try:
        yield broker
    finally:
        await broker.stop()


def files(disk: MemoryDisk, path: str = "data") -> dict[str, bytes | None]:
    """Every file with its content, every directory with None. The lock file is left out: a start makes it."""
    found: dict[str, bytes | None] = {}
    for name in disk.list_dir(path):
        inner = f"{path}/{name}"
        if disk.is_dir(inner):
            found |= {inner: None, **files(disk, inner)}
        elif name != LOCK_FILE:
            found[inner] = disk.read_whole(inner)
    return found
