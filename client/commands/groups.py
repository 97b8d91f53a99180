"""`odradek groups`: list, describe, members, reset, delete, delete-offsets."""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from odradek.client.commands.failures import EXIT_CODES_HELP, CommandFailed
from odradek.client.commands.moment import Moment
from odradek.client.commands.options import Target, json_option, on_target
from odradek.client.commands.output import print_json, print_line, print_table
from odradek.client.commands.partition_names import Partitions, named_partitions

if TYPE_CHECKING:
    from odradek.client.commands.reset_plan import Reset
    from odradek.client.topic_partition import TopicPartition

GROUPS: Final = click.argument("groups", metavar="GROUP...", nargs=-1, required=True)
TOPICS: Final = click.option(
    "--topic", "topics", multiple=True, type=Partitions(), help="A topic, or some partitions of it; repeatable."
)
ALL_TOPICS: Final = click.option("--all-topics", is_flag=True, help="All partitions that the group has offsets of.")
YES: Final = click.option("--yes", "-y", is_flag=True, help="Do not ask. (Without a terminal nothing is asked anyway.)")

Named = tuple[tuple[str, tuple[int, ...]], ...]


@click.group(epilog=EXIT_CODES_HELP)
def groups() -> None:
    """List, describe, reset and delete consumer groups."""


@groups.command("list", epilog=EXIT_CODES_HELP)
@click.option("--state", "states", multiple=True, metavar="STATE", help="Only such: Stable, Empty, …; repeatable.")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only such: classic, consumer, …; repeatable.")
@json_option
@on_target
async def list_groups(target: Target, states: tuple[str, ...], types: tuple[str, ...], as_json: bool) -> None:
    """List all groups.

    A broker that does not answer, or has not loaded its groups, is told of, with the groups of the others.
    """
    from odradek.client.admin.errors import ItemsFailed

    failed: ItemsFailed | None = None
    async with target.admin() as admin:
        try:
            found = await admin.list_groups(states, types)
        except ItemsFailed as error:
            failed = error
            by_id = {group.group_id: group for some in error.results.values() for group in some}
            found = [by_id[group_id] for group_id in sorted(by_id)]
    if as_json:
        print_json([asdict(group) for group in found])
    else:
        rows = [(each.group_id, each.group_type, each.state, each.protocol_type or None) for each in found]
        print_table(("GROUP", "TYPE", "STATE", "PROTOCOL"), rows)
    if failed is not None:
        raise failed


@groups.command("describe", epilog=EXIT_CODES_HELP)
@click.argument("groups", metavar="[GROUP]...", nargs=-1)
@click.option(
    "--isolation",
    type=click.Choice(["read_uncommitted", "read_committed"]),
    default="read_uncommitted",
    show_default=True,
    help="Up to where the lag counts: the log's end, or the first open transaction.",
)
@json_option
@on_target
async def describe(target: Target, groups: tuple[str, ...], isolation: str, as_json: bool) -> None:
    """Show how far groups are, by partition.

    With state, offsets, lag, who reads the partition, when offsets expire, and on a terminal and with --json why the
    group rebalanced last. Default: all groups.
    """
    from odradek.client.commands.group_description import described, looked_for
    from odradek.client.commands.group_output import COLUMNS, group_json, rebalance_lines, rows, summary

    failures = looked_for()
    async with target.admin() as admin:
        wanted = list(dict.fromkeys(groups)) or [group.group_id for group in await admin.list_groups()]
        known = await failures.or_results(admin.describe_groups(wanted))
        found = await described(admin, known, failures, read_committed=isolation == "read_committed")
    if as_json:
        print_json([group_json(each) for each in found])
    elif found or not failures:
        print_table(COLUMNS, rows(found))
        for each in found if sys.stdout.isatty() else ():
            for line in (summary(each), *rebalance_lines(each.group)):
                print_line(line)
    failures.tell()


@groups.command("members", epilog=EXIT_CODES_HELP)
@GROUPS
@json_option
@on_target
async def members(target: Target, groups: tuple[str, ...], as_json: bool) -> None:
    """Show the members of groups, and the partitions that each has."""
    from odradek.client.commands.group_output import MEMBER_COLUMNS, member_json, member_row
    from odradek.client.commands.several import Failures

    failures = Failures()
    async with target.admin() as admin:
        found = await failures.or_results(admin.describe_groups(groups))
    every = [(group.group_id, member) for group in found.values() for member in group.members]
    if as_json:
        print_json([{"group": group_id, **member_json(member)} for group_id, member in every])
    elif found or not failures:
        print_table(MEMBER_COLUMNS, [member_row(group_id, member) for group_id, member in every])
    failures.tell()


