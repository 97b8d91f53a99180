"""`odradek partitions`: moves partitions to other brokers, spreads them, and elects their leaders."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import click

from odradek.client.commands.failures import EXIT_CODES_HELP, CommandFailed
from odradek.client.commands.options import Target, json_option, on_target
from odradek.client.commands.output import print_json, print_table
from odradek.client.commands.replicas import ID_MAX, broker_ids, parse_replicas, read_targets

if TYPE_CHECKING:
    from odradek.client.admin.admin import Admin
    from odradek.client.admin.topics import PartitionDescription
    from odradek.client.commands.several import Failures
    from odradek.client.topic_partition import TopicPartition

THROTTLE_MIN: Final = 1


@click.group(epilog=EXIT_CODES_HELP)
def partitions() -> None:
    """Move and spread partitions, and elect their leaders."""


@partitions.command("reassign", epilog=EXIT_CODES_HELP)
@click.argument("file", metavar="[FILE]", required=False)
@click.option("--topic", metavar="TOPIC", help="Move a partition of this topic, instead of those in FILE.")
@click.option("--partition", type=click.IntRange(0, ID_MAX), help="Which one.")
@click.option("--replicas", metavar="ID,ID,…", help="The brokers that shall have it, the preferred leader first.")
@click.option("--cancel", is_flag=True, help="End what is under way for these partitions; they stay where they were.")
@click.option("--list", "lists", is_flag=True, help="Show what is under way, in all of the cluster; change nothing.")
@click.option(
    "--throttle", type=click.IntRange(THROTTLE_MIN), metavar="BYTES",
    help="Copy at most so many bytes a second on each broker.",
)  # fmt: skip
@click.option("--wait", is_flag=True, help="Return when it is done, and remove the throttle then.")
@json_option
@on_target
async def reassign(
    target: Target,
    file: str | None,
    topic: str | None,
    partition: int | None,
    replicas: str | None,
    cancel: bool,
    lists: bool,
    throttle: int | None,
    wait: bool,
    as_json: bool,
) -> None:
    """Move partitions to other brokers.

    FILE is JSON, as kafka-reassign-partitions takes it:
    {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [2, 3]}]}

    New replicas are filled first, and old ones removed when all new ones are in sync. The same command again changes
    nothing, and with --wait tells when it is done. Throttles stay until then: without --wait nobody removes them.
    """
    from odradek.client.commands.reassignment import cancel_moves, list_moves, move

    wanted = _wanted(file, topic, partition, replicas, cancel=cancel, lists=lists)
    if (cancel or lists) and (throttle is not None or wait):
        raise click.UsageError("--throttle and --wait belong to a move: leave them out with --cancel and --list")
    async with target.admin() as admin:
        if lists:
            await list_moves(admin, as_json=as_json)
        elif cancel:
            await cancel_moves(admin, list(wanted), as_json=as_json)
        else:
            await move(admin, wanted, throttle, wait=wait, as_json=as_json)


@partitions.command("spread", epilog=EXIT_CODES_HELP)
@click.option("--brokers", metavar="ID,ID,…", help="Over these. Default: over all that are registered.")
@click.option("--execute", is_flag=True, help="Do it, and return when it is done. Without, it is only told.")
@click.option(
    "--throttle", type=click.IntRange(THROTTLE_MIN), metavar="BYTES",
    help="Copy at most so many bytes a second on each broker.",
)  # fmt: skip
@click.option("--lot", type=click.IntRange(1), default=50, show_default=True, help="So many partitions at a time.")
@click.option(
    "--fewer-replicas", is_flag=True, help="Partitions with more replicas than there are brokers get one on each."
)
@json_option
@on_target
async def spread(
    target: Target,
    brokers: str | None,
    execute: bool,
    throttle: int | None,
    lot: int,
    fewer_replicas: bool,
    as_json: bool,
) -> None:
    """Spread all partitions evenly over brokers.

    Of each topic, and of all together, each broker gets as many replicas as any other, give or take one, and is as
    often the preferred leader. Internal topics are spread, too; replicas stay on as many racks as there are, and what
    can stay where it is stays. Tells what would move; --execute does it, in lots. When that was interrupted, the same
    command goes on. Throttles are removed at the end.
    """
    from odradek.client.commands.spreading.spread import Wanted
    from odradek.client.commands.spreading.spread import spread as carry_out

    if throttle is not None and not execute:
        raise click.UsageError("--throttle belongs to --execute: give both, or neither")
    ids = None if brokers is None else parse_replicas(brokers, "--brokers")
    async with target.admin() as admin:
        wanted = Wanted(ids, fewer_replicas, throttle, lot)
        await carry_out(admin, wanted, execute=execute, as_json=as_json)


def _wanted(
    file: str | None, topic: str | None, partition: int | None, replicas: str | None, *, cancel: bool, lists: bool
) -> "dict[TopicPartition, list[int]]":
    """What the command line names. Without replicas where they are not needed. Raises UsageError."""
    from odradek.client.topic_partition import TopicPartition

    named = (topic, partition, replicas)
    if lists:
        if file is not None or cancel or named != (None, None, None):
            raise click.UsageError("--list shows all that is under way: leave the rest out")
        return {}
    if file is not None:
        if named != (None, None, None):
            raise click.UsageError("FILE stands in place of --topic, --partition and --replicas")
        return read_targets(file)
    if topic is None or partition is None:
        raise click.UsageError("give FILE, or --topic and --partition")
    if cancel:
        if replicas is not None:
            raise click.UsageError("--cancel leaves the replicas as they were: leave --replicas out")
        return {TopicPartition(topic, partition): []}
    if replicas is None:
        raise click.UsageError("give --replicas, or --cancel")
    return {TopicPartition(topic, partition): parse_replicas(replicas)}


# ---------------------------------------------------------------------------------------------------------- elections
@partitions.command("elect", epilog=EXIT_CODES_HELP)
@click.option("--preferred", is_flag=True, help="The first replica, if it is in sync. The default.")
@click.option("--unclean", is_flag=True, help="Any replica that is there, where none in sync is. Records may be lost.")
@click.option("--topic", metavar="TOPIC", help="Of this topic alone. Default: of all.")
@click.option("--partition", type=click.IntRange(0, ID_MAX), help="Of this partition of the topic alone.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask before an unclean election.")
@json_option
@on_target
async def elect(
    target: Target,
    preferred: bool,
    unclean: bool,
    topic: str | None,
    partition: int | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Give partitions their preferred leader.

    Or, with --unclean, those without a leader any replica that is there: what only the others have is lost then, and
    that is asked for first.
    """
    from odradek.client.admin.replication import ElectionType
    from odradek.client.commands.several import Failures

    if preferred and unclean:
        raise click.UsageError("--preferred and --unclean exclude each other: give one of them")
    if partition is not None and topic is None:
        raise click.UsageError("--partition is one of a topic: give --topic, too")
    failures = Failures()
    async with target.admin() as admin:
        described = await _described(admin, topic, partition, failures)
        wanted = list(described)
        election = ElectionType.UNCLEAN if unclean else ElectionType.PREFERRED
        if unclean:
            wanted = [each for each, state in described.items() if state.leader < 0]
            if wanted:
                _ask({each: described[each] for each in wanted}, yes=yes)
        elected: Mapping[TopicPartition, bool] = {}
        if wanted:
            elected = await failures.or_results(admin.elect_leaders(wanted, election))
    results = {each: elected[each] for each in described if each in elected}
    results |= dict.fromkeys((each for each in described if unclean and described[each].leader >= 0), False)
    if as_json:
        print_json(
            [{"topic": each.topic, "partition": each.partition, "elected": done} for each, done in results.items()]
        )
    else:
        rows = [(each.topic, each.partition, "elected" if done else "not needed") for each, done in results.items()]
        print_table(("TOPIC", "PARTITION", "RESULT"), rows)
    failures.tell()


