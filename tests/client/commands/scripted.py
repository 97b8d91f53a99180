"""Commands on the loop of the test, against a scripted cluster, whatever the command line says of brokers."""

import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import click
import pytest

from odradek.client.admin.admin import Admin
from odradek.client.commands.failures import CommandFailed
from odradek.client.commands.options import Target
from odradek.client.errors.client_errors import ClientError
from tests.client.admin_handlers import Served, serve_admin
from tests.client.replication_handlers import Replicated, serve_replication
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster


class OnScripted(Target):
    """An admin client of the scripted cluster."""

    scripted: ScriptedCluster

    def admin(self, settings: Mapping[str, object] | None = None) -> Admin:
        assert not settings
        environment = self.scripted.environment
        return Admin(self.scripted.bootstrap, environment=lambda: environment, default_api_timeout_ms=5_000)


@contextmanager
def replicated_cluster(brokers: int, **topics: int) -> Generator[tuple[ScriptedCluster, Served, Replicated]]:
    """A cluster with these topics, by their numbers of partitions."""
    with scripted_cluster(brokers=brokers) as scripted:
        served = serve_admin(scripted)
        for name, partitions in topics.items():
            scripted.create_topic(name, partitions)
        yield scripted, served, serve_replication(scripted)


async def ran(scripted: ScriptedCluster, group: click.Group, *arguments: str) -> ClientError | CommandFailed | None:
    """Runs a command of a group. Returns the error that it would tell."""
    return await ran_on(_target(scripted), group, *arguments)


async def ran_alone(
    scripted: ScriptedCluster, command: click.Command, *arguments: str
) -> ClientError | CommandFailed | None:
    """The same for a command that is in no group."""
    return await ran_command(_target(scripted), command, *arguments)


async def ran_on(target: Target, group: click.Group, *arguments: str) -> ClientError | CommandFailed | None:
    """A command of a group, on any cluster."""
    return await ran_command(target, group.commands[arguments[0]], *arguments[1:])


async def ran_command(target: Target, command: click.Command, *arguments: str) -> ClientError | CommandFailed | None:
    """Any command on any cluster."""
    assert command.name is not None
    with command.make_context(command.name, list(arguments)) as context:
        given = {name: context.params[name] for name in context.params if name not in Target.__annotations__}
    given = {name: value for name, value in given.items() if name not in ("timeout_s", "verbose")}
    run: Any = getattr(command.callback, "__wrapped__")  # noqa: B009
    try:
        await run(target, **given)
    except (ClientError, CommandFailed) as error:
        return error
    return None


def _target(scripted: ScriptedCluster) -> Target:
    target = object.__new__(OnScripted)
    object.__setattr__(target, "scripted", scripted)
    return target


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard output is a person's."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