@groups.command("reset", epilog=EXIT_CODES_HELP)
@GROUPS
@click.option("--to-earliest", is_flag=True, help="To the first record that there is.")
@click.option("--to-latest", is_flag=True, help="To the end.")
@click.option("--to-offset", type=click.IntRange(0, 2**63 - 1), metavar="N", help="To this offset.")
@click.option(
    "--to-time",
    type=Moment(),
    help="To the first record that is not older: 2026-08-01T12:00 (local, unless it says otherwise), @MILLISECONDS.",
)
@click.option("--shift-by", type=click.IntRange(-(2**63) + 1, 2**63 - 1), metavar="N", help="By so many; -N: back.")
@click.option(
    "--from-file",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="As a CSV says: topic,partition,offset, or with the group before that.",
)
@TOPICS
@ALL_TOPICS
@click.option("--execute", is_flag=True, help="Do it. Without, only what would be done is shown.")
@json_option
@on_target
async def reset(
    target: Target,
    groups: tuple[str, ...],
    to_earliest: bool,
    to_latest: bool,
    to_offset: int | None,
    to_time: int | None,
    shift_by: int | None,
    from_file: str | None,
    topics: Named,
    all_topics: bool,
    execute: bool,
    as_json: bool,
) -> None:
    """Reset the offsets of groups that have no members.

    Shows what would be done; --execute does it. An offset that a partition does not have becomes the nearest that it
    has.
    """
    from odradek.client.commands.reset_plan import Reset, To

    given = [
        Reset(to, value)
        for to, is_given, value in (
            (To.EARLIEST, to_earliest, 0),
            (To.LATEST, to_latest, 0),
            (To.OFFSET, to_offset is not None, to_offset or 0),
            (To.TIME, to_time is not None, to_time or 0),
            (To.SHIFT, shift_by is not None, shift_by or 0),
            (To.FILE, from_file is not None, 0),
        )
        if is_given
    ]
    if len(given) != 1:
        raise click.UsageError(
            "give one of --to-earliest, --to-latest, --to-offset, --to-time, --shift-by and --from-file"
        )
    wanted = list(dict.fromkeys(groups))
    written = {} if from_file is None else _read_offsets(from_file, wanted)
    if from_file is None:
        require_topics(topics, all_topics=all_topics)
    elif topics or all_topics:
        raise click.UsageError("FILE says which partitions: leave --topic and --all-topics out")
    await _reset(target, wanted, given[0], topics or None, written, execute=execute, as_json=as_json)


async def _reset(
    target: Target,
    groups: Sequence[str],
    reset: "Reset",
    topics: Named | None,
    written: "dict[str, dict[TopicPartition, int]]",
    *,
    execute: bool,
    as_json: bool,
) -> None:
    from odradek.client.commands.group_reset import reset_groups

    async with target.admin() as admin:
        await reset_groups(admin, groups, reset, topics, written, execute=execute, as_json=as_json)


def _read_offsets(path: str, groups: Sequence[str]) -> "dict[str, dict[TopicPartition, int]]":
    """Raises UsageError."""
    from odradek.client.commands.reset_plan import parse_reset_file

    try:
        return parse_reset_file(Path(path).read_text(encoding="utf-8").splitlines(), groups)
    except (OSError, ValueError) as error:
        raise click.UsageError(f"{path}: {error}") from error


def require_topics(topics: Named, *, all_topics: bool) -> None:
    """Raises UsageError unless one of both is given."""
    if bool(topics) == all_topics:
        raise click.UsageError("give --topic (it may be repeated), or --all-topics")


@groups.command("delete", epilog=EXIT_CODES_HELP)
@GROUPS
@YES
@on_target
async def delete(target: Target, groups: tuple[str, ...], yes: bool) -> None:
    """Delete groups that have no members, with their offsets."""
    from odradek.client.commands.several import Failures

    wanted = list(dict.fromkeys(groups))
    _ask(f"Delete {', '.join(wanted)} with all offsets?", yes=yes)
    failures = Failures()
    async with target.admin() as admin:
        for group_id in await failures.or_done(admin.delete_groups(wanted), wanted):
            print_line(f"{group_id} deleted")
    failures.tell()


@groups.command("delete-offsets", epilog=EXIT_CODES_HELP)
@click.argument("group", metavar="GROUP")
@TOPICS
@ALL_TOPICS
@YES
@on_target
async def delete_offsets(target: Target, group: str, topics: Named, all_topics: bool, yes: bool) -> None:
    """Delete offsets of a group, of topics that none of its members reads."""
    from odradek.client.commands.several import Failures

    require_topics(topics, all_topics=all_topics)
    failures = Failures()
    async with target.admin() as admin:
        if all_topics:
            wanted = sorted(await admin.group_offsets(group))
        else:
            wanted = await named_partitions(admin, topics)
        if not wanted:
            raise CommandFailed(f"{group} has no offsets. `odradek groups list` names the groups that there are.")
        _ask(f"Delete the offsets of {group} in {', '.join(map(str, wanted))}?", yes=yes)
        for partition in await failures.or_done(admin.delete_group_offsets(group, wanted), wanted):
            print_line(f"{group}: offset of {partition} deleted")
    failures.tell()


def _ask(question: str, *, yes: bool) -> None:
    """Raises CommandFailed for a no."""
    if not yes and sys.stdin.isatty() and not click.confirm(question, err=True):
        raise CommandFailed("Nothing was deleted.")
