"""Ends transactions (`odradek transactions abort`): looks, shows, and with `--execute` writes.

Of a transaction that is named by its start it is made sure first that it hangs: one that a coordinator has under way
would be torn by a marker in one of its partitions, so it is ended by its transactional id, in all of them.
"""

from typing import Final, NamedTuple

import click

from odradek.client.admin.admin import Admin
from odradek.client.admin.transactions import TransactionDescription
from odradek.client.commands.failures import CommandFailed
from odradek.client.commands.hanging import OpenTransaction, coordinated, is_hanging, open_transactions
from odradek.client.commands.output import print_json, print_table
from odradek.client.commands.partition_names import partition_names, partitions_json
from odradek.client.commands.several import Failures
from odradek.client.topic_partition import TopicPartition

__all__ = ["Marker", "abort_by_id", "abort_in", "marker_of"]

ONGOING: Final = "Ongoing"
ANY_COORDINATOR_EPOCH: Final = 0
"""Of a producer that has no marker there yet, as Kafka's command has it: no coordinator has an earlier one."""


class Marker(NamedTuple):
    """What is to be written into a partition."""

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int


async def marker_of(admin: Admin, partition: TopicPartition, start_offset: int) -> Marker:
    """That of the transaction which begins at this offset. Raises CommandFailed unless it hangs, ClientError."""
    failures = Failures()
    its = await open_transactions(admin, [partition], failures)
    failures.tell()
    found = next((each for each in its if each.start_offset == start_offset), None)
    if found is None:
        others = ", ".join(str(each.start_offset) for each in its)
        raise CommandFailed(
            f"No open transaction of {partition} begins at offset {start_offset}: "
            f"{f'those that are open begin at {others}' if others else 'none is open there'}."
        )
    coordinators = await coordinated(admin, [found.producer.producer_id])
    if not is_hanging(found, coordinators):
        raise CommandFailed(_why_not(found, coordinators[found.producer.producer_id]))
    producer = found.producer
    epoch = ANY_COORDINATOR_EPOCH if producer.coordinator_epoch is None else producer.coordinator_epoch
    return Marker(partition, producer.producer_id, producer.producer_epoch, epoch)


def _why_not(each: OpenTransaction, description: TransactionDescription) -> str:
    name = description.transactional_id
    said = f"The transaction in {each.partition} does not hang: it is that of {name}, {description.state}"
    if description.state == ONGOING:
        return f"{said}, and would be torn. `odradek transactions abort --transactional-id {name}` ends all of it."
    return f"{said}, and its coordinator, broker {description.coordinator_id}, still has to write the marker there."


async def abort_in(admin: Admin, marker: Marker, *, execute: bool, as_json: bool) -> None:
    """Ends a transaction in one partition. Raises ClientError."""
    if execute:
        await admin.abort_transaction(*marker)
    if as_json:
        print_json(
            {
                "topic": marker.partition.topic,
                "partition": marker.partition.partition,
                "producer_id": marker.producer_id,
                "producer_epoch": marker.producer_epoch,
                "coordinator_epoch": marker.coordinator_epoch,
                "executed": execute,
            }
        )
    else:
        (topic, partition), *numbers = marker
        print_table(("TOPIC", "PARTITION", "PRODUCER", "EPOCH", "COORDINATOR EPOCH"), [(topic, partition, *numbers)])
    _tell(execute=execute)


async def abort_by_id(admin: Admin, transactional_id: str, *, execute: bool, as_json: bool) -> None:
    """Has the coordinator abort what is under way for an id, and fences its producer.

    Raises CommandFailed where nothing is under way, ClientError.
    """
    found = await admin.describe_transaction(transactional_id)
    if found.state != ONGOING:
        raise CommandFailed(
            f"Nothing was aborted: the transaction of {transactional_id} is {found.state}, not {ONGOING}."
        )
    if execute:
        await admin.fence_producers([transactional_id])
    if as_json:
        print_json(
            {
                "transactional_id": transactional_id,
                "producer_id": found.producer_id,
                "producer_epoch": found.producer_epoch,
                "partitions": partitions_json(found.partitions),
                "executed": execute,
            }
        )
    else:
        row = (transactional_id, found.producer_id, found.producer_epoch, partition_names(found.partitions) or None)
        print_table(("TRANSACTIONAL ID", "PRODUCER", "EPOCH", "PARTITIONS"), [row])
    _tell(execute=execute)


def _tell(*, execute: bool) -> None:
    if not execute:
        click.echo("Nothing was changed: this is what --execute would do.", err=True)
