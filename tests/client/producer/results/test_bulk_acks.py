"""The acknowledgements of a bulk are those of its records, by index, in any order of acceptance and through splits.

A model knows of each record given whether it was refused, and where and how its batch ended.
"""

import asyncio
from array import array
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.client.errors.client_errors import ClientError, ConnectionFailed, RecordTooLarge, UndeliveredRecords
from odradek.client.producer.results.bulk_acks import BulkAcks
from odradek.client.producer.results.produce_results import Ack, ProduceResult, Results
from tests.client import batches
from tests.client.deliveries import CountedResults

NOW = 1_700_000_000_000


def new_result(count: int, partition: int = 0, owner: Results | None = None) -> ProduceResult:
    result = ProduceResult(batches.results() if owner is None else owner, "orders", partition)
    result.count = count
    result.timestamps = array("q", [NOW + n for n in range(count)])
    return result


def lost() -> ClientError:
    return ConnectionFailed("broker 1")


def too_large() -> ClientError:
    return RecordTooLarge("orders", 2000, 1000, "max_request_size")


def offsets(acks: BulkAcks) -> list[int]:
    return [ack.offset for ack in acks]


# ------------------------------------------------------------------------------------------------------- by examples
def test_of_nothing() -> None:
    acks = BulkAcks()
    assert len(acks) == 0
    assert list(acks) == []
    assert acks[:] == []
    assert acks.errors() == {}
    for index in (0, -1):
        with pytest.raises(IndexError, match="of 0"):
            acks[index]


def test_runs_of_several_batches_in_the_given_order() -> None:
    """Records of a batch that were accepted one run after the other, and others of the same batch later."""
    first, second = new_result(5, partition=0), new_result(2, partition=1)
    acks = BulkAcks()
    acks.given = 6
    acks.add(first, 0, range(2))
    acks.add(first, 2, range(2, 3))
    acks.add(second, 1, [3])
    acks.add(first, 3, [4, 5])
    first.complete(100, -1)
    second.complete(200, -1)
    assert offsets(acks) == [100, 101, 102, 201, 103, 104]
    assert acks[3] == Ack("orders", 1, 201, NOW + 1)
    assert acks[-1] == acks[5] == Ack("orders", 0, 104, NOW + 4)
    assert [ack.offset for ack in acks[1:5:2]] == [101, 201]
    assert [ack.offset for ack in acks[::-1]] == [104, 103, 201, 102, 101, 100]
    assert acks[10:] == []
    for index in (6, -7):
        with pytest.raises(IndexError, match=f"record {index} of 6"):
            acks[index]
    assert repr(acks) == "<Acks of 6 records>"


def test_a_run_that_does_not_follow_on_the_one_before_stays_its_own() -> None:
    """Between the two, another task's record got into the batch."""
    result = new_result(5)
    acks = BulkAcks()
    acks.given = 4
    acks.add(result, 0, range(2))
    acks.add(result, 3, range(2, 4))
    result.complete(0, -1)
    assert offsets(acks) == [0, 1, 3, 4]


def test_records_accepted_by_partition_have_their_acks_in_the_given_order() -> None:
    even, odd = new_result(3, partition=0), new_result(3, partition=1)
    acks = BulkAcks()
    acks.given = 6
    acks.add(even, 0, [0, 2, 4])
    acks.add(odd, 0, [1, 3, 5])
    even.complete(10, -1)
    odd.complete(20, -1)
    assert offsets(acks) == [10, 20, 11, 21, 12, 22]
    # More of them may come after somebody has looked.
    more = new_result(1, partition=2)
    acks.given = 7
    acks.add(more, 0, [6])
    more.complete(30, -1)
    assert offsets(acks) == [10, 20, 11, 21, 12, 22, 30]


def test_a_record_that_was_refused_raises_its_error_and_the_others_do_not() -> None:
    result = new_result(2)
    error = too_large()
    acks = BulkAcks()
    acks.given = 3
    acks.add(result, 0, [0])
    acks.refuse(1, error)
    acks.add(result, 1, [2])
    result.complete(0, -1)
    assert (acks[0].offset, acks[2].offset) == (0, 1)
    for _ in range(2):
        with pytest.raises(RecordTooLarge) as caught:
            acks[1]
        assert caught.value is not error
    with pytest.raises(RecordTooLarge):
        acks[:]
    assert acks.errors() == {1: error}


def test_a_record_that_nobody_accepted_or_refused_is_our_mistake() -> None:
    """It must not be taken for the end of the sequence, nor for another record."""
    result = new_result(1)
    result.complete(0, -1)
    for indexes in ([0], [1]):
        acks = BulkAcks()
        acks.given = 2
        acks.add(result, 0, indexes)
        with pytest.raises(AssertionError, match="neither accepted nor refused"):
            list(acks)


