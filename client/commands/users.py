"""`odradek users`: list, add, remove users with passwords for SCRAM.

The first user of a new cluster cannot be added through a broker, which would want to know who asks. With `--data-dir`
`add` writes into the metadata of a broker that does not run. That is the broker's work, which the client knows nothing
of: the door (`odradek/cli.py`) puts it into `users.add_offline`.
"""

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

import click

from odradek.client.commands.acl_options import NonEmpty
from odradek.client.commands.failures import EXIT_CODES_HELP, USAGE, CommandFailed
from odradek.client.commands.options import Target, json_option, on_target
from odradek.client.commands.output import print_json, print_line, print_table

if TYPE_CHECKING:
    from odradek.client.admin.scram_users import ScramMechanism

MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISM_DEFAULT: Final = "SCRAM-SHA-512"
ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16_384

AddOffline = Callable[[str, str, list[str], str, int], Awaitable[str]]
"""Of a data directory, user, mechanisms, password, iterations: stores the user, and says what was done. Raises
CommandFailed."""


class _Users(click.Group):
    """The group, with what the broker does for it; None where there is no broker."""

    add_offline: AddOffline | None = None


@click.group(cls=_Users, epilog=EXIT_CODES_HELP)
def users() -> None:
    """List, add and remove users with passwords for SCRAM."""


@users.command("list", epilog=EXIT_CODES_HELP)
@click.argument("names", metavar="[USER]...", nargs=-1, type=NonEmpty())
@json_option
@on_target
async def list_users(target: Target, names: tuple[str, ...], as_json: bool) -> None:
    """List users and for which mechanisms they have passwords. Default: all."""
    from odradek.client.commands.several import Failures

    failures = Failures()
    async with target.admin() as admin:
        found = await failures.or_results(admin.describe_user_scram_credentials(names or None))
    rows = [(user, each.mechanism.sasl_name, each.iterations) for user in sorted(found) for each in found[user]]
    if as_json:
        print_json([{"user": user, "mechanism": name, "iterations": count} for user, name, count in rows])
    elif rows or not failures:
        print_table(("USER", "MECHANISM", "ITERATIONS"), rows)
    failures.tell()


@users.command("add", epilog=EXIT_CODES_HELP)
@click.argument("user", metavar="USER", type=NonEmpty())
@click.option(
    "--mechanism", "mechanisms", multiple=True, type=click.Choice(MECHANISMS),
    help=f"What the password is for; repeatable. Default: {MECHANISM_DEFAULT}.",
)  # fmt: skip
@click.option(
    "--iterations", type=click.IntRange(ITERATIONS_MIN, ITERATIONS_MAX), default=ITERATIONS_MIN, show_default=True,
    help="How often the password is hashed.",
)  # fmt: skip
@click.option(
    "--password-file", metavar="FILE",
    help="The password is the first line of this; - is standard input. Default: asked for on a terminal.",
)  # fmt: skip
@click.option(
    "--data-dir", metavar="DIR",
    help="Store the user in the metadata of a stopped broker, as for the first user of a new cluster.",
)  # fmt: skip
@on_target
async def add(
    target: Target,
    user: str,
    mechanisms: tuple[str, ...],
    iterations: int,
    password_file: str | None,
    data_dir: str | None,
) -> None:
    """Add a user, or give one another password.

    The password is salted and hashed here: brokers never see it.
    """
    from odradek.client.admin.scram_users import ScramUpsertion
    from odradek.client.commands.passwords import password_of

    wanted = list(dict.fromkeys(mechanisms)) or [MECHANISM_DEFAULT]
    if data_dir is not None:
        if users.add_offline is None:
            raise CommandFailed("--data-dir needs the broker, which is not installed here.", USAGE)
        password = password_of(user, password_file)
        print_line(await users.add_offline(data_dir, user, wanted, password, iterations))
        return
    password = password_of(user, password_file)
    async with target.admin() as admin:
        await admin.alter_user_scram_credentials(
            [ScramUpsertion(user, password, _mechanism(name), iterations) for name in wanted]
        )
    print_line(f"{user} has a password for {' and '.join(wanted)}")


@users.command("remove", epilog=EXIT_CODES_HELP)
@click.argument("user", metavar="USER", type=NonEmpty())
@click.option(
    "--mechanism", "mechanisms", multiple=True, type=click.Choice(MECHANISMS),
    help="Only the password for this; repeatable.",
)  # fmt: skip
@click.option("--yes", is_flag=True, help="Do not ask.")
@on_target
async def remove(target: Target, user: str, mechanisms: tuple[str, ...], yes: bool) -> None:
    """Remove the passwords of a user, of every mechanism unless some are named.

    Connections that are open stay, as in Apache Kafka: an ACL with --deny ends what they may do.
    """
    from odradek.client.admin.base import only
    from odradek.client.admin.scram_users import ScramDeletion

    async with target.admin() as admin:
        has = await only(user, admin.describe_user_scram_credentials([user]))
        names = list(dict.fromkeys(mechanisms)) or [each.mechanism.sasl_name for each in has]
        question = f"Remove the password of {user} for {' and '.join(names)}?"
        if not yes and sys.stdin.isatty() and not click.confirm(question, err=True):
            raise CommandFailed("Nothing was removed.")
        await admin.alter_user_scram_credentials([ScramDeletion(user, _mechanism(name)) for name in names])
    print_line(f"{user} has no password for {' and '.join(names)} any more")
    click.echo("Connections of theirs that are open stay; to end what they may do, add an ACL with --deny.", err=True)


def _mechanism(name: str) -> "ScramMechanism":
    from odradek.client.admin.scram_users import ScramMechanism

    return ScramMechanism[name.replace("-", "_")]
