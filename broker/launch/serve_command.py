"""`odradek serve`: the command line. What it runs is imported when it runs, so that `--help` answers at once."""

import sys

import click

from odradek.broker.launch.log_level_option import ALL_LOGGERS, LOG_LEVEL

LOG_FORMATS = ("text", "json")
SECURE_HELP = "Refuse to start where others could get in: without authentication, encryption or an authorizer."


@click.command()
@click.option("--listen", multiple=True, metavar="[NAME=]HOST:PORT", help="Accept here. Default 127.0.0.1:9092.")
@click.option("--advertise", multiple=True, metavar="[NAME=]HOST:PORT", help="Tell clients to connect here instead.")
@click.option(
    "--data-dir", "data_dirs", multiple=True, metavar="DIR",
    help="Where the logs are kept. Default ./odradek-data. Repeat it to use several devices.",
)  # fmt: skip
@click.option("--memory", is_flag=True, help="Keep everything in memory, for tests: a stop forgets it.")
@click.option(
    "--metadata", metavar="ADDRESS",
    help="Where the metadata lives: embedded: (default), or etcd://HOST:PORT,HOST:PORT/prefix for a cluster.",
)  # fmt: skip
@click.option("--node-id", type=click.IntRange(0), help="This broker's id. Default 0.")
@click.option(
    "--config", "config_file", type=click.Path(exists=True, dir_okay=False), metavar="FILE",
    help="Options in Kafka's server.properties form.",
)  # fmt: skip
@click.option("--set", "assignments", multiple=True, metavar="NAME=VALUE", help="One option; wins over the file.")
@click.option("--metrics", metavar="HOST:PORT", help="Serve Prometheus metrics here.")
@click.option("--secure", is_flag=True, help=SECURE_HELP)
@click.option(
    "--log-level", "log_levels", type=LOG_LEVEL, multiple=True, metavar="[LOGGER=]LEVEL",
    help="Log this and what is worse: trace, debug, info, warning, error. Default info.",
)  # fmt: skip
@click.option("--log-format", type=click.Choice(LOG_FORMATS), default="text", show_default=True, help="Of each line.")
def serve(
    listen: tuple[str, ...],
    advertise: tuple[str, ...],
    data_dirs: tuple[str, ...],
    memory: bool,
    metadata: str | None,
    node_id: int | None,
    config_file: str | None,
    assignments: tuple[str, ...],
    metrics: str | None,
    secure: bool,
    log_levels: tuple[tuple[str, str], ...],
    log_format: str,
) -> None:
    """Run a broker.

    Prints one line when it accepts connections. SIGTERM and SIGINT stop it cleanly.
    """
    from odradek.broker.launch.collector import collector_paused

    with collector_paused():  # of what is imported nearly nothing is garbage
        from odradek.broker.config.broker_config import BrokerConfig, ConfigError
        from odradek.broker.launch.broker_settings import settings_of
        from odradek.broker.launch.listen_options import ListenerError, parse_address
        from odradek.broker.launch.logging_format import configure_logging
        from odradek.broker.launch.memory_defaults import with_defaults
        from odradek.broker.launch.run_broker import run
        from odradek.broker.launch.static_file import read_static

    configure_logging({ALL_LOGGERS: "info"} | dict(log_levels), log_format)
    if memory and data_dirs:
        raise click.UsageError("--memory and --data-dir exclude each other: give one of them")
    try:
        static = read_static(config_file, assignments)
        if listen:
            static["listeners"] = ",".join(str(parse_address(text, "--listen")) for text in listen)
        if advertise:
            static["advertised.listeners"] = ",".join(str(parse_address(text, "--advertise")) for text in advertise)
        if data_dirs:
            static["log.dirs"] = ",".join(data_dirs)
        if metadata is not None:
            static["metadata.store"] = metadata
        if node_id is not None:
            static["node.id"] = str(node_id)
        if secure:
            static["secure"] = "true"
        settings = settings_of(BrokerConfig(with_defaults(static, memory=memory)), memory, metrics)
    except (ConfigError, ListenerError, OSError, UnicodeDecodeError) as error:
        raise click.ClickException(str(error)) from error
    sys.exit(run(settings))