def test_errors_are_by_index_and_looked_at() -> None:
    owner = batches.results()
    good, bad, worse = (new_result(count, partition, owner) for partition, count in enumerate((2, 3, 1)))
    own, other = too_large(), lost()
    acks = BulkAcks()
    acks.given = 5
    acks.add(worse, 0, [4])
    acks.add(good, 0, [1, 3])
    acks.add(bad, 0, [0, 2])
    good.complete(0, -1)
    bad.fail(other, {1: own})
    worse.fail(other)
    assert acks.errors() == {0: other, 2: own, 4: other}
    assert list(acks.errors()) == [0, 2, 4]
    with pytest.raises(ConnectionFailed):
        acks[0]
    with pytest.raises(UndeliveredRecords) as caught:
        owner.report()
    assert caught.value.count == 1, "the third record of the batch is none of the bulk's"


async def test_settled_waits_for_all_of_them_and_looks_at_each() -> None:
    """A later batch fails, and another is split, while the first is waited for: no failure without a witness."""
    owner = CountedResults()
    first, second, third = (new_result(3, partition, owner) for partition in range(3))
    acks = BulkAcks()
    acks.given = 7
    acks.add(first, 0, [0, 3])
    acks.add(second, 1, [1, 2])
    acks.add(third, 0, [4, 5, 6])
    task = asyncio.create_task(acks.ended())
    await asyncio.sleep(0)
    second.fail(lost())
    assert owner.lost_count == 1, "the first of the batch is none of the bulk's"
    left, right = third.split((1, 2))
    right.fail(lost())
    left.complete(50, -1)
    for _ in range(3):
        await asyncio.sleep(0)
    assert not task.done()
    first.complete(0, -1)
    await task
    assert owner.lost_count == 1
    assert set(acks.errors()) == {1, 2, 5, 6}
    assert [acks[index].offset for index in (0, 3, 4)] == [0, 1, 50]
    await BulkAcks().ended()


# ---------------------------------------------------------------------------------------------------------- by a model
@dataclass
class Batch:
    """A batch in which records of the bulk and of others lie. `outcomes`: the offset of each, or None: it failed."""

    result: ProduceResult
    outcomes: list[int | None] = field(default_factory=list[int | None])


def play(result: ProduceResult, batch: Batch, data: st.DataObject) -> None:
    """Ends a result somehow, in parts perhaps."""
    if result.count > 1 and data.draw(st.integers(0, 2)) == 0:
        cut = data.draw(st.integers(1, result.count - 1))
        for part in result.split((cut, result.count - cut)):
            part.timestamps = array("q", range(part.count))
            play(part, batch, data)
    elif data.draw(st.integers(0, 3)):
        base = data.draw(st.integers(0, 10**6))
        batch.outcomes += range(base, base + result.count)
        result.complete(base, -1)
    else:
        batch.outcomes += [None] * result.count
        result.fail(lost())


@settings(max_examples=200)
@given(st.data())
def test_each_record_has_its_own_end(data: st.DataObject) -> None:
    """Records in slices, each grouped by partition or not, some refused, between records of others."""
    acks = BulkAcks()
    open_batches = [Batch(new_result(0, partition)) for partition in range(3)]
    ended: list[Batch] = []
    places: dict[int, tuple[Batch, int]] = {}
    refused: dict[int, ClientError] = {}

    def accept(partition: int, indexes: list[int]) -> None:
        batch = open_batches[partition]
        batch.result.count += data.draw(st.integers(0, 1))  # a record of somebody else
        start = batch.result.count
        batch.result.count += len(indexes)
        places.update((index, (batch, start + n)) for n, index in enumerate(indexes))
        acks.add(batch.result, start, indexes)
        if data.draw(st.integers(0, 3)) == 0:
            ended.append(batch)
            open_batches[partition] = Batch(new_result(0, partition))

    for size in data.draw(st.lists(st.integers(1, 6), max_size=6)):
        indexes = list(range(acks.given, acks.given + size))
        acks.given += size
        for index in [index for index in indexes if data.draw(st.integers(0, 5)) == 0]:
            refused[index] = too_large()
            acks.refuse(index, refused[index])
            indexes.remove(index)
        groups: dict[int, list[int]] = {}
        is_keyed = data.draw(st.booleans())
        for index in indexes:
            groups.setdefault(data.draw(st.integers(0, 2)) if is_keyed else index // 3 % 3, []).append(index)
        for partition, group in groups.items():
            accept(partition, group)
    for batch in data.draw(st.permutations(ended + open_batches)):
        batch.result.timestamps = array("q", range(batch.result.count))
        play(batch.result, batch, data)

    assert len(acks) == len(places) + len(refused)
    expected = {index: batch.outcomes[place] for index, (batch, place) in places.items()}
    assert set(acks.errors()) == {index for index, offset in expected.items() if offset is None} | set(refused)
    for index in range(len(acks)):
        if index in refused:
            with pytest.raises(RecordTooLarge):
                acks[index]
        elif expected[index] is None:
            with pytest.raises(ConnectionFailed):
                acks[index]
        else:
            batch, _ = places[index]
            assert acks[index].offset == acks[index - len(acks)].offset == expected[index]
            assert acks[index].partition == batch.result.partition
