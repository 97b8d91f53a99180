"""Runs a broker in a process: from settings to the line that says it is ready, and from a signal to a clean end."""

import asyncio
import gc
import signal
from collections.abc import Generator, Iterable
from contextlib import contextmanager

import click

from broker.cluster.keys import MalformedMetadata
from broker.cluster.store import StoreDamaged
from broker.config import BrokerConfig, ConfigError
from broker.disk import FileDisk, raise_descriptor_limit
from broker.listen_options import check_listeners, parse_address
from broker.listeners import Listener, parse_listener
from broker.meta_properties import ForeignDirectory
from broker.server import Broker, Settings, StartRefused, disk_for, logger
from broker.version import VERSION
from client.environment import Environment, loop_factory

HELPER_THREADS = 16
"""Half of them for syncs at most (replication/syncs.py), the others for cold reads, compaction and what else waits."""


def settings_of(config: BrokerConfig, memory: bool, metrics: str | None) -> Settings:
    """What a configuration and the two options beside it mean. Raises ListenerError, ConfigError."""
    listeners, advertised = check_listeners(
        [parse_listener(text) for text in config.listeners],
        [parse_listener(text) for text in config.advertised_listeners or ()],
    )
    first_dir, *other_dirs = config.data_dirs
    if other_dirs:
        raise ConfigError(f"log.dirs names {1 + len(other_dirs)} directories, and this broker keeps one for now")
    return Settings(
        listeners=listeners,
        advertised=advertised,
        data_dir=None if memory else first_dir,
        node_id=config.node_id,
        config=config,
        metrics=None if metrics is None else parse_address(metrics, "--metrics"),
    )


def run(settings: Settings) -> int:
    """Runs one broker until a signal stops it; the process's exit code."""
    raise_descriptor_limit()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(_run(settings))


async def _run(settings: Settings) -> int:
    environment = Environment()
    environment.allow_helper_threads(HELPER_THREADS)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        environment.loop.add_signal_handler(number, stop.set)
    broker = Broker(settings, environment, disk_for(settings, FileDisk()))
    try:
        with collector_paused():
            await broker.start()
    except (StartRefused, ForeignDirectory, StoreDamaged, MalformedMetadata) as error:
        click.echo(f"Error: {error}", err=True)
        return 1
    except OSError as error:  # the disk, at some step of the start: the text names the file
        click.echo(f"Error: the broker cannot start: {error}", err=True)
        return 1
    warn_of_exposure(settings.listeners)
    click.echo(ready_line(broker))
    await stop.wait()
    logger.info("stopping")
    await broker.stop()
    return 0


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
    """What standard output says: `odradek VERSION ready on HOST:PORT[, NAME=HOST:PORT…] (node N, data in DIR)`."""
    settings = broker.settings
    first, *others = settings.listeners
    bound = broker.bound
    addresses = [str(bound[first.name]), *(f"{listener.name}={bound[listener.name]}" for listener in others)]
    data = "memory" if settings.data_dir is None else settings.data_dir
    return f"odradek {VERSION} ready on {', '.join(addresses)} (node {settings.node_id}, data in {data})"
