"""`odradek producers`: who writes to the partitions of a topic, and which transactions are open there."""

import click

from odradek.client.commands.failures import EXIT_CODES_HELP
from odradek.client.commands.options import Target, json_option, on_target
from odradek.client.commands.output import print_json, print_table
from odradek.client.commands.partition_names import Partitions, named_partitions


@click.command(epilog=EXIT_CODES_HELP)
@click.argument("topics", metavar="TOPIC[:N,N…]...", nargs=-1, required=True, type=Partitions())
@click.option("--open", "only_open", is_flag=True, help="Only those with an open transaction.")
@json_option
@on_target
async def producers(
    target: Target, topics: tuple[tuple[str, tuple[int, ...]], ...], only_open: bool, as_json: bool
) -> None:
    """Show the producers of topics, and their open transactions.

    A partition knows those that are idempotent or transactional, until they have been silent for a day.
    """
    from odradek.client.commands.several import Failures
    from odradek.client.commands.transaction_output import PRODUCER_COLUMNS, producer_json, producer_row

    failures = Failures()
    async with target.admin() as admin:
        wanted = await named_partitions(admin, topics)
        found = await failures.or_results(admin.describe_producers(wanted))
    every = [
        (partition, each)
        for partition in sorted(found)
        for each in sorted(found[partition], key=lambda producer: producer.producer_id)
        if not only_open or each.transaction_start_offset is not None
    ]
    if as_json:
        print_json([producer_json(partition, each) for partition, each in every])
    elif found or not failures:
        print_table(PRODUCER_COLUMNS, [producer_row(partition, each) for partition, each in every])
    failures.tell()
