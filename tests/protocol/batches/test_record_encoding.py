"""Records that come as columns make the bytes of the plain encoder, wherever numbers outgrow one byte and two."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.batches.record_encoding import encode_columns, encode_records
from odradek.protocol.batches.records import Record
from tests.protocol import plain

NOW = 1_700_000_000_000

short = st.binary(max_size=20) | st.integers(50, 70).map(bytes) | st.integers(8150, 8191).map(bytes)
counts = st.integers(1, 5) | st.integers(60, 70)
first_deltas = st.integers(0, 70) | st.integers(8100, 8192)
timestamp_deltas = st.sampled_from([0, 1, 63, 64, -64, -65, 8191, 8192, 1 << 40, -(1 << 40)])


def plainly(keys: list[bytes] | None, values: list[bytes], first_delta: int, timestamp_delta: int) -> bytes:
    """The same records from an encoder that shares no code with ours."""
    return b"".join(
        plain.record(first_delta + n, value, None if keys is None else keys[n], timestamp_delta, [])
        for n, value in enumerate(values)
    )


@given(counts, first_deltas, timestamp_deltas, st.data())
def test_columns_are_encoded_as_the_records_one_by_one(
    count: int, first_delta: int, timestamp_delta: int, data: st.DataObject
) -> None:
    """Keys of one length, of several, or none; where the quick way says None, a number takes three bytes."""
    values = data.draw(st.lists(short, min_size=count, max_size=count))
    keys = data.draw(st.none() | short.map(lambda key: [key] * count) | st.lists(short, min_size=count, max_size=count))
    encoded = encode_columns(keys, values, first_delta, timestamp_delta)
    expected = plainly(keys, values, first_delta, timestamp_delta)
    if encoded is None:
        sizes = [len(value) + (0 if keys is None else len(keys[n])) for n, value in enumerate(values)]
        assert first_delta + count > 8192 or max(sizes) > 8100
    else:
        assert encoded == expected
    records = [
        Record(first_delta + n, NOW + timestamp_delta, None if keys is None else keys[n], value)
        for n, value in enumerate(values)
    ]
    assert encode_records(records, 0, NOW) == expected


@pytest.mark.parametrize("first_delta", [0, 1, 62, 63, 64, 65])
@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 200])
@pytest.mark.parametrize("keys", ["none", "of one length", "long", "of several"])
def test_offset_deltas_outgrow_one_byte_anywhere_in_a_run(first_delta: int, count: int, keys: str) -> None:
    formats = {"of one length": b"%03d", "long": b"%070d", "of several": b"%d"}
    columns = {kind: [text % n for n in range(count)] for kind, text in formats.items()}
    values = [bytes(n % 130) for n in range(count)]
    encoded = encode_columns(columns.get(keys), values, first_delta, 0)
    assert encoded == plainly(columns.get(keys), values, first_delta, 0)


@pytest.mark.parametrize(
    ("keys", "values", "first_delta"),
    [
        (None, [b"v"], 8192),
        (None, [b"v", b"v"], 8191),
        (None, [b"v", bytes(8192)], 0),
        ([bytes(8192), b"k"], [b"v", b"v"], 0),
        ([b"k", bytes(5000)], [b"v", bytes(5000)], 0),
        (None, [b"v"] * 64 + [bytes(8192)], 0),
    ],
)
def test_long_ones_and_late_ones_are_left_to_the_other_way(
    keys: list[bytes] | None, values: list[bytes], first_delta: int
) -> None:
    assert encode_columns(keys, values, first_delta, 0) is None
