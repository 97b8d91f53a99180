"""The `odradek` command line. Each command lives with what it runs; this is the door.

A command is imported when it is called, so `odradek --help` and the help of each command answer at once: their one-line
summaries stand here.
"""

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, Final

import click

from odradek.standard_streams import open_missing_streams

Loader = Callable[[], click.Command]


def _serve() -> click.Command:
    from odradek.broker.launch.serve_command import serve

    return serve


def _topics() -> click.Command:
    from odradek.client.commands.topics import topics

    return topics


def _produce() -> click.Command:
    from odradek.client.commands.produce import produce

    return produce


def _consume() -> click.Command:
    from odradek.client.commands.consume import consume

    return consume


def _configs() -> click.Command:
    from odradek.client.commands.configs import configs

    return configs


def _brokers() -> click.Command:
    from odradek.client.commands.brokers import brokers

    return brokers


def _partitions() -> click.Command:
    from odradek.client.commands.partitions import partitions

    return partitions


def _groups() -> click.Command:
    from odradek.client.commands.groups import groups

    return groups


def _transactions() -> click.Command:
    from odradek.client.commands.transactions import transactions

    return transactions


def _producers() -> click.Command:
    from odradek.client.commands.producers import producers

    return producers


def _features() -> click.Command:
    from odradek.client.commands.features import features

    return features


def _acls() -> click.Command:
    from odradek.client.commands.acls import acls

    return acls


def _users() -> click.Command:
    """The client adds users through a broker, and the broker to the metadata of one that is stopped."""
    from odradek.client.commands.users import users
    from odradek.secure.first_user_command import add_offline

    users.add_offline = add_offline
    return users


def _quotas() -> click.Command:
    from odradek.client.commands.quotas import quotas

    return quotas


def _secure() -> click.Command:
    from odradek.secure.command import secure

    return secure


def _cluster() -> click.Command:
    """`status` asks brokers; the others are the broker's, or work on the store of the metadata."""
    from odradek.broker.launch.cluster_command import roll, run
    from odradek.broker.offline.rescue.command import backup, rebuild, restore
    from odradek.broker.offline.take.command import take
    from odradek.client.commands.cluster import cluster

    for command in (run, roll, take, backup, restore, rebuild):
        cluster.add_command(command)
    return cluster


def _dump() -> click.Command:
    from odradek.broker.offline.dump.command import dump

    return dump


def _adopt() -> click.Command:
    from odradek.broker.offline.adopt.command import adopt

    return adopt


def _testing() -> click.Command:
    from odradek.testing.serve_command import testing

    return testing


COMMANDS: Final[dict[str, tuple[Loader, str]]] = {
    "serve": (_serve, "Run a broker."),
    "adopt": (_adopt, "Take over the data directory of a stopped Apache Kafka."),
    "topics": (_topics, "List, create, describe, alter and delete topics."),
    "produce": (_produce, "Send lines from standard input to a topic."),
    "consume": (_consume, "Print the records of a topic."),
    "configs": (_configs, "Show and change options of topics, groups and brokers."),
    "brokers": (_brokers, "List the brokers of a cluster."),
    "partitions": (_partitions, "Move and spread partitions, and elect their leaders."),
    "groups": (_groups, "List, describe, reset and delete consumer groups."),
    "transactions": (_transactions, "List, describe and abort transactions."),
    "producers": (_producers, "Show the producers of topics, and their open transactions."),
    "features": (_features, "Show and change the features of a cluster."),
    "acls": (_acls, "List, add, remove and explain ACLs."),
    "users": (_users, "List, add and remove users with passwords for SCRAM."),
    "quotas": (_quotas, "List, add and remove quotas of users, client ids and addresses."),
    "secure": (_secure, "Make a secure broker and its clients; check a listener."),
    "cluster": (_cluster, "Run a cluster; show, save, restore and rebuild its state."),
    "dump": (_dump, "Print or verify the files of a log."),
    "testing": (_testing, "Run clusters for tests, for any language."),
}


class _OnDemand(MutableMapping[str, click.Command]):
    """The commands by name, each imported when it is looked up."""

    def __init__(self, loaders: dict[str, Loader]) -> None:
        self._loaders = loaders

    def __getitem__(self, name: str) -> click.Command:
        return self._loaders[name]()

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._loaders[name] = lambda: command

    def __delitem__(self, name: str) -> None:
        del self._loaders[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaders)

    def __len__(self) -> int:
        return len(self._loaders)


class _Door(click.Group):
    """A group that tells of its commands without importing them."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        open_missing_streams()
        return super().main(*args, **kwargs)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


@click.group(cls=_Door, commands=_OnDemand({name: loader for name, (loader, _) in COMMANDS.items()}))
@click.version_option(package_name="odradek")
def main() -> None:
    """Odradek: a Kafka-compatible broker and client in asyncio Python.

    `adopt`, `dump`, `secure init` and most of `cluster` work on files. All others but `serve` work against any broker:
    --bootstrap-server, or the environment variable ODRADEK_BOOTSTRAP_SERVER, says which; else localhost:9092.
    """
