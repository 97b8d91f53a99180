"""`odradek serve`: from the command line to a running broker, and from a signal to its clean end."""

import asyncio
import signal
import sys
from collections.abc import Iterable
from pathlib import Path

import click

from broker.cluster.keys import MalformedMetadata
from broker.cluster.store import StoreDamaged
from broker.config import BrokerConfig, ConfigError, load_static
from broker.disk import FileDisk, raise_descriptor_limit
from broker.listen_options import ListenerError, check_listeners, parse_address
from broker.listeners import Listener, parse_listener
from broker.log_format import FORMATS, LEVELS, configure_logging
from broker.meta_properties import ForeignDirectory
from broker.server import Broker, Settings, StartRefused, disk_for, logger
from broker.version import VERSION
from client.environment import Environment


@click.command()
@click.option("--listen", multiple=True, metavar="[NAME=]HOST:PORT", help="Accept here. Default 127.0.0.1:9092.")
@click.option("--advertise", multiple=True, metavar="[NAME=]HOST:PORT", help="Tell clients to connect here instead.")
@click.option("--data-dir", metavar="DIR", help="Where the logs are kept. Default ./odradek-data.")
@click.option("--memory", is_flag=True, help="Keep everything in memory, for tests: a stop forgets it.")
@click.option("--node-id", type=click.IntRange(0), help="This broker's id. Default 0.")
@click.option(
    "--config", "config_file", type=click.Path(exists=True, dir_okay=False), metavar="FILE",
    help="Options in Kafka's server.properties form.",
)  # fmt: skip
@click.option("--set", "assignments", multiple=True, metavar="NAME=VALUE", help="One option; wins over the file.")
@click.option("--metrics", metavar="HOST:PORT", help="Serve Prometheus metrics here.")
@click.option("--log-level", type=click.Choice(LEVELS), default="info", show_default=True)
@click.option("--log-format", type=click.Choice(FORMATS), default="text", show_default=True)
def serve(
    listen: tuple[str, ...],
    advertise: tuple[str, ...],
    data_dir: str | None,
    memory: bool,
    node_id: int | None,
    config_file: str | None,
    assignments: tuple[str, ...],
    metrics: str | None,
    log_level: str,
    log_format: str,
) -> None:
    """Run a broker.

    Prints one line when it accepts connections. SIGTERM and SIGINT stop it cleanly.
    """
    configure_logging(log_level, log_format)
    if memory and data_dir is not None:
        raise click.UsageError("--memory and --data-dir exclude each other: give one of them")
    try:
        static = load_static(Path(config_file).read_text() if config_file else None, assignments)
        if listen:
            static["listeners"] = ",".join(str(parse_address(text, "--listen")) for text in listen)
        if advertise:
            static["advertised.listeners"] = ",".join(str(parse_address(text, "--advertise")) for text in advertise)
        if data_dir is not None:
            static["log.dirs"] = data_dir
        if node_id is not None:
            static["node.id"] = str(node_id)
        settings = _settings(BrokerConfig(static), memory, metrics)
    except (ConfigError, ListenerError, OSError, UnicodeDecodeError) as error:
        raise click.ClickException(str(error)) from error
    sys.exit(run(settings))


def _settings(config: BrokerConfig, memory: bool, metrics: str | None) -> Settings:
    """Raises ListenerError, ConfigError."""
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
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_run(settings))


def _loop_factory() -> "type[asyncio.AbstractEventLoop] | None":
    if sys.platform == "win32":
        return None
    import uvloop

    return uvloop.Loop


async def _run(settings: Settings) -> int:
    environment = Environment()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        environment.loop.add_signal_handler(number, stop.set)
    broker = Broker(settings, environment, disk_for(settings, FileDisk()))
    try:
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
