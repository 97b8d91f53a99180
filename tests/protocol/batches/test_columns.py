"""Records in columns are those that are read one by one, whatever their shapes, and so is what cannot be read."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.batches.batch import HEADER_SIZE, BatchHeader, read_header
from odradek.protocol.batches.columns import Columns, decode_columns
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record, iterate_unpacked, unpack_records
from odradek.protocol.errors import KafkaError


def rows(columns: Columns) -> list[Record]:
    headers = columns.headers or [()] * len(columns)
    return [
        Record(*row)
        for row in zip(columns.offsets, columns.timestamps_ms, columns.keys, columns.values, headers, strict=True)
    ]


def columns_of(*batches: tuple[BatchHeader, bytes]) -> Columns:
    columns = Columns()
    for header, data in batches:
        decode_columns(header, data, columns)
    return columns


def decoded(header: BatchHeader, data: bytes) -> list[Record] | type[KafkaError]:
    try:
        return rows(columns_of((header, data)))
    except KafkaError:
        return KafkaError


def singly(header: BatchHeader, data: bytes) -> list[Record] | type[KafkaError]:
    try:
        return list(iterate_unpacked(header, data))
    except KafkaError:
        return KafkaError


def batch_of(records: Sequence[Record]) -> tuple[BatchHeader, bytes]:
    batch = build_batch(records, base_offset=records[0].offset)
    header = read_header(batch)
    return header, unpack_records(batch, header)


def run(count: int, size: int, *, key: bytes | None = None, apart_ms: int = 0, first: int = 0) -> list[Record]:
    return [Record(first + index, 1_000 + index * apart_ms, key, bytes([index & 255]) * size) for index in range(count)]


# So many records of one shape, sizes of key and value (-1: null), time between two, offsets left out before, headers.
STRETCH = st.tuples(
    st.integers(1, 150),
    st.sampled_from([-1, 0, 1, 9, 63, 64, 200]),
    st.sampled_from([-1, 0, 1, 60, 100, 130, 9_000]),
    st.sampled_from([0, 1, 7, 100, 20_000]),
    st.sampled_from([0, 0, 0, 1, 70]),
    st.sampled_from([0, 0, 0, 1]),
)


@given(st.lists(STRETCH, min_size=1, max_size=5), st.integers(0, 5_000), st.integers(0, 9))
def test_columns_are_what_is_read_one_by_one(
    stretches: list[tuple[int, int, int, int, int, int]], first: int, seed: int
) -> None:
    chance = random.Random(seed)
    records: list[Record] = []
    offset, timestamp_ms = first, 1_700_000_000_000
    for count, key_size, value_size, apart_ms, gap, header_count in stretches:
        offset += gap
        for _ in range(count):
            key = None if key_size < 0 else chance.randbytes(key_size)
            value = None if value_size < 0 else chance.randbytes(value_size)
            records.append(Record(offset, timestamp_ms, key, value, (("h", b"1"),) * header_count))
            offset += 1
            timestamp_ms += apart_ms
    header, data = batch_of(records)
    assert decoded(header, data) == records


@given(st.integers(1, 60), st.integers(0, 140), st.data())
def test_damaged_bytes_are_refused_or_read_alike(count: int, size: int, data: st.DataObject) -> None:
    header, sound = batch_of(run(count, size, key=b"key", apart_ms=3))
    bytes_of = bytearray(sound)
    for _ in range(data.draw(st.integers(1, 3))):
        bytes_of[data.draw(st.integers(0, len(bytes_of) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(bytes_of)
    assert decoded(header, damaged) == singly(header, damaged)


@given(st.integers(2, 300), st.sampled_from([0, 1, 100]), st.integers(0, 80))
def test_a_shape_that_changes_is_followed(count: int, size: int, place: int) -> None:
    """One record among equal ones is another: longer, without a value, or after a gap."""
    records = run(count, size)
    place = min(place, count - 1)
    for other in (records[place]._replace(value=b"x" * (size + 1)), records[place]._replace(value=None)):
        changed = [*records[:place], other, *records[place + 1 :]]
        assert decoded(*batch_of(changed)) == changed
    gone = [record for record in records if record.offset != place]
    assert decoded(*batch_of(gone)) == gone


def test_offsets_and_times_of_more_bytes_are_read_together_too() -> None:
    for first, count, apart_ms in ((0, 9_000, 0), (0, 300, 40), (0, 300, 900)):
        records = run(count, 3, apart_ms=apart_ms, first=first)
        assert decoded(*batch_of(records)) == records


def test_with_log_append_time_every_record_has_the_batchs_time() -> None:
    header, data = batch_of(run(50, 10, apart_ms=5))
    stamped = header._replace(attributes=header.attributes | 8, max_timestamp=77)
    assert (
        columns_of((header, data), (stamped, data)).timestamps_ms[45:]
        == [1_225, 1_230, 1_235, 1_240, 1_245] + [77] * 50
    )
    assert decoded(stamped, data) == singly(stamped, data)


def test_times_at_the_ends_of_64_bits_are_read_and_no_others() -> None:
    for base in (2**63 - 1, -(2**63), 2**63 - 60, 2**62):
        header, data = batch_of(run(40, 3, apart_ms=2))
        moved = header._replace(base_timestamp=base)
        assert decoded(moved, data) == singly(moved, data)
        for apart_ms in (0, 1 << 40):
            header, data = batch_of([Record(0, 0, None, b""), Record(1, apart_ms, None, b"")])
            moved = header._replace(base_timestamp=base)
            assert decoded(moved, data) == singly(moved, data)


def test_batches_stand_one_behind_the_other_and_records_can_be_left_out() -> None:
    plain, headed = run(10, 5), [Record(10, 5, None, b"v", (("name", None),))]
    assert columns_of(batch_of(plain)).headers is None
    both = columns_of(batch_of(plain), batch_of(headed), batch_of(run(20, 5, first=11)))
    assert rows(both) == [*plain, *headed, *run(20, 5, first=11)]
    both.drop(2, 9)
    assert [row.offset for row in rows(both)] == [0, 1, *range(9, 31)]


def test_of_a_batch_that_cannot_be_read_nothing_is_added() -> None:
    header, data = batch_of(run(20, 5))
    columns = columns_of(batch_of([Record(0, 5, None, b"v", (("name", None),))]))
    for wrong in (data[:-1], data + b"x"):
        with pytest.raises(KafkaError):
            decode_columns(header, wrong, columns)
        assert len(rows(columns)) == 1


def test_records_that_do_not_fit_their_header_are_refused() -> None:
    header, data = batch_of(run(20, 10))
    for wrong in (
        header._replace(record_count=19),
        header._replace(record_count=21),
        header._replace(last_offset_delta=5),
    ):
        assert decoded(wrong, data) is KafkaError is singly(wrong, data)
    assert header.size_bytes == HEADER_SIZE + len(data)
