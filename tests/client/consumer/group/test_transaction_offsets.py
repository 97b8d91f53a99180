"""Which offsets go into a transaction, and where that would commit what another member reads."""

from typing import cast

import pytest

from odradek.client.consumer.core import ConsumerCore
from odradek.client.consumer.errors import TakenAway
from odradek.client.consumer.group.offsets import OffsetAndMetadata, offsets_behind
from odradek.client.consumer.group.transaction_offsets import offsets_to_commit
from odradek.client.consumer.membership.membership import Identity
from odradek.client.consumer.records import ConsumerBatch, ConsumerRecord, PartitionRecords
from odradek.client.errors.client_errors import ClientError
from odradek.client.topic_partition import TopicPartition

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Core:
    """Two partitions, of which one is assigned, and was read up to 7."""

    def __init__(self, taken_away: set[TopicPartition] | None = None) -> None:
        self.taken_away = taken_away or set()

    def token(self, partition: TopicPartition) -> object | None:
        return object() if partition == P0 else None

    def handed_out(self) -> dict[TopicPartition, OffsetAndMetadata]:
        return {P0: OffsetAndMetadata(7, "", 3)}


def asked(
    wanted: dict[TopicPartition, OffsetAndMetadata] | None = None,
    *,
    core: Core | None = None,
    generation: int = 4,
    committed: int = -1,
    begun: int = -1,
) -> dict[TopicPartition, int]:
    found = offsets_to_commit(
        cast("ConsumerCore", core or Core()),
        Identity("billing", "member-1", generation, None),
        {P0: committed},
        wanted,
        lambda partition, offset: offset < begun,
        is_member=True,
    )
    return {partition: each.offset for partition, each in found.offsets.items()}


def test_all_that_was_handed_out_goes_but_what_is_committed() -> None:
    assert asked() == {P0: 7}
    assert asked(committed=7) == {}


def test_where_reading_has_gone_back_all_that_was_handed_out_goes_nevertheless() -> None:
    """A log that was truncated below what the group had committed: else it could never go on."""
    assert asked(begun=9) == {P0: 7}


def test_what_is_wanted_goes_in_the_place_of_it() -> None:
    assert asked(offsets_behind(ConsumerRecord("t", 0, 4, -1, None, None))) == {P0: 5}


@pytest.mark.parametrize("partition", [P0, P1])
def test_records_of_a_partition_that_others_may_read_are_refused(partition: TopicPartition) -> None:
    """Because it is not assigned any more, or because it was given back when the group had come further."""
    with pytest.raises(TakenAway, match=f"{partition} was taken away"):
        asked({partition: OffsetAndMetadata(5)}, begun=6)


def test_whatever_is_wanted_a_partition_taken_away_is_told() -> None:
    with pytest.raises(TakenAway, match="t-1 was taken away"):
        asked({P0: OffsetAndMetadata(5)}, core=Core({P1}))


def test_a_member_without_a_place_gives_nothing() -> None:
    with pytest.raises(ClientError, match="no place in the group billing"):
        asked(generation=-1)
    assert asked({}, generation=-1) == {}


def test_a_batch_ends_where_the_last_part_of_each_partition_does() -> None:
    def part(partition: TopicPartition, offset: int, epoch: int) -> PartitionRecords:
        return PartitionRecords(partition, [offset], [0], [None], [None], None, offset + 2, epoch)

    batch = ConsumerBatch([part(P0, 3, 1), part(P1, 8, 1), part(P0, 5, 2)])
    assert offsets_behind(batch) == {P0: OffsetAndMetadata(7, "", 2), P1: OffsetAndMetadata(10, "", 1)}


def test_nothing_but_records_and_batches_has_an_end() -> None:
    with pytest.raises(TypeError, match="a record or a batch of the consumer"):
        offsets_behind({P0: 5})
