"""Runs a broker in a process: from settings to the line that says it is ready, and from a signal to a clean end."""

import asyncio
import gc
import posixpath
import signal
from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any

import click

from odradek.broker.cluster.open_store import open_shared_store, wait_for_store
from odradek.broker.config.broker_config import BrokerConfig, ConfigError
from odradek.broker.config.listeners import Listener, parse_listener
from odradek.broker.disk.descriptor_limits import raise_descriptor_limit
from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.launch.listen_options import check_inter_broker, check_listeners, parse_address
from odradek.broker.server import Broker, Settings, disk_for, logger
from odradek.broker.startup_errors import REFUSALS, BrokerFailed, explained
from odradek.broker.version import VERSION
from odradek.runtime.environment import Environment, loop_factory

HELPER_THREADS = 16
"""Half of them for syncs at most (replica/syncs.py), the others for cold reads, compaction and what else waits."""


def settings_of(config: BrokerConfig, memory: bool, metrics: str | None) -> Settings:
    """What a configuration and the two options beside it mean. Raises ListenerError, ConfigError."""
    listeners, advertised = check_listeners(
        [parse_listener(text) for text in config.listeners],
        [parse_listener(text) for text in config.advertised_listeners or ()],
    )
    check_inter_broker(config.inter_broker_listener_name, listeners)
    check_data_dirs(config.data_dirs)
    return Settings(
        listeners=listeners,
        advertised=advertised,
        data_dirs=None if memory else config.data_dirs,
        node_id=config.node_id,
        config=config,
        metrics=None if metrics is None else parse_address(metrics, "--metrics"),
    )


def check_data_dirs(paths: Sequence[str]) -> None:
    """Raises ConfigError for a directory that is named twice, or lies in another one: its name may be a partition's."""
    if not paths:
        raise ConfigError("log.dirs names no directory")
    normal = [posixpath.normpath(path) for path in paths]
    for number, path in enumerate(normal):
        for other in normal[:number]:
            if path == other:
                raise ConfigError(f"the data directory {path} is given twice")
            if f"{path}/".startswith(f"{other}/") or f"{other}/".startswith(f"{path}/"):
                raise ConfigError(f"the data directories {other} and {path} lie in one another")


def run(settings: Settings) -> int:
    """Runs one broker until a signal stops it; the process's exit code."""
    return run_until_signal(lambda environment, stop: _run(settings, environment, stop))


def run_until_signal(work: Callable[[Environment, asyncio.Event], Coroutine[Any, Any, None]]) -> int:
    """Runs something that ends when a signal sets the event; 1 with a sentence for what cannot start."""
    raise_descriptor_limit()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(_until_signal(work))


async def _until_signal(work: Callable[[Environment, asyncio.Event], Coroutine[Any, Any, None]]) -> int:
    environment = Environment()
    environment.allow_helper_threads(HELPER_THREADS)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        environment.loop.add_signal_handler(number, stop.set)
    try:
        await work(environment, stop)
    except REFUSALS as error:
        click.echo(f"Error: {explained(error) or error}", err=True)
        return 1
    except OSError as error:  # the disk, at some step of the start: the text names the file
        click.echo(f"Error: the broker cannot start: {error}", err=True)
        return 1
    return 0


async def _run(settings: Settings, environment: Environment, stop: asyncio.Event) -> None:
    disk = FileDisk()
    store = await open_shared_store(settings.config, environment, disk)
    timeout_ms = settings.config.initial_broker_registration_timeout_ms
    try:
        if store is not None and not await wait_for_store(store, environment, timeout_ms, stop):
            return
        broker = Broker(settings, environment, disk_for(settings, disk), store=store)
        with collector_paused():
            await broker.start()
        warn_of_exposure(settings.listeners)
        click.echo(ready_line(broker))
        broker.on_failure = stop.set
        if broker.failure is None:
            await stop.wait()
        logger.info("stopping")
        await broker.stop()
        if broker.failure is not None:
            raise BrokerFailed(broker.failure)
    finally:
        if store is not None:
            await store.close()


@contextmanager
def collector_paused() -> Generator[None]:
    """What is made here stays: partitions, which the garbage collector need not walk over while they are opened, nor
    ever after, when the loop would wait for it."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def warn_of_exposure(listeners: Iterable[Listener]) -> None:
    """Tells of each listener that others can reach: there is no security yet."""
    for listener in listeners:
        if not listener.is_loopback:
            logger.warning(
                "listener %s accepts connections from other machines, without authentication or encryption: "
                "whoever reaches it can read, write and delete everything",
                listener,
            )


def ready_line(broker: Broker) -> str:
    """What standard output says: `odradek VERSION ready on HOST:PORT[, NAME=HOST:PORT…] (node N, data in DIR…)`."""
    settings = broker.settings
    first, *others = settings.listeners
    bound = broker.bound
    addresses = [str(bound[first.name]), *(f"{listener.name}={bound[listener.name]}" for listener in others)]
    data = "memory" if settings.data_dirs is None else ", ".join(settings.data_dirs)
    return f"odradek {VERSION} ready on {', '.join(addresses)} (node {settings.node_id}, data in {data})"
