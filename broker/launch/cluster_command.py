"""`odradek cluster run` and `odradek cluster roll`: the command lines of a cluster on one machine.

What they run is imported when they run, so that `--help` answers at once.
"""

import sys
from typing import Final

import click

from odradek.broker.launch.log_level_option import ALL_LOGGERS, LOG_LEVEL
from odradek.broker.launch.serve_command import LOG_FORMATS, SECURE_HELP

BROKERS_MAX: Final = 50
BROKERS_OF_ONE_PROCESS: Final = 3
AUTO: Final = "auto"
DIRECTORY: Final = "odradek-cluster"
LISTEN: Final = "127.0.0.1:9092"
EXIT_CODES_HELP: Final = "Exit codes: 0 done, 1 it could not start or failed, 2 wrong command line."


class BrokerCount(click.ParamType[int]):
    """A number of brokers, or `auto`, which is 0."""

    name = "N|auto"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        if value == AUTO:
            return 0
        if not (value.isascii() and value.isdecimal() and 1 <= int(value[:9]) <= BROKERS_MAX):
            self.fail(f"{value!r} is not in the range 1<=x<={BROKERS_MAX}, nor {AUTO}", param, ctx)
        return int(value)


@click.command(epilog=EXIT_CODES_HELP)
@click.option(
    "--brokers", "count", type=BrokerCount(), metavar="N|auto",
    help="How many. Default: as many as the directory has; for a new one 3, and auto with --processes: one for each "
    "processor, and one less where that leaves two.",
)  # fmt: skip
@click.option("--processes", is_flag=True, help="Run each broker in a process of its own, so that all cores are used.")
@click.option(
    "--listen", "listen", multiple=True, metavar="HOST:PORT",
    help=f"Where the first one accepts; the others on the ports behind it. Port 0: free ones. Default {LISTEN}. With "
    "--processes it may be given once for each broker.",
)  # fmt: skip
@click.option(
    "--advertise", multiple=True, metavar="HOST:PORT",
    help="Tell clients to connect here instead; once, or once for each broker. With --processes.",
)  # fmt: skip
@click.option("--data-dir", metavar="DIR", help=f"Where everything is kept. Default ./{DIRECTORY}.")
@click.option("--memory", is_flag=True, help="Keep everything in memory, for tests: a stop forgets it.")
@click.option(
    "--config", "config_file", type=click.Path(exists=True, dir_okay=False), metavar="FILE",
    help="Options for all brokers, in Kafka's server.properties form.",
)  # fmt: skip
@click.option("--set", "assignments", multiple=True, metavar="NAME=VALUE", help="One option, for all brokers.")
@click.option("--metrics", metavar="HOST:PORT", help="Serve Prometheus metrics of all brokers here. With --processes.")
@click.option("--secure", is_flag=True, help=SECURE_HELP)
@click.option(
    "--log-level", "log_levels", type=LOG_LEVEL, multiple=True, metavar="[LOGGER=]LEVEL",
    help="Log this and what is worse: trace, debug, info, warning, error. Default warning.",
)  # fmt: skip
@click.option("--log-format", type=click.Choice(LOG_FORMATS), default="text", show_default=True, help="Of each line.")
def run(
    count: int | None,
    processes: bool,
    listen: tuple[str, ...],
    advertise: tuple[str, ...],
    data_dir: str | None,
    memory: bool,
    config_file: str | None,
    assignments: tuple[str, ...],
    metrics: str | None,
    secure: bool,
    log_levels: tuple[tuple[str, str], ...],
    log_format: str,
) -> None:
    """Run several brokers on this machine, in one process or in several.

    In one process they replicate to one another: topics get three replicas and min.insync.replicas=2 unless told
    otherwise. With --processes they use all cores, and topics of a new directory get one replica. Prints one line when
    all accept connections. SIGTERM and SIGINT stop them cleanly.
    """
    from odradek.broker.launch.collector import collector_paused

    with collector_paused():  # of what is imported nearly nothing is garbage
        from odradek.broker.launch.supervisor.child_process import BrokersAhead, likely_ids

    if memory and data_dir is not None:
        raise click.UsageError("--memory and --data-dir exclude each other: give one of them")
    if not processes and (count == 0 or advertise or metrics is not None or len(listen) > 1):
        raise click.UsageError("--brokers auto, --advertise, --metrics and several --listen need --processes")
    directory = None if memory else data_dir or DIRECTORY
    known = count or (len(listen) if len(listen) > 1 else None)
    ahead = BrokersAhead(likely_ids(known, directory) if processes else ())
    click.get_current_context().call_on_close(ahead.close)

    with collector_paused():
        from odradek.broker.config.broker_config import ConfigError
        from odradek.broker.launch.listen_options import ListenerError, parse_address, parse_metrics_address
        from odradek.broker.launch.logging_format import configure_logging
        from odradek.broker.launch.static_file import read_static

    levels = {ALL_LOGGERS: "warning"} | dict(log_levels)
    configure_logging(levels, log_format)
    try:
        listeners = [parse_address(text, "--listen") for text in listen or (LISTEN,)]
        advertised = [parse_address(text, "--advertise") for text in advertise]
        page = None if metrics is None else parse_metrics_address(metrics)
        static = read_static(config_file, assignments) | ({"secure": "true"} if secure else {})
        if processes:
            with collector_paused():
                from odradek.broker.launch.supervisor.plan import Options, plan
                from odradek.broker.launch.supervisor.run_supervisor import run_supervisor

            options = Options(listeners, advertised, directory, static, page, levels, log_format)
            plan(options, range(1, (known or 1) + 1))  # what makes no sense is said before anything is touched
            sys.exit(run_supervisor(known, options, ahead))
        with collector_paused():
            from odradek.broker.launch.cluster_settings import cluster_settings
            from odradek.broker.launch.run_cluster import run_cluster

        cluster_settings(count or BROKERS_OF_ONE_PROCESS, listeners[0], directory, static)
        sys.exit(run_cluster(count, listeners[0], directory, static))
    except (ConfigError, ListenerError, OSError, UnicodeDecodeError) as error:
        raise click.ClickException(str(error)) from error


@click.command(epilog="Exit codes: 0 done, 1 refused or not done, 2 wrong command line.")
@click.option("--data-dir", default=DIRECTORY, show_default=True, metavar="DIR", help="The directory of the cluster.")
def roll(data_dir: str) -> None:
    """Restart the brokers of `cluster run --processes`, one after the other.

    Each gives what others can lead to them before it stops, and the next one waits until all replicas are in sync: with
    two replicas or more clients see no error. Partitions with one replica are away while their broker restarts.
    """
    import asyncio

    from odradek.broker.cluster.socket_store.messages import CommandRefused
    from odradek.broker.launch.supervisor.asking import asked

    async def rolled() -> None:
        async for line in asked(data_dir, "roll"):
            click.echo(line)

    try:
        asyncio.run(rolled())
    except (CommandRefused, OSError) as error:
        raise click.ClickException(str(error)) from error
