"""Several brokers in one process: a whole cluster for tests and laptops, with one metadata store.

The layout of its directory is in directories/cluster_layout.py; broker 1 is in rack-1, on the first port, and so on.
They are brokers as any others, and talk to one another over sockets. What one process cannot have is a broker that dies
by itself: when the process is killed all of them are, and what was acknowledged stands in their files.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

import click

from odradek.broker.cluster.embedded import EmbeddedStore
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.store import MetadataStore
from odradek.broker.config.listeners import Listener
from odradek.broker.config.settings import Settings
from odradek.broker.directories.cluster_layout import FIRST_ID, first_broker_id, metadata_directory
from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.launch import protection
from odradek.broker.launch.cluster_directory import (
    broker_ids,
    defaults_of,
    leave_out,
    lock_metadata,
    registered_ids,
)
from odradek.broker.launch.cluster_settings import cluster_settings
from odradek.broker.launch.collector import collector_paused
from odradek.broker.launch.run_broker import run_until_signal
from odradek.broker.launch.stopping import stop_all, until_stopped
from odradek.broker.server import Broker, disk_for, logger
from odradek.broker.version import VERSION
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks

BROKERS_DEFAULT: Final = 3


def run_cluster(count: int | None, listener: Listener, data_dir: str | None, static: Mapping[str, str]) -> int:
    """Runs so many brokers until a signal stops them; None: as many as the directory has, and 3 for a new one. The
    process's exit code."""
    return run_until_signal(lambda environment, stop: _run(count, listener, data_dir, static, environment, stop))


async def _run(
    count: int | None,
    listener: Listener,
    data_dir: str | None,
    static: Mapping[str, str],
    environment: Environment,
    stop: asyncio.Event,
) -> None:
    async with _store(data_dir, environment) as store:
        settings = await _settings(store, count, listener, data_dir, static)
        disk = FileDisk()
        brokers = [Broker(each, environment, disk_for(each, disk), store=store) for each in settings]
        started: list[Broker] = []
        try:
            with collector_paused():
                for broker in brokers:
                    await broker.start()
                    started.append(broker)
            protection.tell([each.listeners[0] for each in settings], settings[0].config, None)
            click.echo(_ready_line(brokers, data_dir))
            await until_stopped(started, environment, stop)
            logger.info("stopping")
        finally:
            await stop_all(started)


async def _settings(
    store: MetadataStore, count: int | None, listener: Listener, data_dir: str | None, static: Mapping[str, str]
) -> list[Settings]:
    """Of the brokers that the cluster has, or is to have. Raises StartRefused, ConfigError, MalformedMetadata,
    OSError."""
    known = await registered_ids(store)
    first_id = FIRST_ID if data_dir is None else first_broker_id(FileDisk(), data_dir)
    ids = broker_ids(known, count or len(known) or BROKERS_DEFAULT, first_id)
    defaults: Mapping[str, str] | None = None
    if data_dir is not None:
        await leave_out(store, ids, data_dir)
        defaults = defaults_of(FileDisk(), data_dir)
    return cluster_settings(len(ids), listener, data_dir, static, ids=ids, defaults=defaults)


@asynccontextmanager
async def _store(data_dir: str | None, environment: Environment) -> AsyncGenerator[MetadataStore]:
    """Raises StartRefused, ForeignDirectory, StoreDamaged, OSError."""
    if data_dir is None:
        store: MetadataStore = MemoryStore()
        yield store
        await store.close()
        return
    disk, tasks = FileDisk(), Tasks(environment.loop)
    directory = metadata_directory(data_dir)
    lock = lock_metadata(disk, data_dir)
    try:
        store = EmbeddedStore.open(disk, directory, run_blocking=environment.run_blocking, tasks=tasks)
        try:
            yield store
        finally:
            await store.close()
    finally:
        await tasks.close()
        lock.release()


def _ready_line(brokers: Sequence[Broker], data_dir: str | None) -> str:
    addresses = ",".join(str(endpoint) for broker in brokers for endpoint in broker.bound.values())
    return f"odradek {VERSION} cluster ready on {addresses} (data in {'memory' if data_dir is None else data_dir})"
