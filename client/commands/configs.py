"""`odradek configs`: show, set and delete the options of topics, groups and brokers."""

from typing import TYPE_CHECKING, Final

import click

from odradek.client.commands.failures import EXIT_CODES_HELP
from odradek.client.commands.options import Assignment, Target, json_option, on_target
from odradek.client.commands.output import print_json, print_line, print_table

if TYPE_CHECKING:
    from odradek.client.admin.configs import ConfigResource

EVERY_BROKER: Final = "default"
RESOURCE: Final = click.argument("kind", metavar="topic|group|broker", type=click.Choice(["topic", "group", "broker"]))
NAME: Final = click.argument("name", metavar="NAME")


@click.group(epilog=EXIT_CODES_HELP)
def configs() -> None:
    """Show and change options of topics, groups and brokers.

    NAME is that of a topic, the id of a group or of a broker, or "default" for what holds for all brokers.
    """


@configs.command("describe", epilog=EXIT_CODES_HELP)
@RESOURCE
@NAME
@click.argument("options", metavar="[OPTION]...", nargs=-1)
@click.option("--all", "show_all", is_flag=True, help="Those that nobody has set, too.")
@json_option
@on_target
async def describe(
    target: Target, kind: str, name: str, options: tuple[str, ...], show_all: bool, as_json: bool
) -> None:
    """Show options: those named, or else those that are set."""
    resource = resource_of(kind, name)
    async with target.admin() as admin:
        found = await admin.describe_configs([resource], options or None, synonyms=True, documentation=as_json)
    entries = sorted(found[resource].values(), key=lambda entry: entry.name)
    shown = [entry for entry in entries if show_all or options or not entry.is_default]
    if as_json:
        print_json(
            [
                {
                    "name": entry.name,
                    "value": entry.value,
                    "source": entry.source.name,
                    "type": entry.type.name,
                    "is_read_only": entry.is_read_only,
                    "is_sensitive": entry.is_sensitive,
                    "synonyms": [
                        {"name": each.name, "value": each.value, "source": each.source.name} for each in entry.synonyms
                    ],
                    "documentation": entry.documentation,
                }
                for entry in shown
            ]
        )
        return
    print_table(
        ("OPTION", "VALUE", "SOURCE"),
        [
            (entry.name, "(hidden)" if entry.is_sensitive else entry.value, entry.source.name.lower().replace("_", "-"))
            for entry in shown
        ],
    )


@configs.command("set", epilog=EXIT_CODES_HELP)
@RESOURCE
@NAME
@click.argument("settings", metavar="OPTION=VALUE...", nargs=-1, type=Assignment())
@click.option("--append", "appended", multiple=True, type=Assignment(), help="Add to a list, as cleanup.policy is.")
@click.option("--subtract", "subtracted", multiple=True, type=Assignment(), help="Take from a list.")
@click.option("--validate-only", is_flag=True, help="Change nothing; say what would go wrong.")
@on_target
async def set_options(
    target: Target,
    kind: str,
    name: str,
    settings: tuple[tuple[str, str], ...],
    appended: tuple[tuple[str, str], ...],
    subtracted: tuple[tuple[str, str], ...],
    validate_only: bool,
) -> None:
    """Give options a value. The others stay as they are."""
    from odradek.client.admin.configs import ConfigChange
    from odradek.client.commands.warnings import warn_of_topics, warn_of_unknown

    changes = [
        *(ConfigChange.set(option, value) for option, value in settings),
        *(ConfigChange.append(option, value) for option, value in appended),
        *(ConfigChange.subtract(option, value) for option, value in subtracted),
    ]
    if not changes:
        raise click.UsageError("nothing to set: give OPTION=VALUE, --append or --subtract")
    resource = resource_of(kind, name)
    async with target.admin() as admin:
        await admin.alter_configs({resource: changes}, validate_only=validate_only)
        print_line(f"{resource} {'would be changed' if validate_only else 'changed'}")
        if kind == "topic":
            await warn_of_topics(admin, [name], settings)
        elif not validate_only:
            await warn_of_unknown(admin, resource, [change.name for change in changes])


@configs.command("delete", epilog=EXIT_CODES_HELP)
@RESOURCE
@NAME
@click.argument("options", metavar="OPTION...", nargs=-1, required=True)
@on_target
async def delete(target: Target, kind: str, name: str, options: tuple[str, ...]) -> None:
    """Let options be what they are without being set."""
    from odradek.client.admin.configs import ConfigChange

    resource = resource_of(kind, name)
    async with target.admin() as admin:
        await admin.alter_configs({resource: [ConfigChange.delete(option) for option in options]})
    print_line(f"{resource} changed")


def resource_of(kind: str, name: str) -> "ConfigResource":
    """What the first two words of the command name. Raises UsageError."""
    from odradek.client.admin.configs import ConfigResource

    if kind == "topic":
        return ConfigResource.topic(name)
    if kind == "group":
        return ConfigResource.group(name)
    if name == EVERY_BROKER:
        return ConfigResource.broker()
    if not name.isascii() or not name.isdecimal():
        raise click.UsageError(f"{name!r} is no id of a broker; write a number, or {EVERY_BROKER} for all")
    return ConfigResource.broker(int(name))
