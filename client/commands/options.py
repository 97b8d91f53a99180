"""The options that every command has which talks to a broker, and what they come to: a `Target`.

    --bootstrap-server  where to begin; else ODRADEK_BOOTSTRAP_SERVER, the file's bootstrap.servers, localhost:9092
    --config FILE       settings of Kafka's clients in its properties form, for TLS and SASL above all
    --timeout SECONDS   how long a command waits for an answer

A file is often shared by several programs, so one that holds settings of a producer serves `odradek topics`, too: what
another of our clients knows is left out, what none knows is refused. Names may be written with dots, as Kafka does, or
with underscores, as our configurations do.
"""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import wraps
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar, cast

import click

from odradek.client.commands.failures import USAGE, CommandFailed

if TYPE_CHECKING:
    from odradek.client.admin.admin import Admin
    from odradek.client.configuration.client_config import ClientConfig

__all__ = ["Assignment", "FiniteRange", "Target", "json_option", "on_target"]

DEFAULT_BOOTSTRAP_SERVER: Final = "localhost:9092"
DEFAULT_TIMEOUT_S: Final = 10.0

P = ParamSpec("P")
C = TypeVar("C", bound="ClientConfig")


@dataclass(frozen=True, slots=True)
class Target:
    """Which cluster, how to reach it, and how patiently."""

    bootstrap_server: str | None = None
    config_file: str | None = None
    timeout_ms: int = int(DEFAULT_TIMEOUT_S * 1000)
    is_verbose: bool = False

    def config(
        self, kind: type[C], settings: Mapping[str, object] | None = None, defaults: Mapping[str, object] | None = None
    ) -> C:
        """The configuration of a client: `settings`, else the options', else the file's, else `defaults`, else its own.

        Raises ConfigError, CommandFailed.
        """
        found: dict[str, object] = {"bootstrap_servers": DEFAULT_BOOTSTRAP_SERVER}
        found |= by_field(kind, defaults or {})
        found |= by_field(kind, self._file_settings(kind))
        if self.bootstrap_server is not None:
            found["bootstrap_servers"] = self.bootstrap_server
        found |= by_field(kind, settings or {})
        return kind.from_dict(found)

    def admin(self, settings: Mapping[str, object] | None = None) -> "Admin":
        """An admin client whose calls take no longer than the timeout. Raises ConfigError, CommandFailed.

        `settings`: those of a command with another client, too. What an admin client knows of them counts here as well,
        so that the connections are of one kind.
        """
        from odradek.client.admin.admin import Admin
        from odradek.client.admin.config import AdminConfig
        from odradek.client.configuration.settings import rows

        known = rows(AdminConfig)
        wanted = {name: value for name, value in by_field(AdminConfig, settings or {}).items() if name in known}
        return Admin(config=self.config(AdminConfig, {"default_api_timeout_ms": self.timeout_ms, **wanted}))

    def _file_settings(self, kind: "type[ClientConfig]") -> dict[str, object]:
        if self.config_file is None:
            return {}
        from odradek.client.admin.config import AdminConfig
        from odradek.client.configuration.settings import rows
        from odradek.client.consumer.config import ConsumerConfig
        from odradek.client.producer.config import ProducerConfig
        from odradek.runtime.properties import parse_properties

        try:
            written = parse_properties(Path(self.config_file).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise CommandFailed(f"{self.config_file}: {error}", USAGE) from error
        known = rows(kind)
        others = {
            name
            for other in (AdminConfig, ConsumerConfig, ProducerConfig)
            for field, row in rows(other).items()
            if field not in known
            for name in (field, row.kafka_name)
        }
        return {name: value for name, value in written.items() if name not in others}


def by_field(kind: "type[ClientConfig]", settings: Mapping[str, object]) -> dict[str, object]:
    """The settings under the names of the configuration's fields; what it does not know, as it is written."""
    from odradek.client.configuration.settings import rows

    fields = {row.kafka_name: field for field, row in rows(kind).items()}
    return {fields.get(name, name): value for name, value in settings.items()}


class FiniteRange(click.FloatRange):
    """A number within bounds. Not a number is in none: every comparison with it is false, so click lets it through."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not isfinite(number):
            self.fail(f"{value} is no finite number.", param, ctx)
        return number


class Assignment(click.ParamType[tuple[str, str]]):
    """NAME=VALUE of a command line, as a pair."""

    name = "NAME=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return cast("tuple[str, str]", value)
        name, equals, content = str(value).partition("=")
        if not equals or not name.strip():
            self.fail(f"{value!r} is not of the form NAME=VALUE", param, ctx)
        return name.strip(), content.strip()


def on_target(command: Callable[Concatenate[Target, P], Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Makes a command of a coroutine function: with the options above, of which its first argument is what they come
    to; run, and the process ended, as `odradek.client.commands.running` says."""

    @click.option(
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT[,…]",
        envvar="ODRADEK_BOOTSTRAP_SERVER",
        help=f"A broker to begin with. Default: ODRADEK_BOOTSTRAP_SERVER, or {DEFAULT_BOOTSTRAP_SERVER}.",
    )
    @click.option(
        "--config",
        "config_file",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        help="Settings of Kafka's clients in its properties form: TLS, SASL.",
    )
    @click.option(
        "--timeout",
        "timeout_s",
        type=FiniteRange(0.001, 86_400.0),
        metavar="SECONDS",
        default=DEFAULT_TIMEOUT_S,
        show_default=True,
        help="How long to wait for an answer.",
    )
    @click.option("--verbose", "-v", is_flag=True, help="Log what happens to standard error.")
    @wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        from odradek.client.commands.running import run

        target = Target(
            bootstrap_server=cast("str | None", kwargs.pop("bootstrap_server")) or None,
            config_file=cast("str | None", kwargs.pop("config_file")),
            timeout_ms=int(cast(float, kwargs.pop("timeout_s")) * 1000),
            is_verbose=cast(bool, kwargs.pop("verbose")),
        )
        run(lambda: command(target, *args, **kwargs), is_verbose=target.is_verbose)

    return wrapped


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
