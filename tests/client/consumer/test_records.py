"""Records in columns and as objects are the same, also divided; objects are made when they are looked at."""

from odradek.client.consumer.records import ConsumerBatch, ConsumerRecord, PartitionRecords
from odradek.client.topic_partition import TopicPartition

P = TopicPartition("orders", 3)


def part(first: int, count: int, *, headers: bool = False) -> PartitionRecords:
    offsets = list(range(first, first + count))
    return PartitionRecords(
        P,
        offsets,
        [1_000 + offset for offset in offsets],
        [None] * count,
        [b"%d" % offset for offset in offsets],
        [(("h", b"1"),)] * count if headers else None,
        first + count,
        7,
    )


def test_objects_hold_what_the_columns_hold() -> None:
    assert part(4, 2).records() == [
        ConsumerRecord("orders", 3, 4, 1_004, None, b"4", ()),
        ConsumerRecord("orders", 3, 5, 1_005, None, b"5"),
    ]
    assert part(4, 1, headers=True).records()[0].headers == (("h", b"1"),)
    assert isinstance(part(4, 1).records()[0], ConsumerRecord)


def test_a_part_is_divided_where_the_next_record_stands() -> None:
    whole = part(0, 5, headers=True)
    first, rest = whole.split(2)
    assert first.records() + rest.records() == whole.records()
    assert (first.next_offset, rest.next_offset, rest.leader_epoch) == (2, 5, 7)


def test_a_batch_is_all_of_its_parts() -> None:
    batch = ConsumerBatch([part(0, 2), part(5, 1)])
    assert len(batch) == 3
    assert [record.offset for record in batch] == [0, 1, 5]
    assert batch.records is batch.records
    assert not ConsumerBatch([])
    assert repr(batch) == "<3 records of 2 part(s)>"
    assert repr(batch.parts[0]) == "<2 records of orders-3, from 0 on>"
