"""A chunk read in columns: the same records as batch by batch, several batches together, decompressed ahead or not."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.client.fetching.fetched import Chunk, CorruptRecords, unpack
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.batches.compression import Codec
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record
from odradek.protocol.messages.fetch import AbortedTransaction

P = TopicPartition("orders", 0)


def stored(first: int, count: int, size: int = 5, codec: Codec = Codec.NONE) -> bytes:
    records = [Record(first + index, 9, None, bytes([index & 255]) * size) for index in range(count)]
    return build_batch(records, base_offset=first, codec=codec, leader_epoch=first)


def columns_of(chunk: Chunk, count_min: int = 1, end: int | None = None) -> list[list[int]]:
    found: list[list[int]] = []
    while (columns := chunk.take_columns(end, count_min)) is not None:
        found.append(columns.offsets)
    return found


def test_batches_are_put_together_until_there_are_enough_records() -> None:
    data = b"".join(stored(first, 10) for first in range(0, 50, 10))
    assert [len(each) for each in columns_of(Chunk(P, 0, data), 15)] == [20, 20, 10]
    chunk = Chunk(P, 0, data)
    assert chunk.last_epoch == 40
    assert chunk.take_columns(count_min=11) is not None
    assert (chunk.position, chunk.leader_epoch) == (20, 10)


def test_records_before_the_offset_and_behind_the_end_are_left_out() -> None:
    data = stored(0, 10) + stored(10, 10)
    assert columns_of(Chunk(P, 4, data), 100, 13) == [[*range(4, 13)]]


def test_markers_and_aborted_transactions_are_left_out() -> None:
    def transactional(first: int, producer_id: int) -> bytes:
        return build_batch(
            [Record(first, 0, None, b"")], base_offset=first, producer_id=producer_id, is_transactional=True
        )

    def marker(offset: int, producer_id: int, kind: int) -> bytes:
        record = Record(offset, 0, b"\x00\x00" + kind.to_bytes(2), bytes(6))
        return build_batch(
            [record], base_offset=offset, producer_id=producer_id, is_transactional=True, is_control=True
        )

    data = transactional(0, 1) + transactional(1, 2) + marker(2, 1, 0) + transactional(3, 1) + marker(4, 2, 1)
    aborted = [AbortedTransaction(producer_id=1, first_offset=0)]
    chunk = Chunk(P, 0, data, aborted=aborted)
    assert columns_of(chunk, 100) == [[1, 3]]
    assert chunk.position == 5
    assert columns_of(Chunk(P, 0, data), 100) == [[0, 1, 3]]


def test_what_is_sound_is_handed_out_before_damage_is_raised() -> None:
    damaged = bytearray(stored(10, 5))
    damaged[-1] ^= 1
    chunk = Chunk(P, 0, stored(0, 10) + bytes(damaged) + stored(15, 5))
    columns = chunk.take_columns(count_min=100)
    assert columns is not None
    assert columns.offsets == list(range(10))
    for _ in range(2):
        with pytest.raises(CorruptRecords) as raised:
            chunk.take_columns(count_min=100)
        assert raised.value.offset == 10


@pytest.mark.parametrize("codec", [each for each in Codec if each])
def test_large_compressed_batches_are_decompressed_ahead(codec: Codec) -> None:
    chance = random.Random(1)
    records = [Record(index, 9, None, chance.randbytes(1_000)) for index in range(60)]
    batch = build_batch(records, codec=codec)
    chunk = Chunk(P, 0, batch)
    packed = chunk.packed()
    assert packed is not None
    chunk.unpacked(packed, unpack(packed))
    assert chunk.packed() is None
    columns = chunk.take_columns()
    assert columns is not None
    assert columns.values == [record.value for record in records]


def test_small_or_plain_batches_are_taken_as_they_are() -> None:
    assert Chunk(P, 0, stored(0, 100, 1_000)).packed() is None
    assert Chunk(P, 0, stored(0, 10, 5, Codec.GZIP)).packed() is None
    assert Chunk(P, 0).packed() is None


def test_what_does_not_decompress_is_raised_when_it_is_taken() -> None:
    chance = random.Random(1)
    records = [Record(index, 9, None, chance.randbytes(1_000)) for index in range(60)]
    batch = bytearray(build_batch(records, codec=Codec.ZSTD))
    batch[61:70] = bytes(9)
    for reads_columns in (True, False):
        chunk = Chunk(P, 0, bytes(batch), check_crcs=False)
        packed = chunk.packed()
        assert packed is not None
        chunk.unpacked(packed, unpack(packed))
        with pytest.raises(CorruptRecords, match="ZSTD"):
            _ = chunk.take_columns() if reads_columns else chunk.take()


@given(
    st.lists(st.tuples(st.integers(1, 20), st.sampled_from([Codec.NONE, Codec.LZ4])), min_size=1, max_size=6),
    st.integers(0, 60),
    st.integers(1, 40),
    st.one_of(st.none(), st.integers(0, 120)),
)
def test_columns_hold_the_same_records_as_batches(
    shape: list[tuple[int, Codec]], offset: int, count_min: int, end: int | None
) -> None:
    first, data = 0, b""
    for count, codec in shape:
        data += stored(first, count, 3, codec)
        first += count
    offset = min(offset, first - 1)
    singly: list[int] = []
    chunk = Chunk(P, offset, data)
    while (batch := chunk.take(end)) is not None:
        singly += [record.offset for record in batch.records]
    other = Chunk(P, offset, data)
    assert [each for columns in columns_of(other, count_min, end) for each in columns] == singly
    assert other.position == chunk.position
