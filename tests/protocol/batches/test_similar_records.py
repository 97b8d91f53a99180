"""Similar records are those that are read one by one, and the first that is different ends them; damage included."""

import random
from collections.abc import Sequence

import pytest

from odradek.protocol.batches.batch import BatchHeader, read_header
from odradek.protocol.batches.columns import Columns, decode_columns
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record, iterate_unpacked, unpack_records
from odradek.protocol.batches.similar_records import SIMILAR_MAX, Form, similar_records
from odradek.protocol.errors import KafkaError

FORM = Form(length_size=2, head_size=2, offset_size=1, key_size=4)


def mixed(count: int, *, key: bytes | None = b"key.", every: int = 3, least: int = 60, most: int = 300) -> list[Record]:
    """Values of any size, and so many records of one time."""
    rng = random.Random(1)
    return [Record(n, 1_000 + n // every, key, rng.randbytes(rng.randint(least, most))) for n in range(count)]


def batch_of(records: Sequence[Record]) -> tuple[BatchHeader, bytes]:
    batch = build_batch(records)
    header = read_header(batch)
    return header, unpack_records(batch, header)


def found_in(records: Sequence[Record], form: Form = FORM, *, delta: int = 0, count_max: int = 1000) -> int:
    """How many of the records are read together, after a look whether they are what they should be."""
    _, data = batch_of(records)
    similar = similar_records(data, 0, form, delta, count_max)
    count = len(similar.values)
    assert similar.values == [record.value for record in records[:count]]
    assert list(similar.keys) == [record.key for record in records[:count]]
    assert similar.timestamp_deltas == [record.timestamp_ms - records[0].timestamp_ms for record in records[:count]]
    assert similar.position == (len(batch_of(records[:count])[1]) if count else 0)
    return count


def test_values_times_and_offsets_may_differ() -> None:
    assert found_in(mixed(50)) == 50
    assert found_in(mixed(50, every=1)) == 50
    assert found_in(mixed(50, key=None), FORM._replace(key_size=-1)) == 50
    assert found_in(mixed(50, key=b""), FORM._replace(key_size=0)) == 50
    assert found_in(mixed(50, least=0, most=40), FORM._replace(length_size=1)) == 50
    assert found_in(mixed(20, least=7_000, most=8_000)) == 20


def test_no_more_are_read_than_are_asked_for_and_than_one_look_is_worth() -> None:
    assert found_in(mixed(50), count_max=49) == 49
    assert found_in(mixed(SIMILAR_MAX)) == SIMILAR_MAX == 64
    assert found_in(mixed(65)) == 64


@pytest.mark.parametrize(
    "other",
    [
        Record(20, 1_005, b"keys.", b"v" * 100),
        Record(20, 1_005, None, b"v" * 100),
        Record(20, 1_005, b"key.", None),
        Record(20, 1_005, b"key.", b"v" * 100, (("h", b""),)),
        Record(20, 1_005, b"key.", b"v" * 9_000),
        Record(20, 1_005, b"key.", b"v" * 10),
        Record(21, 1_005, b"key.", b"v" * 100),
        Record(20, 1_064, b"key.", b"v" * 100),
        Record(20, 900, b"key.", b"v" * 100),
    ],
    ids=["key size", "no key", "no value", "headers", "three bytes", "short length", "gap", "later", "earlier"],
)
def test_the_first_that_is_different_ends_them(other: Record) -> None:
    rest = [record._replace(offset=record.offset + 30) for record in mixed(20)]
    assert found_in([*mixed(20), other, *rest]) == 20


@pytest.mark.parametrize(
    "form",
    [
        FORM._replace(length_size=3),
        FORM._replace(head_size=5),
        FORM._replace(offset_size=3),
        FORM._replace(offset_size=2),
        FORM._replace(key_size=64),
    ],
)
def test_records_of_longer_fields_are_left_to_others(form: Form) -> None:
    assert found_in(mixed(20), form) == 0


def decoded(header: BatchHeader, data: bytes) -> list[Record] | type[KafkaError]:
    columns = Columns()
    try:
        decode_columns(header, data, columns)
    except KafkaError:
        return KafkaError
    headers = columns.headers or [()] * len(columns)
    rows = zip(columns.offsets, columns.timestamps_ms, columns.keys, columns.values, headers, strict=True)
    return [Record(*row) for row in rows]


def singly(header: BatchHeader, data: bytes) -> list[Record] | type[KafkaError]:
    try:
        return list(iterate_unpacked(header, data))
    except KafkaError:
        return KafkaError


@pytest.mark.parametrize("every", [1, 2, 7, 100])
@pytest.mark.parametrize("count", [9, 100, 300])
def test_batches_of_mixed_sizes_are_what_is_read_one_by_one(count: int, every: int) -> None:
    for least, most in ((0, 100), (50, 150), (60, 70), (50, 9_000)):
        records = mixed(count, every=every, least=least, most=most)
        assert decoded(*batch_of(records)) == records
        even = mixed(count, least=80, most=80)
        both = [*records, *(record._replace(offset=record.offset + count) for record in even)]
        assert decoded(*batch_of(both)) == both


def test_damage_at_any_byte_is_refused_or_read_alike() -> None:
    header, data = batch_of(mixed(14, every=5, least=50, most=90))
    for place in range(len(data)):
        for change in (1, 2, 128):
            damaged = bytearray(data)
            damaged[place] ^= change
            assert decoded(header, bytes(damaged)) == singly(header, bytes(damaged)), (place, change)


def test_bytes_that_end_early_are_refused_wherever_they_end() -> None:
    header, data = batch_of(mixed(12, every=5, least=50, most=90))
    assert all(decoded(header, data[:size]) is KafkaError for size in range(len(data)))