async def _described(
    admin: "Admin", topic: str | None, partition: int | None, failures: "Failures"
) -> "Mapping[TopicPartition, PartitionDescription]":
    """The partitions that are meant, as they are."""
    from odradek.client.errors.client_errors import InvalidPartition
    from odradek.client.topic_partition import TopicPartition

    names = [topic] if topic is not None else [each.name for each in await admin.list_topics(include_internal=True)]
    topics = await failures.or_results(admin.describe_topics(names, eligible_leaders=True))
    found = {TopicPartition(each.name, state.partition): state for each in topics.values() for state in each.partitions}
    if topic is None or partition is None or topic not in topics:
        return found
    one = TopicPartition(topic, partition)
    if one not in found:
        raise InvalidPartition(topic, partition, len(found), "the election")
    return {one: found[one]}


def _ask(states: "Mapping[TopicPartition, PartitionDescription]", *, yes: bool) -> None:
    """Tells what may be lost, and asks whether that is meant. Raises CommandFailed if not."""
    for each, state in states.items():
        click.echo(f"{each} has no leader. {_what_is_lost(state)}", err=True)
    if yes:
        return
    if not sys.stdin.isatty():
        raise CommandFailed("Nothing was elected: nobody can be asked here; give --yes.")
    if not click.confirm(f"Elect leaders of {len(states)} partition(s), whatever is lost?", err=True):
        raise CommandFailed("Nothing was elected.")


def _what_is_lost(state: "PartitionDescription") -> str:
    best = state.isr or state.eligible_leaders or state.last_known_leaders or ()
    others = broker_ids(each for each in state.replicas if each not in best) or "nobody else"
    if best:
        return (
            f"What was acknowledged is on {broker_ids(best)}: if another replica leads ({others}), what it lacks is "
            "lost, even when they come back."
        )
    return f"Which of {broker_ids(state.replicas)} has most is not known: what the new leader lacks is lost."
