"""Finds transactions that hang: they are open in a partition, where they hold up who reads what is committed, and no
coordinator has them under way there, so nobody will ever end them.

One is taken for hanging that is open longer than any transaction may be, and whose coordinator there is not, or does
not count the partition among those that still get a marker. (Source: KIP-664, TransactionsCommand.java.) A transaction
that ends between the two looks seems to hang, too, so the partitions are looked at again.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from odradek.client.admin.admin import Admin
from odradek.client.admin.errors import ItemsFailed
from odradek.client.admin.producer_states import ProducerState
from odradek.client.admin.transaction_errors import NOT_FOUND
from odradek.client.admin.transactions import TransactionDescription
from odradek.client.commands.several import Failures
from odradek.client.topic_partition import TopicPartition

__all__ = ["OpenTransaction", "coordinated", "hanging_transactions", "is_hanging", "open_transactions"]

TOGETHER_MAX: Final = 500
"""So many partitions are asked about at once: a partition may have thousands of producers."""


class OpenTransaction(NamedTuple):
    """A producer with an open transaction in a partition, and the offset where that begins."""

    partition: TopicPartition
    producer: ProducerState
    start_offset: int

    def age_ms(self, now_ms: float) -> int:
        """How long ago its last batch was written, by the timestamp of that."""
        return int(now_ms) - self.producer.last_timestamp_ms


async def open_transactions(
    admin: Admin, partitions: Sequence[TopicPartition], failures: Failures
) -> list[OpenTransaction]:
    """In the order of the partitions and offsets. `failures`: the partitions that could not be looked at."""
    found: list[OpenTransaction] = []
    for begin in range(0, len(partitions), TOGETHER_MAX):
        some = partitions[begin : begin + TOGETHER_MAX]
        for partition, producers in (await failures.or_results(admin.describe_producers(some))).items():
            found += [
                OpenTransaction(partition, each, each.transaction_start_offset)
                for each in producers
                if each.transaction_start_offset is not None
            ]
    return sorted(found, key=lambda each: (each.partition, each.start_offset))


async def coordinated(admin: Admin, producer_ids: Iterable[int]) -> dict[int, TransactionDescription]:
    """What their coordinators have of these producers, by producer id. Raises ClientError."""
    listed = await admin.list_transactions(producer_ids=set(producer_ids))
    try:
        described: Mapping[str, TransactionDescription] = await admin.describe_transactions(
            [each.transactional_id for each in listed]
        )
    except ItemsFailed as failed:
        if any(error.code is not NOT_FOUND for error in failed.errors.values()):
            raise
        described = failed.results
    return {each.producer_id: described[each.transactional_id] for each in listed if each.transactional_id in described}


def is_hanging(each: OpenTransaction, coordinators: Mapping[int, TransactionDescription]) -> bool:
    """Whether no coordinator will write a marker there. `coordinators`: what they have, by producer id."""
    description = coordinators.get(each.producer.producer_id)
    return description is None or each.partition not in description.partitions


async def hanging_transactions(
    admin: Admin, partitions: Sequence[TopicPartition], longer_than_ms: int, now_ms: float, failures: Failures
) -> list[OpenTransaction]:
    """Those of the partitions, in order. Raises ClientError when a coordinator does not tell what it has."""
    old = [
        each for each in await open_transactions(admin, partitions, failures) if each.age_ms(now_ms) > longer_than_ms
    ]
    if not old:
        return []
    coordinators = await coordinated(admin, {each.producer.producer_id for each in old})
    suspects = [each for each in old if is_hanging(each, coordinators)]
    places = sorted({each.partition for each in suspects})
    still_open = {_key(each) for each in await open_transactions(admin, places, failures)}
    return [each for each in suspects if _key(each) in still_open]


def _key(each: OpenTransaction) -> tuple[TopicPartition, int, int]:
    return each.partition, each.producer.producer_id, each.start_offset
