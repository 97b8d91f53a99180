"""`odradek consume`: prints the records of a topic, read by partition, or as a member of a group."""

import os
import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from odradek.client.commands.failures import EXIT_CODES_HELP, NO_ANSWER, USAGE, CommandFailed
from odradek.client.commands.moment import parse_moment
from odradek.client.commands.options import Assignment, Target, on_target

if TYPE_CHECKING:
    from odradek.client.admin.admin import Admin
    from odradek.client.errors.client_errors import ClientError
    from odradek.client.fetching.fetcher import Fetcher
    from odradek.client.topic_partition import TopicPartition
    from odradek.protocol.batches.records import Record

BY_NAME: Final = {"earliest": -2, "latest": -1}
"""The special timestamps of ListOffsets."""
OFFSET: Final = re.compile(r"-?\d{1,18}")


class Beginning(NamedTuple):
    """Where to begin: at an offset, so many records before the end (a negative offset), or by a timestamp."""

    offset: int | None = None
    timestamp: int | None = None


NAMES: Final = {Beginning(timestamp=timestamp): name for name, timestamp in BY_NAME.items()}


class From(click.ParamType[Beginning]):
    """The value of --from."""

    name = "WHERE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Beginning:
        if isinstance(value, Beginning):
            return value
        text = str(value)
        if text in BY_NAME:
            return Beginning(timestamp=BY_NAME[text])
        if OFFSET.fullmatch(text):
            return Beginning(offset=int(text))
        timestamp = parse_moment(text)
        if timestamp is None:
            self.fail(f"{text!r} is none of: earliest, latest, 42, -10, 2026-08-01T12:00, @1700000000000", param, ctx)
        return Beginning(timestamp=timestamp)


@click.command(epilog=EXIT_CODES_HELP)
@click.argument("topic")
@click.option(
    "--from",
    "beginning",
    type=From(),
    default="earliest",
    show_default=True,
    help="earliest, latest, an offset, -N for the last N of each partition, or a time: 2026-08-01T12:00 (local, unless "
    "it says otherwise), @MILLISECONDS.",
)
@click.option("--max", "count_max", type=click.IntRange(1), metavar="N", help="End after so many records.")
@click.option("--partition", "-p", "numbers", type=click.IntRange(0), multiple=True, help="Only this one; repeatable.")
@click.option("--follow", "-f", is_flag=True, help="Wait for new records, until Ctrl-C.")
@click.option(
    "--group",
    "group_id",
    metavar="GROUP",
    help="Read as a member of this group, from its offsets on (else --from earliest or latest), and commit.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a record, with all there is.")
@click.option("--key-separator", metavar="TEXT", help="Print the key, and this, before the value.")
@click.option(
    "--set", "settings", multiple=True, type=Assignment(), help="A setting, such as isolation.level=read_committed."
)
@on_target
async def consume(
    target: Target,
    topic: str,
    beginning: Beginning,
    count_max: int | None,
    numbers: tuple[int, ...],
    follow: bool,
    group_id: str | None,
    as_json: bool,
    key_separator: str | None,
    settings: tuple[tuple[str, str], ...],
) -> None:
    """Print the records of a topic.

    It ends behind those that are there now, unless it is to --follow. Records of a partition come in their order,
    partitions as their brokers answer. Without --group no group is joined, and no offset is stored.
    """
    import asyncio

    from odradek.client.commands.record_text import json_of, line_of
    from odradek.client.commands.streams import Writer
    from odradek.client.fetching.config import FetchConfig
    from odradek.client.fetching.fetch_settings import Start
    from odradek.client.fetching.fetcher import Fetcher, settings_of
    from odradek.protocol.batches.records import Record
    from odradek.runtime.environment import Environment

    separator = None if key_separator is None else os.fsencode(key_separator)  # any bytes, as they were written

    def text(partition: int, record: "Record") -> bytes:
        return json_of(topic, partition, record) if as_json else line_of(record, separator)

    given: dict[str, object] = dict(settings)
    if group_id is not None:
        from odradek.client.commands.group_reader import print_as_member

        if numbers:
            raise CommandFailed("With --group, the group gives out the partitions: leave out --partition.", USAGE)
        await print_as_member(
            target,
            topic,
            group_id,
            NAMES.get(beginning),
            given,
            Writer(sys.stdout.fileno(), asyncio.get_running_loop()).write,
            lambda record: text(record.partition, Record(*record[2:])),
            count_max,
            follow=follow,
        )
        return
    # Refuses what is no setting of fetching. Those of connections go to the admin client, over whose it reads.
    fetch_config = target.config(FetchConfig, given)
    async with target.admin(given) as admin:
        timeout_ms = admin.config.default_api_timeout_ms
        fetch_settings = settings_of(fetch_config, auto_offset_reset="earliest", retry_timeout_ms=timeout_ms)
        ranges = await ranges_of(admin, topic, numbers, beginning, read_committed=fetch_settings.read_committed)
        writer = Writer(sys.stdout.fileno(), asyncio.get_running_loop())
        async with Fetcher(admin.cluster, Environment(), fetch_settings) as fetcher:
            for partition, (start, end) in ranges.items():
                fetcher.assign(partition, Start.at_offset(start), None if follow else end)
            await print_all(fetcher, writer.write, text, count_max, timeout_ms, follow=follow)


