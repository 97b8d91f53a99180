"""`odradek topics`: list, create, describe, alter, delete."""

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from odradek.client.commands.failures import EXIT_CODES_HELP, CommandFailed
from odradek.client.commands.options import Assignment, Target, json_option, on_target
from odradek.client.commands.output import print_json, print_line, print_table
from odradek.client.commands.replicas import ID_MAX, broker_ids

if TYPE_CHECKING:
    from odradek.client.admin.admin import Admin
    from odradek.client.admin.topics import TopicDescription
    from odradek.client.commands.several import Failures

Ends = dict[tuple[str, int], tuple[int | None, int | None]]
"""First and next offset by topic and partition; None where it is not known."""

NAMES = click.argument("names", metavar="TOPIC...", nargs=-1, required=True)


@click.group(epilog=EXIT_CODES_HELP)
def topics() -> None:
    """List, create, describe, alter and delete topics."""


@topics.command("list", epilog=EXIT_CODES_HELP)
@click.option("--internal", is_flag=True, help="Those that the brokers keep for themselves, too.")
@json_option
@on_target
async def list_topics(target: Target, internal: bool, as_json: bool) -> None:
    """List all topics."""
    async with target.admin() as admin:
        found = await admin.list_topics(include_internal=internal)
    if as_json:
        print_json([asdict(topic) for topic in found])
        return
    print_table(
        ("TOPIC", "PARTITIONS", "REPLICATION"),
        [(topic.name, topic.partitions, topic.replication_factor) for topic in found],
    )


@topics.command("create", epilog=EXIT_CODES_HELP)
@NAMES
@click.option("--partitions", type=click.IntRange(1, ID_MAX), help="How many. Default: what the broker is set to.")
@click.option("--replication-factor", type=click.IntRange(1, 32767), help="Default: what the broker is set to.")
@click.option(
    "--replica-assignment", metavar="ID:ID,ID:ID,…", help="The brokers of each partition, in place of both numbers."
)
@click.option("--set", "settings", multiple=True, type=Assignment(), help="An option of the topic.")
@click.option("--if-not-exists", is_flag=True, help="It is well if a topic exists already.")
@click.option("--validate-only", is_flag=True, help="Create nothing; say what would go wrong.")
@json_option
@on_target
async def create(
    target: Target,
    names: tuple[str, ...],
    partitions: int | None,
    replication_factor: int | None,
    replica_assignment: str | None,
    settings: tuple[tuple[str, str], ...],
    if_not_exists: bool,
    validate_only: bool,
    as_json: bool,
) -> None:
    """Create topics, and wait until their partitions have leaders."""
    from odradek.client.admin.errors import ItemsFailed
    from odradek.client.admin.topics import NewTopic
    from odradek.client.commands.warnings import MIN_INSYNC, beyond_replicas, note_one_core, warn
    from odradek.client.errors.client_errors import TopicExists

    assignments = None if replica_assignment is None else parse_assignment(replica_assignment)
    if assignments is not None and (partitions is not None or replication_factor is not None):
        raise click.UsageError("--replica-assignment stands in place of --partitions and --replication-factor")
    wanted = [
        NewTopic(name, partitions or -1, replication_factor or -1, dict(settings), assignments)
        for name in dict.fromkeys(names)
    ]
    failed: ItemsFailed | None = None
    async with target.admin() as admin:
        try:
            created = await admin.create_topics(wanted, validate_only=validate_only)
        except ItemsFailed as error:
            created = error.results
            failed = error.without(TopicExists) if if_not_exists else error
        if partitions is None and assignments is None and not validate_only:
            await note_one_core(admin, created.values())
    if as_json:
        print_json(
            [
                {
                    "name": topic.name,
                    "topic_id": topic.topic_id,
                    "partitions": topic.partitions,
                    "replication_factor": topic.replication_factor,
                    "configs": {entry.name: entry.value for entry in topic.configs},
                }
                for topic in created.values()
            ]
        )
    else:
        for name in (name for name in dict.fromkeys(names) if name not in created):
            if failed is None or name not in failed.errors:
                print_line(f"{name} exists already")
        for topic in created.values():
            done = "would be created" if validate_only else "created"
            known = f" with {topic.partitions} partition(s), {topic.replication_factor} replica(s) each"
            print_line(f"{topic.name} {done}{known if topic.partitions > 0 else ''}")
    for topic in created.values():
        if topic.replication_factor > 0:
            value = dict(settings).get(MIN_INSYNC)
            if (sentence := beyond_replicas(topic.name, value, topic.replication_factor)) is not None:
                warn(sentence)
    if failed is not None:
        raise failed


