"""`odradek cluster run`: the command line of a cluster in one process."""

import sys
from typing import Final

import click

from odradek.broker.launch.log_level_option import ALL_LOGGERS, LOG_LEVEL
from odradek.broker.launch.serve_command import LOG_FORMATS

BROKERS_MAX: Final = 50
EXIT_CODES_HELP: Final = "Exit codes: 0 done, 1 it could not start or failed, 2 wrong command line."


@click.command(epilog=EXIT_CODES_HELP)
@click.option("--brokers", "count", type=click.IntRange(1, BROKERS_MAX), default=3, show_default=True, help="How many.")
@click.option(
    "--listen", default="127.0.0.1:9092", show_default=True, metavar="HOST:PORT",
    help="Where the first one accepts; the others on the ports behind it. Port 0: free ones.",
)  # fmt: skip
@click.option("--data-dir", metavar="DIR", help="Where everything is kept. Default ./odradek-cluster.")
@click.option("--memory", is_flag=True, help="Keep everything in memory, for tests: a stop forgets it.")
@click.option("--set", "assignments", multiple=True, metavar="NAME=VALUE", help="One option, for all brokers.")
@click.option(
    "--log-level", "log_levels", type=LOG_LEVEL, multiple=True, metavar="[LOGGER=]LEVEL",
    help="Log this and what is worse: trace, debug, info, warning, error. Default warning.",
)  # fmt: skip
@click.option("--log-format", type=click.Choice(LOG_FORMATS), default="text", show_default=True, help="Of each line.")
def run(
    count: int,
    listen: str,
    data_dir: str | None,
    memory: bool,
    assignments: tuple[str, ...],
    log_levels: tuple[tuple[str, str], ...],
    log_format: str,
) -> None:
    """Run several brokers in one process, replicating to one another.

    Topics get three replicas and min.insync.replicas=2 unless told otherwise. Prints one line when all accept
    connections. SIGTERM and SIGINT stop them cleanly.
    """
    from odradek.broker.config.broker_config import ConfigError, load_static
    from odradek.broker.launch.listen_options import ListenerError, parse_address
    from odradek.broker.launch.logging_format import configure_logging
    from odradek.broker.launch.run_cluster import cluster_settings, run_cluster

    configure_logging({ALL_LOGGERS: "warning"} | dict(log_levels), log_format)
    if memory and data_dir is not None:
        raise click.UsageError("--memory and --data-dir exclude each other: give one of them")
    directory = None if memory else data_dir or "odradek-cluster"
    try:
        settings = cluster_settings(count, parse_address(listen, "--listen"), directory, load_static(None, assignments))
    except (ConfigError, ListenerError, OSError) as error:
        raise click.ClickException(str(error)) from error
    sys.exit(run_cluster(settings, directory))
