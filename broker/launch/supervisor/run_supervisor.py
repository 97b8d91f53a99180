"""Runs a cluster of processes: from options to the line that says it is ready, and from a signal to a clean end.

In order: the lock of the directory → the socket, so that whoever is started finds it → the store → which brokers there
are → their processes → one line when all accept connections. Backwards at the end: the store last.
"""

import asyncio
import logging
import posixpath
import resource
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import click

from odradek.broker.cluster.embedded import EmbeddedStore
from odradek.broker.cluster.local import LocalStore
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.socket_store.address import listening_socket, private_directory
from odradek.broker.cluster.socket_store.server import StoreServer
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.directories.cluster_layout import FIRST_ID, first_broker_id, metadata_directory
from odradek.broker.disk.descriptor_limits import raise_descriptor_limit
from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.launch import protection
from odradek.broker.launch.cluster_directory import (
    SOCKET_FILE,
    broker_ids,
    defaults_of,
    keep_defaults,
    leave_out,
    lock_metadata,
    registered_ids,
)
from odradek.broker.launch.listen_options import ListenerError
from odradek.broker.launch.supervisor.child_process import BrokersAhead
from odradek.broker.launch.supervisor.plan import (
    ONE_REPLICA,
    Options,
    descriptors_problem,
    plan,
    replicas_of,
    topic_defaults,
)
from odradek.broker.launch.supervisor.processors import brokers_for, usable_processors
from odradek.broker.launch.supervisor.rolling_restart import RollingRestart
from odradek.broker.launch.supervisor.supervisor import Supervisor
from odradek.broker.startup_errors import REFUSALS, BrokerFailed, StartRefused, explained
from odradek.broker.version import VERSION
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks

logger = logging.getLogger(__name__)

HELPER_THREADS: Final = 2
"""Commits are synced one after the other."""


def run_supervisor(count: int | None, options: Options, ahead: BrokersAhead) -> int:
    """Runs so many brokers until a signal stops them; None: as many as the directory has, and for a new one what the
    machine takes. `ahead`: those that are begun already. The process's exit code."""
    raise_descriptor_limit()
    with asyncio.Runner() as runner:  # asyncio's own loop: there is little to do here, and uvloop is 10 MB
        return runner.run(_until_signal(count, options, ahead))


async def _until_signal(count: int | None, options: Options, ahead: BrokersAhead) -> int:
    environment = Environment()
    environment.allow_helper_threads(HELPER_THREADS)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        environment.loop.add_signal_handler(number, stop.set)
    try:
        return await _run(count, options, ahead, environment, stop)
    except (*REFUSALS, ListenerError) as error:
        click.echo(f"Error: {explained(error) or error}", err=True)
        return 1
    except OSError as error:  # the disk, at some step of the start: the text names the file
        click.echo(f"Error: the cluster cannot start: {error}", err=True)
        return 1
    finally:
        environment.end_helper_threads()


async def _run(
    count: int | None, options: Options, ahead: BrokersAhead, environment: Environment, stop: asyncio.Event
) -> int:
    async with served_store(options.data_dir, environment) as (server, is_new):
        known = await registered_ids(server.store)
        first_id = FIRST_ID if options.data_dir is None else first_broker_id(FileDisk(), options.data_dir)
        ids = broker_ids(known, count or len(known) or brokers_for(usable_processors()), first_id)
        plans = plan(options, ids)
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if limit != resource.RLIM_INFINITY and (problem := descriptors_problem(len(ids), limit)) is not None:
            raise StartRefused(problem)
        if options.data_dir is not None:
            await leave_out(server.store, ids, options.data_dir)
        defaults = _defaults(options, len(ids), is_new=is_new or len(known) == 1)  # of one broker: taken from `serve`
        supervisor = Supervisor(plans, options, defaults, server, environment, FileDisk(), stop, ahead)
        server.on_command = RollingRestart(supervisor, server.store).on_command
        environment.loop.add_signal_handler(signal.SIGCHLD, supervisor.look_again)
        for number in (signal.SIGTERM, signal.SIGINT):
            environment.loop.add_signal_handler(number, _stops, stop, supervisor)
        try:
            await supervisor.start()
            if not stop.is_set():
                protection.tell([each.listener for each in plans], BrokerConfig(options.static), options.metrics)
                click.echo(_ready_line(supervisor, options, replicas_of(options, defaults)))
                await supervisor.run()
            if not stop.is_set():
                raise BrokerFailed("no broker is left: each has died too often, as the log says")
            logger.info("stopping")
        finally:
            await supervisor.stop()
        return 0 if supervisor.was_clean else 1


def _stops(stop: asyncio.Event, supervisor: Supervisor) -> None:
    stop.set()
    supervisor.look_again()


def _defaults(options: Options, count: int, *, is_new: bool) -> dict[str, str]:
    """Of topics. Raises StartRefused."""
    if options.data_dir is None:
        return dict(ONE_REPLICA)
    disk = FileDisk()
    found = topic_defaults(defaults_of(disk, options.data_dir), count, is_new=is_new)
    if is_new:
        keep_defaults(disk, options.data_dir, found)
    return dict(found)


@asynccontextmanager
async def served_store(data_dir: str | None, environment: Environment) -> AsyncGenerator[tuple[StoreServer, bool]]:
    """The store, and its socket; and whether it is new. Raises StartRefused, StoreDamaged, OSError."""
    if data_dir is None:
        with private_directory() as directory:
            async with _serving(MemoryStore(), directory, environment) as server:
                yield server, True
        return
    disk, tasks = FileDisk(), Tasks(environment.loop)
    directory = metadata_directory(data_dir)
    lock = lock_metadata(disk, data_dir)
    try:
        is_new = not disk.exists(posixpath.join(directory, "metadata.log"))
        store = EmbeddedStore.open(disk, directory, run_blocking=environment.run_blocking, tasks=tasks)
        async with _serving(store, directory, environment) as server:
            yield server, is_new
    finally:
        await tasks.close()
        lock.release()


@asynccontextmanager
async def _serving(store: LocalStore, directory: str, environment: Environment) -> AsyncGenerator[StoreServer]:
    """Closes the store, too. Raises StartRefused."""
    path = posixpath.join(directory, SOCKET_FILE)
    try:
        try:
            sock = listening_socket(path)
        except OSError as error:
            raise StartRefused(
                f"the socket {path} cannot be made: {error.strerror or error}; if the file system has no sockets, give "
                "a --data-dir on a local one"
            ) from error
        server = StoreServer(store, environment, path)
        await server.start(sock)
        try:
            yield server
        finally:
            await server.close()
    finally:
        await store.close()


def _ready_line(supervisor: Supervisor, options: Options, replicas: int) -> str:
    addresses = ",".join(supervisor.addresses)
    count = len(supervisor.members)
    return (
        f"odradek {VERSION} cluster ready on {addresses} (data in {options.data_dir or 'memory'}; {count} processes; "
        f"new topics have {replicas} replica(s))"
    )