@topics.command("describe", epilog=EXIT_CODES_HELP)
@click.argument("names", metavar="[TOPIC]...", nargs=-1)
@click.option("--offsets", is_flag=True, help="With the first and the next offset of each partition.")
@json_option
@on_target
async def describe(target: Target, names: tuple[str, ...], offsets: bool, as_json: bool) -> None:
    """Show the partitions of topics.

    With leaders and their epochs, replicas, those of them in sync (ISR), out of sync (OSR) and eligible to lead without
    being in sync (ELR), and the options that are set. Default: all topics.
    """
    from odradek.client.admin.configs import ConfigResource
    from odradek.client.commands.several import Failures
    from odradek.client.commands.warnings import warn
    from odradek.client.errors.client_errors import UnknownTopic

    failures = Failures(but=None if names else UnknownTopic)  # one that was deleted since all were listed
    async with target.admin() as admin:
        wanted = list(dict.fromkeys(names))
        if not names:
            wanted = [topic.name for topic in await admin.list_topics(include_internal=True)]
        found = await failures.or_results(admin.describe_topics(wanted, eligible_leaders=True))
        resources = [ConfigResource.topic(name) for name in found]
        configs = await failures.or_results(admin.describe_configs(resources))
        ends = await offsets_of(admin, found, failures) if offsets else None
    settings = {
        resource.name: {entry.name: entry.value for entry in entries.values() if entry.source.name == "TOPIC"}
        for resource, entries in configs.items()
    }
    if found or not failures:
        _print_described(found, settings, ends, as_json)
    for topic in found.values():
        for sentence in _warnings(topic, settings.get(topic.name)) if not as_json else ():
            warn(sentence)
    failures.tell()


def _warnings(topic: "TopicDescription", settings: dict[str, str | None] | None) -> list[str]:
    """What to know of the topic's own options."""
    from odradek.client.commands.warnings import MIN_INSYNC, beyond_replicas

    if not topic.partitions:
        return []
    replicas = min(len(each.replicas) for each in topic.partitions)
    sentence = beyond_replicas(topic.name, (settings or {}).get(MIN_INSYNC), replicas)
    return [] if sentence is None else [sentence]


