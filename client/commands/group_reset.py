"""Resets the offsets of groups (`odradek groups reset`): looks, plans, and with `--execute` changes.

All is looked at before anything is changed, and nothing is changed where a part of the plan cannot be made: a group
has members, a partition does not exist, or there is no offset that could be shifted.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import click

from odradek.client.admin.admin import Admin
from odradek.client.admin.errors import ItemsFailed
from odradek.client.admin.group_errors import NOT_FOUND
from odradek.client.admin.groups import GroupDescription
from odradek.client.commands.failures import CommandFailed
from odradek.client.commands.output import print_json, print_table
from odradek.client.commands.partition_names import named_partitions
from odradek.client.commands.reset_plan import Ends, Move, Reset, To, planned
from odradek.client.commands.several import Failures
from odradek.client.fetching.list_offsets import EARLIEST, LATEST
from odradek.client.topic_partition import TopicPartition

__all__ = ["refuse_active", "reset_groups"]

SHOWN_MAX: Final = 10
"""So many members of a group are named."""

Written = Mapping[str, Mapping[TopicPartition, int]]


async def reset_groups(
    admin: Admin,
    groups: Sequence[str],
    reset: Reset,
    topics: Iterable[tuple[str, tuple[int, ...]]] | None,
    written: Written,
    *,
    execute: bool,
    as_json: bool,
) -> None:
    """`topics`: None for all of which a group has offsets. `written`: the offsets of a file, by group.

    Raises CommandFailed, ClientError.
    """
    await refuse_active(admin, groups)
    committed = await admin.list_group_offsets(groups)
    named = None if topics is None else await named_partitions(admin, topics)
    plans: dict[str, list[Move]] = {}
    refused: list[str] = []
    for group in groups:
        wanted = list(written.get(group, ())) or (sorted(committed[group]) if named is None else named)
        if not wanted:
            refused.append(f"{group} has no offsets: name topics by --topic")
            continue
        ends = await _ends_of(admin, wanted, reset, written.get(group, {}))
        plans[group], problems = planned(reset, ends, committed[group])
        refused += [f"{group}: {problem}" for problem in problems]
    if refused:
        raise CommandFailed(f"Nothing was reset: {'; '.join(refused)}.")
    failures = Failures()
    done = plans
    if execute:
        done = {group: await _execute(admin, group, moves, failures) for group, moves in plans.items()}
    _print(done, execute=execute, as_json=as_json)
    failures.tell()
    if not execute:
        click.echo("Nothing was changed: this is what --execute would do.", err=True)


async def refuse_active(admin: Admin, groups: Sequence[str]) -> None:
    """Raises CommandFailed for a group that has members, whose offsets would be overwritten by what these commit.

    One that there is not has none: an offset makes it.
    """
    try:
        described = await admin.describe_groups(groups)
    except ItemsFailed as failed:
        if others := {group: error for group, error in failed.errors.items() if error.code is not NOT_FOUND}:
            raise ItemsFailed(failed.what, others, failed.results) from None
        described = failed.results
    if active := [_active(group) for group in described.values() if group.is_active]:
        raise CommandFailed(f"Nothing was reset: {'; '.join(active)}. Stop the members, and reset then.")


def _active(group: GroupDescription) -> str:
    names = [_member(each.member_id, each.instance_id, each.client_id, each.host) for each in group.members]
    others = f", and {len(names) - SHOWN_MAX} other(s)" if len(names) > SHOWN_MAX else ""
    if not names:
        return f"{group.group_id} is {group.state}"
    return f"{group.group_id} is {group.state} and has members: {', '.join(names[:SHOWN_MAX])}{others}"


def _member(member_id: str, instance_id: str | None, client_id: str, host: str) -> str:
    static = "" if instance_id is None else f" (instance {instance_id})"
    return f"{member_id}{static} of {client_id or 'a client without a name'} at {host or 'an unknown host'}"


async def _ends_of(
    admin: Admin, partitions: Sequence[TopicPartition], reset: Reset, written: Mapping[TopicPartition, int]
) -> dict[TopicPartition, Ends]:
    """Raises ItemsFailed for a partition that there is not, or whose leader does not answer."""
    starts = await admin.list_offsets(dict.fromkeys(partitions, EARLIEST))
    ends = await admin.list_offsets(dict.fromkeys(partitions, LATEST))
    by_time = await admin.list_offsets(dict.fromkeys(partitions, reset.value)) if reset.to is To.TIME else None
    return {
        each: Ends(
            starts[each].offset,
            ends[each].offset,
            -1 if by_time is None else by_time[each].offset,
            written.get(each, 0),
        )
        for each in partitions
    }


async def _execute(admin: Admin, group: str, moves: Sequence[Move], failures: Failures) -> list[Move]:
    """Returns the moves that were made."""
    offsets = {move.partition: move.after for move in moves}
    done = set(await failures.or_done(admin.alter_group_offsets(group, offsets), offsets))
    return [move for move in moves if move.partition in done]


def _print(plans: Mapping[str, Sequence[Move]], *, execute: bool, as_json: bool) -> None:
    if as_json:
        print_json(
            [
                {
                    "group": group,
                    "topic": move.partition.topic,
                    "partition": move.partition.partition,
                    "before": move.before,
                    "after": move.after,
                    "note": move.note or None,
                    "executed": execute,
                }
                for group, moves in plans.items()
                for move in moves
            ]
        )
        return
    print_table(
        ("GROUP", "TOPIC", "PARTITION", "BEFORE", "AFTER", "NOTE"),
        [
            (group, move.partition.topic, move.partition.partition, move.before, move.after, move.note or None)
            for group, moves in plans.items()
            for move in moves
        ],
    )
