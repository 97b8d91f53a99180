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
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.listeners import Listener
from odradek.broker.config.security_protocol import parse_protocol_map
from odradek.broker.config.settings import Settings
from odradek.broker.directories.cluster_layout import FIRST_ID, broker_directory, first_broker_id, metadata_directory
from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.launch.cluster_directory import (
    broker_ids,
    defaults_of,
    leave_out,
    lock_metadata,
    registered_ids,
)
from odradek.broker.launch.collector import collector_paused
from odradek.broker.launch.listen_options import check_protocols
from odradek.broker.launch.memory_defaults import with_defaults
from odradek.broker.launch.run_broker import run_until_signal, warn_of_exposure
from odradek.broker.server import Broker, disk_for, logger
from odradek.broker.startup_errors import BrokerFailed
from odradek.broker.version import VERSION
from odradek.runtime.environment import Environment
from odradek.runtime.signal import Signal
from odradek.runtime.tasks import Tasks

BROKERS_DEFAULT: Final = 3


def cluster_settings(
    count: int,
    listener: Listener,
    data_dir: str | None,
    static: Mapping[str, str],
    *,
    ids: Sequence[int] | None = None,
    defaults: Mapping[str, str] | None = None,
    advertised_host: str | None = None,
) -> list[Settings]:
    """The settings of so many brokers, on consecutive ports, or on free ones with port 0. `ids`: theirs; from 1, or
    from the first one that has a directory, by default. `defaults`: of topics, in place of as many replicas as there
    can be. `advertised_host`: what clients are told in place of the listener's, with the same ports. Raises
    ConfigError, ListenerError, OSError."""
    settings: list[Settings] = []
    told_host = listener.host if advertised_host is None else advertised_host
    if ids is None:
        first_id = FIRST_ID if data_dir is None else first_broker_id(FileDisk(), data_dir)
        ids = range(first_id, first_id + count)
    for number, node_id in enumerate(ids):
        here = listener._replace(port=listener.port + number if listener.port else 0)
        config = BrokerConfig(
            {
                "default.replication.factor": str(min(count, 3)),
                "min.insync.replicas": "2" if count >= 3 else "1",
                **(defaults or {}),
                **with_defaults(static, memory=data_dir is None),
                "node.id": str(node_id),
                "broker.rack": f"rack-{node_id}",
                "listeners": str(here),
            }
        )
        check_protocols([here], parse_protocol_map(config.listener_security_protocol_map))
        directories = None if data_dir is None else [broker_directory(data_dir, node_id)]
        settings.append(Settings([here], {here.name: here._replace(host=told_host)}, directories, node_id, config))
    return settings


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
            warn_of_exposure(settings[0].listeners)
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


async def until_stopped(running: list[Broker], environment: Environment, stop: asyncio.Event) -> None:
    """Returns when the signal has come. A broker that cannot go on leaves the others alone; `running` are those that
    are left. Raises BrokerFailed with the last one."""
    wake = Signal()

    def look_again() -> None:
        wake.give()

    for broker in running:
        broker.on_failure = look_again
    tasks = Tasks(environment.loop)

    async def wait_for_signal() -> None:
        await stop.wait()
        look_again()

    tasks.start(wait_for_signal(), "wait for a signal")
    try:
        while not stop.is_set():
            seen = wake.count
            for broker in [broker for broker in running if broker.failure is not None]:
                logger.error("broker %d stops: %s", broker.settings.node_id, broker.failure)
                running.remove(broker)
                await broker.stop()
                if not running:
                    raise BrokerFailed(f"no broker is left: {broker.failure}")
            await wake.after(seen)
    finally:
        await tasks.close()


async def stop_all(brokers: Sequence[Broker]) -> None:
    """Stops a whole cluster: nobody takes over from anybody, so that all are in sync when they come back."""
    await drain_all(brokers)
    for broker in brokers:
        await broker.stop(all_stop=True)


async def drain_all(brokers: Sequence[Broker]) -> None:
    """The first half of that: requests that run are answered, while the brokers replicate from one another."""
    for broker in brokers:
        broker.quiesce()
    await asyncio.gather(*(broker.drain() for broker in brokers))


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