def _print_described(
    found: "Mapping[str, TopicDescription]",
    settings: dict[str, dict[str, str | None]],
    ends: Ends | None,
    as_json: bool,
) -> None:
    if as_json:
        print_json([_described(topic, settings.get(topic.name), ends) for topic in found.values()])
        return
    columns = ["TOPIC", "PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "OSR", "ELR", "OFFLINE"]
    rows = [
        [
            topic.name,
            each.partition,
            each.leader if each.leader >= 0 else None,
            each.leader_epoch if each.leader_epoch >= 0 else None,
            broker_ids(each.replicas),
            broker_ids(each.isr),
            broker_ids(each.out_of_sync),
            broker_ids(each.eligible_leaders),
            broker_ids(each.offline_replicas),
            *(ends[topic.name, each.partition] if ends is not None else ()),
        ]
        for topic in found.values()
        for each in topic.partitions
    ]
    print_table(columns + (["START", "END"] if ends is not None else []), rows)
    if sys.stdout.isatty():
        for name in found:
            for option, value in settings.get(name, {}).items():
                print_line(f"{name}: {option}={value}")


async def offsets_of(admin: "Admin", found: "Mapping[str, TopicDescription]", failures: "Failures") -> Ends:
    """First and next offset by partition; None for one without a leader, and where that fails."""
    from odradek.client.fetching.list_offsets import EARLIEST, LATEST
    from odradek.client.topic_partition import TopicPartition

    partitions = [
        TopicPartition(topic.name, each.partition)
        for topic in found.values()
        for each in topic.partitions
        if each.leader >= 0
    ]
    starts = await failures.or_results(admin.list_offsets(dict.fromkeys(partitions, EARLIEST)))
    ends = await failures.or_results(admin.list_offsets(dict.fromkeys(partitions, LATEST)))
    offsets: Ends = {
        (topic.name, each.partition): (None, None) for topic in found.values() for each in topic.partitions
    }
    for partition in partitions:
        start, end = starts.get(partition), ends.get(partition)
        offsets[partition] = (None if start is None else start.offset, None if end is None else end.offset)
    return offsets


def _described(
    topic: "TopicDescription", settings: dict[str, str | None] | None, ends: Ends | None
) -> dict[str, object]:
    """What JSON has of a topic. `configs` is null where the principal may not see them."""
    partitions: list[dict[str, object]] = []
    for each in topic.partitions:
        described: dict[str, object] = {**asdict(each), "out_of_sync": each.out_of_sync}
        if ends is not None:
            described["start_offset"], described["end_offset"] = ends[topic.name, each.partition]
        partitions.append(described)
    return {
        "name": topic.name,
        "topic_id": topic.topic_id,
        "is_internal": topic.is_internal,
        "configs": settings,
        "warnings": _warnings(topic, settings),
        "partitions": partitions,
    }


@topics.command("alter", epilog=EXIT_CODES_HELP)
@NAMES
@click.option("--partitions", type=click.IntRange(1, ID_MAX), help="So many the topic shall have: more than it has.")
@click.option("--set", "settings", multiple=True, type=Assignment(), help="Give an option a value.")
@click.option("--unset", "unset", multiple=True, metavar="NAME", help="Let an option be what the broker's default is.")
@on_target
async def alter(
    target: Target,
    names: tuple[str, ...],
    partitions: int | None,
    settings: tuple[tuple[str, str], ...],
    unset: tuple[str, ...],
) -> None:
    """Change the options of topics, and then add partitions to them."""
    from odradek.client.admin.configs import ConfigChange, ConfigResource
    from odradek.client.commands.several import Failures
    from odradek.client.commands.warnings import warn_of_topics

    changes = [ConfigChange.set(name, value) for name, value in settings]
    changes += [ConfigChange.delete(name) for name in unset]
    if partitions is None and not changes:
        raise click.UsageError("nothing to alter: give --partitions, --set or --unset")
    changed = wanted = list(dict.fromkeys(names))
    failures = Failures()
    async with target.admin() as admin:
        if changes:
            resources = [ConfigResource.topic(name) for name in wanted]
            done = await failures.or_done(admin.alter_configs(dict.fromkeys(resources, changes)), resources)
            changed = [name for name in wanted if ConfigResource.topic(name) in done]
        altered = changed
        if partitions is not None and changed:
            altered = await failures.or_done(admin.create_partitions(dict.fromkeys(changed, partitions)), changed)
        for name in changed:
            if name in altered:
                print_line(f"{name} altered")
            elif changes:
                print_line(f"{name}: options changed")
        await failures.or_done(warn_of_topics(admin, changed, settings), changed)
    failures.tell()


@topics.command("delete", epilog=EXIT_CODES_HELP)
@NAMES
@click.option("--ids", "are_ids", is_flag=True, help="TOPIC are ids, as `describe --json` shows them.")
@click.option("--if-exists", is_flag=True, help="It is well if a topic does not exist.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask. (Without a terminal nothing is asked anyway.)")
@on_target
async def delete(target: Target, names: tuple[str, ...], are_ids: bool, if_exists: bool, yes: bool) -> None:
    """Delete topics with all their records."""
    from odradek.client.admin.errors import ItemsFailed
    from odradek.client.errors.client_errors import UnknownTopic

    wanted = list(dict.fromkeys(names))
    if are_ids:
        check_ids(wanted)
    if not yes and sys.stdin.isatty() and not click.confirm(f"Delete {', '.join(wanted)} with all records?", err=True):
        raise CommandFailed("Nothing was deleted.")
    failed: ItemsFailed | None = None
    async with target.admin() as admin:
        try:
            await admin.delete_topics(() if are_ids else wanted, topic_ids=wanted if are_ids else ())
        except ItemsFailed as error:
            failed = error.without(UnknownTopic) if if_exists else error
            wanted = list(error.results)
    for name in wanted:
        print_line(f"{name} deleted")
    if failed is not None:
        raise failed


def parse_assignment(text: str) -> dict[int, list[int]]:
    """`1:2,2:1`: the brokers of partition 0, of partition 1, as Kafka's own tool takes them. Raises UsageError."""
    written = [brokers.split(":") for brokers in text.split(",")]
    if not all(re.fullmatch("[0-9]{1,10}", each) and int(each) <= ID_MAX for brokers in written for each in brokers):
        raise click.UsageError(f"--replica-assignment {text}: write ids of brokers, from 0 to {ID_MAX}, as in 1:2,2:1")
    return {partition: [int(each) for each in brokers] for partition, brokers in enumerate(written)}


def check_ids(texts: Iterable[str]) -> None:
    """Raises UsageError for a text that is no topic id."""
    from odradek.client.admin.topics import topic_id_from_text
    from odradek.client.errors.base import ClientError

    for text in texts:
        try:
            topic_id_from_text(text)
        except ClientError as error:
            raise click.UsageError(str(error)) from None
