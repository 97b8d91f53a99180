"""Runs a broker in a process: from settings to the line that says it is ready, and from a signal to a clean end."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any

import click

from odradek.broker.config.settings import Settings
from odradek.broker.disk.descriptor_limits import raise_descriptor_limit
from odradek.broker.launch.collector import collector_paused, short_collections
from odradek.broker.launch.serving import HELPER_THREADS, running
from odradek.broker.server import Broker, logger
from odradek.broker.startup_errors import REFUSALS, explained
from odradek.broker.version import VERSION
from odradek.runtime.environment import Environment, loop_factory


def run(settings: Settings) -> int:
    """Runs one broker until a signal stops it; the process's exit code."""
    return run_until_signal(lambda environment, stop: _run(settings, environment, stop))


def run_until_signal(work: Callable[[Environment, asyncio.Event], Coroutine[Any, Any, None]]) -> int:
    """Runs something that ends when a signal sets the event; 1 with a sentence for what cannot start."""
    raise_descriptor_limit()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(_until_signal(work))


async def _until_signal(work: Callable[[Environment, asyncio.Event], Coroutine[Any, Any, None]]) -> int:
    environment = Environment(owns_process=True)
    environment.allow_helper_threads(HELPER_THREADS)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        environment.loop.add_signal_handler(number, stop.set)
    try:
        with short_collections(environment.loop):
            await work(environment, stop)
    except REFUSALS as error:
        click.echo(f"Error: {explained(error) or error}", err=True)
        return 1
    except OSError as error:  # the disk, at some step of the start: the text names the file
        click.echo(f"Error: the broker cannot start: {error}", err=True)
        return 1
    finally:
        environment.end_helper_threads()
    return 0


async def _run(settings: Settings, environment: Environment, stop: asyncio.Event) -> None:
    async with running(settings, environment, stop, collector_paused) as broker:
        if broker is None:
            return
        click.echo(ready_line(broker))
        broker.on_failure = stop.set
        if broker.failure is None:
            await stop.wait()
        logger.info("stopping")


def ready_line(broker: Broker) -> str:
    """What standard output says: `odradek VERSION ready on HOST:PORT[, NAME=HOST:PORT…] (node N, data in DIR…)`."""
    settings = broker.settings
    first, *others = settings.listeners
    bound = broker.bound
    addresses = [str(bound[first.name]), *(f"{listener.name}={bound[listener.name]}" for listener in others)]
    data = "memory" if settings.data_dirs is None else ", ".join(settings.data_dirs)
    return f"odradek {VERSION} ready on {', '.join(addresses)} (node {settings.node_id}, data in {data})"
