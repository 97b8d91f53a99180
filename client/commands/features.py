"""`odradek features`: what the brokers of a cluster can do, and what all of them rely on."""

from dataclasses import asdict
from typing import Final

import click

from odradek.client.commands.failures import EXIT_CODES_HELP
from odradek.client.commands.options import Target, json_option, on_target
from odradek.client.commands.output import print_json, print_line, print_table

DOWNGRADES: Final = {"safe": 2, "unsafe": 3}


class Level(click.ParamType[tuple[str, int]]):
    """`NAME=LEVEL`."""

    name = "NAME=LEVEL"

    def convert(
        self, value: str | tuple[str, int], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        feature, equals, level = value.partition("=")
        if not feature or not equals or not (level.isascii() and level.isdecimal()):
            self.fail(f"{value!r} is not of the form NAME=LEVEL, with a whole number", param, ctx)
        return feature, int(level)


@click.group(epilog=EXIT_CODES_HELP)
def features() -> None:
    """Show and change the features of a cluster.

    A feature is used when its level is finalized: then all brokers have it, and rely on it.
    """


@features.command("describe", epilog=EXIT_CODES_HELP)
@click.option("--node", "node_id", type=click.IntRange(0), metavar="ID", help="As this broker has them.")
@json_option
@on_target
async def describe(target: Target, node_id: int | None, as_json: bool) -> None:
    """Show which levels of each feature a broker has, and which one is finalized."""
    async with target.admin() as admin:
        found = await admin.describe_features(node_id=node_id)
    if as_json:
        print_json([asdict(each) for each in found.values()])
        return
    print_table(
        ("FEATURE", "SUPPORTED", "FINALIZED"),
        [
            (each.name, f"{each.supported_min}-{each.supported_max}" if each.supported_max else None, each.finalized)
            for each in found.values()
        ],
    )


@features.command("update", epilog=EXIT_CODES_HELP)
@click.argument("levels", metavar="NAME=LEVEL...", nargs=-1, required=True, type=Level())
@click.option(
    "--downgrade", type=click.Choice(list(DOWNGRADES)), help="To a lower level; `safe`: if that loses nothing."
)
@click.option("--validate-only", is_flag=True, help="Change nothing; say what would go wrong.")
@on_target
async def update(
    target: Target, levels: tuple[tuple[str, int], ...], downgrade: str | None, validate_only: bool
) -> None:
    """Finalize levels of features; 0 for none any more.

    A broker of ours finalizes each by itself when all registered brokers have it. It lowers transaction.version alone,
    which stays there until it is raised.
    """
    from odradek.client.admin.features import FeatureChange

    change = FeatureChange(DOWNGRADES[downgrade]) if downgrade else FeatureChange.UPGRADE
    async with target.admin() as admin:
        await admin.update_features(dict(levels), change, validate_only=validate_only)
    for name, level in dict(levels).items():
        print_line(f"{name} {'would be' if validate_only else 'is'} finalized at {level}")
