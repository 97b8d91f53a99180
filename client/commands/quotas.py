"""`odradek quotas`: list, add, remove quotas of users, client ids and addresses."""

import sys
from collections.abc import Callable
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from odradek.client.commands.acl_options import NonEmpty
from odradek.client.commands.failures import EXIT_CODES_HELP, CommandFailed
from odradek.client.commands.options import Target, json_option, on_target
from odradek.client.commands.output import Cell, print_json, print_line, print_table

if TYPE_CHECKING:
    from odradek.client.admin.quotas import QuotaEntity

F = TypeVar("F", bound=Callable[..., Any])

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
DEFAULT_TEXT: Final = "<default>"


class QuotaValue(click.ParamType[tuple[str, float]]):
    """`NAME=NUMBER`."""

    name = "NAME=NUMBER"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, float]:
        name, equals, text = str(value).partition("=")
        try:
            number = float(text)
        except ValueError:
            number = float("nan")
        if not name or not equals or not isfinite(number):
            self.fail(f"{value!r} is not of the form NAME=NUMBER", param, ctx)
        return name, number


def with_entity(command: F) -> F:
    """The options that say whose quotas are meant; `names_of` reads them."""
    for option in reversed(
        (
            click.option("--user", type=NonEmpty(), metavar="NAME", help="Of a user."),
            click.option("--user-default", is_flag=True, help="Of users without a quota of their own."),
            click.option("--client-id", type=NonEmpty(), metavar="ID", help="Of a client id, or that of a user."),
            click.option("--client-id-default", is_flag=True, help="Of client ids without a quota of their own."),
            click.option("--ip", type=NonEmpty(), metavar="ADDRESS", help="Of an IP address."),
            click.option("--ip-default", is_flag=True, help="Of addresses without a quota of their own."),
        )
    ):
        command = option(command)
    return command


def names_of(
    user: str | None,
    user_default: bool,
    client_id: str | None,
    client_id_default: bool,
    ip: str | None,
    ip_default: bool,
) -> dict[str, str | None]:
    """Names by type; None for a default. Raises UsageError."""
    names: dict[str, str | None] = {}
    for kind, name, is_default in (
        (USER, user, user_default),
        (CLIENT_ID, client_id, client_id_default),
        (IP, ip, ip_default),
    ):
        if name is not None and is_default:
            raise click.UsageError(f"--{kind} and --{kind}-default exclude each other")
        if name is not None or is_default:
            names[kind] = name
    if IP in names and len(names) > 1:
        raise click.UsageError("an address has quotas of its own: --ip goes with neither --user nor --client-id")
    return names


@click.group(epilog=EXIT_CODES_HELP)
def quotas() -> None:
    """List, add and remove quotas of users, client ids and addresses.

    A quota holds on each broker by itself. That of a user with a client id counts before that of the user, and both
    before that of the client id; defaults count where nothing else does.
    """


@quotas.command("list", epilog=EXIT_CODES_HELP)
@with_entity
@json_option
@on_target
async def list_quotas(target: Target, /, as_json: bool, **entity: Any) -> None:
    """List quotas, by whose they are. Default: all."""
    from odradek.client.admin.quotas import QuotaComponent, QuotaFilter

    components = tuple(QuotaComponent.named(kind, name) for kind, name in names_of(**entity).items())
    async with target.admin() as admin:
        found = await admin.describe_client_quotas(QuotaFilter(components))
    if as_json:
        print_json([{"entity": each.names, "quotas": values} for each, values in found.items()])
        return
    rows = [(*_cells(each), name, number(value)) for each, values in found.items() for name, value in values.items()]
    print_table(("USER", "CLIENT ID", "IP", "QUOTA", "VALUE"), rows)


@quotas.command("add", epilog=EXIT_CODES_HELP)
@with_entity
@click.argument("values", metavar="QUOTA=NUMBER...", nargs=-1, required=True, type=QuotaValue())
@click.option("--validate-only", is_flag=True, help="Change nothing; say what would go wrong.")
@on_target
async def add(target: Target, /, values: tuple[tuple[str, float], ...], validate_only: bool, **entity: Any) -> None:
    """Add quotas, or give them another value. The others stay.

    QUOTA is producer_byte_rate or consumer_byte_rate (bytes in a second), request_percentage (100: one thread),
    controller_mutation_rate (in a second), or, of addresses, connection_creation_rate (in a second).
    """
    whose = _entity(names_of(**entity))
    async with target.admin() as admin:
        await admin.alter_client_quotas({whose: dict(values)}, validate_only=validate_only)
    for name, value in dict(values).items():
        print_line(f"{whose}: {name} {'would be' if validate_only else 'is'} {number(value)}")


@quotas.command("remove", epilog=EXIT_CODES_HELP)
@with_entity
@click.argument("names", metavar="[QUOTA]...", nargs=-1, type=NonEmpty())
@click.option("--all", "removes_all", is_flag=True, help="All quotas of exactly this user, client id or address.")
@click.option("--yes", is_flag=True, help="With --all: do not ask.")
@on_target
async def remove(target: Target, /, names: tuple[str, ...], removes_all: bool, yes: bool, **entity: Any) -> None:
    """Remove quotas, of one user, client id or address. The others stay."""
    from odradek.client.admin.quotas import QuotaFilter

    if bool(names) == removes_all:
        raise click.UsageError("name the quotas to remove, or give --all")
    whose = _entity(names_of(**entity))
    async with target.admin() as admin:
        has = (await admin.describe_client_quotas(QuotaFilter.exactly(whose))).get(whose, {})
        wanted = list(has) if removes_all else list(dict.fromkeys(names))
        if missing := [name for name in wanted if name not in has]:
            raise CommandFailed(f"Nothing was removed: {whose} has no {', '.join(missing)}.")
        if not wanted:
            raise CommandFailed(f"Nothing was removed: {whose} has no quotas.")
        question = f"Remove {', '.join(wanted)} of {whose}?"
        if removes_all and not yes and sys.stdin.isatty() and not click.confirm(question, err=True):
            raise CommandFailed("Nothing was removed.")
        await admin.alter_client_quotas({whose: dict.fromkeys(wanted)})
    for name in wanted:
        print_line(f"{whose}: {name} removed")


def number(value: float) -> str:
    """Without a fraction where it has none."""
    return str(int(value)) if value.is_integer() else str(value)


def _entity(names: dict[str, str | None]) -> "QuotaEntity":
    """Raises UsageError."""
    from odradek.client.admin.quotas import QuotaEntity

    if not names:
        raise click.UsageError("whose quotas? give --user, --client-id or --ip, or one of their defaults")
    return QuotaEntity.from_names(names)


def _cells(entity: "QuotaEntity") -> tuple[Cell, ...]:
    names = entity.names
    return tuple((names[kind] or DEFAULT_TEXT) if kind in names else None for kind in (USER, CLIENT_ID, IP))
