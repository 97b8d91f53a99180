"""`odradek testing serve`: a test's cluster for programs in other languages. What it runs is imported when it runs."""

import signal
import sys
import threading
from types import FrameType
from typing import Any, Final

import click

from odradek.broker.launch.log_level_option import ALL_LOGGERS, LOG_LEVEL

EXIT_CODES_HELP: Final = "Exit codes: 0 done, 1 it could not start, 2 wrong command line."
NAME_AND_PARTITIONS: Final = "NAME[:PARTITIONS]"


class Topics(click.ParamType[tuple[tuple[str, int], ...]]):
    """`orders:6,bills`: names with their numbers of partitions, one where none is given."""

    name = f"{NAME_AND_PARTITIONS},…"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[tuple[str, int], ...]:
        if not isinstance(value, str):
            return tuple(value)
        found: list[tuple[str, int]] = []
        for text in value.split(","):
            name, colon, partitions = text.partition(":")
            is_number = partitions.isascii() and partitions.isdecimal() and int(partitions[:9]) >= 1
            if not name or (colon and not is_number):
                self.fail(f"{text!r} is not {NAME_AND_PARTITIONS}", param, ctx)
            found.append((name, int(partitions) if colon else 1))
        return tuple(found)


@click.group(epilog=EXIT_CODES_HELP)
def testing() -> None:
    """Run clusters for tests, for any language.

    A program in Python has them without a command, by `odradek.testing.cluster`.
    """


@testing.command(epilog=EXIT_CODES_HELP)
@click.option("--brokers", type=click.IntRange(1, 100), default=3, show_default=True, help="How many.")
@click.option(
    "--topics", type=Topics(), multiple=True, help="Topics to begin with; one partition where no number is given.",
)  # fmt: skip
@click.option("--host", default="127.0.0.1", show_default=True, help="Where they accept connections.")
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=0,
    help="Of the first broker; the others on the ports behind it. Default: any that are free.",
)  # fmt: skip
@click.option("--advertise", metavar="HOST", help="Tell clients to connect to this host instead, with the same ports.")
@click.option("--set", "assignments", multiple=True, metavar="NAME=VALUE", help="One option, for all brokers.")
@click.option("--act-as", metavar="RELEASE", help="Tell clients the versions of this Apache Kafka, such as 3.9.")
@click.option("--data-dir", metavar="DIR", help="Keep the logs here. Default: in memory.")
@click.option(
    "--log-level", "log_levels", type=LOG_LEVEL, multiple=True, metavar="[LOGGER=]LEVEL",
    help="Log this and what is worse: trace, debug, info, warning, error. Default warning.",
)  # fmt: skip
def serve(
    brokers: int,
    topics: tuple[tuple[tuple[str, int], ...], ...],
    host: str,
    port: int,
    advertise: str | None,
    assignments: tuple[str, ...],
    act_as: str | None,
    data_dir: str | None,
    log_levels: tuple[tuple[str, str], ...],
) -> None:
    """Run a cluster for tests: brokers in one process, with real in-sync sets, and nothing on disk.

    Groups do not wait for more members before they begin. Prints one line when all accept connections and the topics
    have leaders, with the addresses behind `ready on`. SIGTERM and SIGINT end it.
    """
    from odradek.broker.launch.collector import collector_paused

    end = threading.Event()

    def ends(number: int, frame: FrameType | None) -> None:
        end.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, ends)
    with collector_paused():  # of what is imported nearly nothing is garbage
        from odradek.broker.config.broker_config import ConfigError, load_static
        from odradek.broker.launch.listen_options import ListenerError
        from odradek.broker.launch.logging_format import configure_logging
        from odradek.broker.startup_errors import REFUSALS, explained
        from odradek.broker.version import VERSION
        from odradek.testing.cluster_options import ClusterOptions, OptionsRefused
        from odradek.testing.kafka_cluster import KafkaCluster
        from odradek.testing.running_cluster import NewTopicRefused

    configure_logging({ALL_LOGGERS: "warning"} | dict(log_levels), "text")
    by_name = {name: partitions for each in topics for name, partitions in each}
    try:
        options = ClusterOptions(
            brokers=brokers,
            topics=by_name,
            config=load_static(None, assignments),
            act_as=act_as,
            data_dir=data_dir,
            host=host,
            port=port,
            advertised_host=advertise,
        )
        with KafkaCluster(options) as kafka:
            made = ", ".join(f"{name}:{partitions}" for name, partitions in by_name.items()) or "none"
            where = data_dir or "memory"
            click.echo(
                f"odradek {VERSION} test cluster ready on {kafka.bootstrap_servers} (topics {made}; data in {where})"
            )
            end.wait()
    except (*REFUSALS, ConfigError, ListenerError, OptionsRefused, NewTopicRefused, OSError) as error:
        click.echo(f"Error: {explained(error) or error}", err=True)
        sys.exit(1)
