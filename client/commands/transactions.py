"""`odradek transactions`: list, describe, abort."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from odradek.client.commands.failures import EXIT_CODES_HELP
from odradek.client.commands.options import Target, json_option, on_target
from odradek.client.commands.output import print_json, print_table
from odradek.client.commands.partition_names import OnePartition, Partitions, named_partitions
from odradek.client.commands.replicas import ID_MAX

if TYPE_CHECKING:
    from odradek.client.admin.admin import Admin
    from odradek.client.admin.transactions import TransactionListing
    from odradek.client.commands.several import Failures
    from odradek.client.topic_partition import TopicPartition

INT64_MAX: Final = 2**63 - 1
INT16_MAX: Final = 2**15 - 1
MINUTE_MS: Final = 60_000
MINUTES_DEFAULT: Final = 15
"""That of transaction.max.timeout.ms of brokers."""

Named = tuple[tuple[str, tuple[int, ...]], ...]


@click.group(epilog=EXIT_CODES_HELP)
def transactions() -> None:
    """List, describe and abort transactions."""


@transactions.command("list", epilog=EXIT_CODES_HELP)
@click.option("--state", "states", multiple=True, metavar="STATE", help="Only such: Ongoing, Empty, …; repeatable.")
@click.option(
    "--producer-id", "producer_ids", multiple=True, type=click.IntRange(0, INT64_MAX), metavar="P",
    help="Only those of this producer; repeatable.",
)  # fmt: skip
@click.option(
    "--duration-filter", "duration_ms", type=click.IntRange(0, INT64_MAX), metavar="MS",
    help="Only those that have been under way for longer.",
)  # fmt: skip
@click.option("--pattern", metavar="RE2", help="Only ids that match this regular expression as a whole.")
@click.option("--hanging", is_flag=True, help="Those that are open in a partition, and that no coordinator will end.")
@click.option(
    "--broker", type=click.IntRange(0, ID_MAX), metavar="ID", help="Hanging ones in partitions of this broker."
)
@click.option(
    "--topic", "topics", multiple=True, type=Partitions(),
    help="Hanging ones of a topic, or of some partitions of it; repeatable.",
)  # fmt: skip
@click.option(
    "--max-timeout-minutes", "minutes", type=click.IntRange(0, 10**9), metavar="M",
    help=f"Hanging ones that are open for longer. Default: {MINUTES_DEFAULT}.",
)  # fmt: skip
@json_option
@on_target
async def list_transactions(
    target: Target,
    states: tuple[str, ...],
    producer_ids: tuple[int, ...],
    duration_ms: int | None,
    pattern: str | None,
    hanging: bool,
    broker: int | None,
    topics: Named,
    minutes: int | None,
    as_json: bool,
) -> None:
    """List all transactional ids, or the transactions that hang.

    A broker that does not answer, or has not loaded its ids, is told of, with the ids of the others.
    """
    if hanging:
        if states or producer_ids or duration_ms is not None or pattern is not None:
            raise click.UsageError(
                "--hanging is about partitions: leave --state, --producer-id, --duration-filter and --pattern out"
            )
        if broker is not None and topics:
            raise click.UsageError("give one of --broker and --topic")
        longer_than_ms = (MINUTES_DEFAULT if minutes is None else minutes) * MINUTE_MS
        await _list_hanging(target, broker, topics, longer_than_ms, as_json=as_json)
    elif broker is not None or topics or minutes is not None:
        raise click.UsageError(
            "--broker, --topic and --max-timeout-minutes are about hanging transactions: give --hanging"
        )
    else:
        await _list(target, states, producer_ids, duration_ms, pattern, as_json=as_json)


async def _list(
    target: Target,
    states: Sequence[str],
    producer_ids: Sequence[int],
    duration_ms: int | None,
    pattern: str | None,
    *,
    as_json: bool,
) -> None:
    from odradek.client.admin.errors import ItemsFailed
    from odradek.client.commands.transaction_output import LISTED_COLUMNS, listed_json, listed_row

    failed: ItemsFailed | None = None
    found: list[TransactionListing]
    async with target.admin() as admin:
        try:
            found = await admin.list_transactions(states, producer_ids, duration_ms=duration_ms, pattern=pattern)
        except ItemsFailed as error:
            failed = error
            by_id = {each.transactional_id: each for some in error.results.values() for each in some}
            found = [by_id[transactional_id] for transactional_id in sorted(by_id)]
    if as_json:
        print_json([listed_json(each) for each in found])
    elif found or failed is None:
        print_table(LISTED_COLUMNS, [listed_row(each) for each in found])
    if failed is not None:
        raise failed


async def _list_hanging(
    target: Target, broker: int | None, topics: Named, longer_than_ms: int, *, as_json: bool
) -> None:
    from odradek.client.commands.hanging import hanging_transactions
    from odradek.client.commands.several import Failures
    from odradek.client.commands.transaction_output import HANGING_COLUMNS, hanging_json, hanging_row

    failures = Failures()
    async with target.admin() as admin:
        now_ms = admin.config.environment().now_ms()
        places = await named_partitions(admin, topics) if topics else await _all_partitions(admin, broker, failures)
        found = await hanging_transactions(admin, places, longer_than_ms, now_ms, failures)
    if as_json:
        print_json([hanging_json(each) for each in found])
    elif found or not failures:
        print_table(HANGING_COLUMNS, [hanging_row(each, now_ms) for each in found])
    failures.tell()


async def _all_partitions(admin: "Admin", broker: int | None, failures: "Failures") -> "list[TopicPartition]":
    """Those of which a broker has a replica, or all. Raises UnknownBroker for one that there is not."""
    from odradek.client.admin.calls import UnknownBroker
    from odradek.client.topic_partition import TopicPartition

    if broker is not None:
        cluster = await admin.describe_cluster(include_fenced=True)
        if all(each.node_id != broker for each in cluster.brokers):
            raise UnknownBroker(broker)
    names = [each.name for each in await admin.list_topics(include_internal=True)]
    described = await failures.or_results(admin.describe_topics(names))
    return [
        TopicPartition(topic.name, each.partition)
        for topic in described.values()
        for each in topic.partitions
        if broker is None or broker in each.replicas
    ]


@transactions.command("describe", epilog=EXIT_CODES_HELP)
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@json_option
@on_target
async def describe(target: Target, ids: tuple[str, ...], as_json: bool) -> None:
    """Show where the transactions of some ids stand.

    With their producers, time-outs, since when they are under way, and the partitions that they include.
    """
    from odradek.client.commands.several import Failures
    from odradek.client.commands.transaction_output import DESCRIBED_COLUMNS, described_json, described_row

    failures = Failures()
    async with target.admin() as admin:
        now_ms = admin.config.environment().now_ms()
        found = await failures.or_results(admin.describe_transactions(ids))
    if as_json:
        print_json([described_json(each) for each in found.values()])
    elif found or not failures:
        print_table(DESCRIBED_COLUMNS, [described_row(each, now_ms) for each in found.values()])
    failures.tell()


@transactions.command("abort", epilog=EXIT_CODES_HELP)
@click.argument("partition", metavar="[TOPIC-PARTITION]", required=False, type=OnePartition())
@click.option(
    "--start-offset", type=click.IntRange(0, INT64_MAX), metavar="N",
    help="The hanging transaction that begins at this offset of the partition.",
)  # fmt: skip
@click.option(
    "--producer-id", type=click.IntRange(0, INT64_MAX), metavar="P",
    help="The transaction of this producer in the partition, whether it hangs or not.",
)  # fmt: skip
@click.option("--producer-epoch", type=click.IntRange(0, INT16_MAX), metavar="E", help="The producer's epoch.")
@click.option(
    "--coordinator-epoch", type=click.IntRange(-1, ID_MAX), metavar="C",
    help="The epoch of the last marker, -1 without one.",
)  # fmt: skip
@click.option(
    "--transactional-id", metavar="ID",
    help="What is under way for this id, in all partitions; its producer is fenced.",
)  # fmt: skip
@click.option("--execute", is_flag=True, help="Do it. Without, only what would be done is shown.")
@json_option
@on_target
async def abort(
    target: Target,
    partition: tuple[str, int] | None,
    start_offset: int | None,
    producer_id: int | None,
    producer_epoch: int | None,
    coordinator_epoch: int | None,
    transactional_id: str | None,
    execute: bool,
    as_json: bool,
) -> None:
    """Abort a transaction that holds readers up.

    Shows what would be done; --execute does it. One that hangs is named by its partition and where it begins there, one
    that a coordinator has under way by its transactional id.
    """
    from odradek.client.commands.transaction_abort import Marker, abort_by_id, abort_in, marker_of
    from odradek.client.topic_partition import TopicPartition

    numbers = (producer_id, producer_epoch, coordinator_epoch)
    is_by_numbers = any(each is not None for each in numbers)
    if (start_offset is not None) + is_by_numbers + (transactional_id is not None) != 1:
        raise click.UsageError(
            "give one of --start-offset, --transactional-id, and --producer-id with --producer-epoch and "
            "--coordinator-epoch"
        )
    if (partition is None) != (transactional_id is not None):
        raise click.UsageError("give TOPIC-PARTITION, as in orders-0, but not with --transactional-id")
    if is_by_numbers and (producer_id is None or producer_epoch is None or coordinator_epoch is None):
        raise click.UsageError("--producer-id, --producer-epoch and --coordinator-epoch belong together")
    async with target.admin() as admin:
        if transactional_id is not None:
            await abort_by_id(admin, transactional_id, execute=execute, as_json=as_json)
            return
        assert partition is not None
        place = TopicPartition(*partition)
        if start_offset is not None:
            marker = await marker_of(admin, place, start_offset)
        else:
            assert producer_id is not None
            assert producer_epoch is not None
            assert coordinator_epoch is not None
            marker = Marker(place, producer_id, producer_epoch, max(0, coordinator_epoch))
        await abort_in(admin, marker, execute=execute, as_json=as_json)