async def ranges_of(
    admin: "Admin",
    topic: str,
    numbers: tuple[int, ...],
    beginning: Beginning,
    *,
    read_committed: bool,
) -> "dict[TopicPartition, tuple[int, int]]":
    """The first offset to read of each partition, and its present end. Raises CommandFailed, ClientError."""
    from odradek.client.fetching.list_offsets import EARLIEST, LATEST
    from odradek.client.topic_partition import TopicPartition

    known = [each.partition for each in (await admin.describe_topic(topic)).partitions]
    if missing := sorted(set(numbers) - set(known)):
        raise CommandFailed(f"{topic} has no partition {missing[0]}; it has {len(known)}, from 0 on.")
    partitions = [TopicPartition(topic, number) for number in known if not numbers or number in numbers]
    firsts = await admin.list_offsets(dict.fromkeys(partitions, EARLIEST))
    ends = await admin.list_offsets(dict.fromkeys(partitions, LATEST), read_committed=read_committed)
    found = firsts
    if beginning.timestamp is not None:
        found = await admin.list_offsets(dict.fromkeys(partitions, beginning.timestamp), read_committed=read_committed)
    ranges: dict[TopicPartition, tuple[int, int]] = {}
    for partition in partitions:
        first, end = firsts[partition].offset, ends[partition].offset
        ranges[partition] = (start_of(partition, beginning, first, end, found[partition].offset), end)
    return ranges


def start_of(partition: "TopicPartition", beginning: Beginning, first: int, end: int, found: int) -> int:
    """Where to begin in a partition with these ends; `found` is the offset by timestamp, -1 where none is so young."""
    if beginning.offset is None:
        return end if found < 0 else min(found, end)
    if beginning.offset < 0:
        return max(first, end + beginning.offset)
    start = min(max(beginning.offset, first), end)
    if start != beginning.offset:
        there = f"has the offsets {first} to {end - 1}" if first < end else "holds no records"
        click.echo(f"{partition} {there}: reading begins at {start}", err=True)
    return start


async def print_all(
    fetcher: "Fetcher",
    write: Callable[[bytes], Awaitable[None]],
    text: "Callable[[int, Record], bytes]",
    count_max: int | None,
    timeout_ms: int,
    *,
    follow: bool,
) -> None:
    """Writes records until all partitions are read to their ends, or `count_max`. Raises CommandFailed, ClientError."""
    left = sys.maxsize if count_max is None else count_max
    while left:
        batch = await fetcher.next(timeout_ms)
        if batch is not None:
            records = batch.records[:left]
            left -= len(records)
            await write(b"".join([text(batch.partition, record) for record in records]))
        elif fetcher.is_finished:
            return
        elif not follow:
            raise nothing_came(fetcher.failing(), timeout_ms)


def nothing_came(failing: "Sequence[ClientError]", timeout_ms: int) -> CommandFailed:
    """`failing`: why partitions gave nothing."""
    from odradek.client.commands.running import exit_code_of

    sentence = f"No records came for {timeout_ms / 1000:g} s, and there should be more."
    if not failing:
        return CommandFailed(f"{sentence} Is a broker overloaded?", NO_ANSWER)
    others = f" So it is with {len(failing) - 1} other partition(s)." if len(failing) > 1 else ""
    return CommandFailed(f"{sentence} {failing[0]}{others}", exit_code_of(failing[0]))
