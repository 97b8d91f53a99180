"""Batches with fewer records: what is found in them, what stays and what changes, for any records, codec, choice and
delete horizon (Hypothesis); the bytes by hand; and payloads that are no records."""

from collections.abc import Sequence
from struct import Struct

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from odradek.protocol.batches.batch import HEADER_SIZE, BatchHeader, crc_matches, pack_batch, read_header, rebuild_batch
from odradek.protocol.batches.compression import Codec
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record, iterate_records, unpack_records
from odradek.protocol.batches.rewriting import Place, delete_horizon_ms, emptied, locate_records, repacked
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.primitives import varint, varlong

T0 = 1_700_000_000_000
INT64_MAX = 2**63 - 1

texts = st.one_of(st.none(), st.binary(max_size=4), st.sampled_from([b"x" * 63, b"x" * 64, b"x" * 8191, b"x" * 9000]))
headers = st.lists(st.tuples(st.text(max_size=3), st.one_of(st.none(), st.binary(max_size=3))), max_size=2).map(tuple)
# Deltas are numbers of 64 bits: -1 and the largest timestamp are too far apart for one batch.
timestamps = st.one_of(st.integers(T0 - 100, T0 + 100), st.integers(-1, INT64_MAX - 1))


@st.composite
def batches(draw: st.DrawFn, codecs: Sequence[Codec] = tuple(Codec)) -> bytes:
    """With gaps between offsets, as compaction leaves them, and with the last offset behind the last record."""
    gaps = draw(st.lists(st.sampled_from([0, 0, 0, 1, 70, 9000]), min_size=1, max_size=6))
    base_offset = draw(st.sampled_from([0, 5, 2**40]))
    records: list[Record] = []
    offset = base_offset
    for gap in gaps:
        offset += gap
        records.append(Record(offset, draw(timestamps), draw(texts), draw(texts), draw(headers)))
        offset += 1
    data = build_batch(
        records,
        base_offset=base_offset,
        codec=draw(st.sampled_from(codecs)),
        leader_epoch=7,
        producer_id=12,
        producer_epoch=3,
        base_sequence=100,
        is_transactional=draw(st.booleans()),
    )
    header = read_header(data)
    return rebuild_batch(
        header._replace(last_offset_delta=header.last_offset_delta + draw(st.integers(0, 3))),
        data[HEADER_SIZE:],
        codec=header.codec,
        max_timestamp=header.max_timestamp,
        is_log_append_time=draw(st.booleans()),
    )


def opened(data: bytes) -> tuple[BatchHeader, bytes, list[Place]]:
    header = read_header(data)
    payload = unpack_records(data, header)
    return header, payload, list(locate_records(payload, header))


# ------------------------------------------------------------------------------------------------------------- reading


@given(batches())
def test_records_are_found_where_they_are(data: bytes) -> None:
    header, payload, places = opened(data)
    records = list(iterate_records(data))
    assert [place[0] for place in places] == [record.offset for record in records]
    assert [place[2] for place in places] == [record.key for record in records]
    assert [place[3] for place in places] == [record.value is not None for record in records]
    if not header.is_log_append_time:
        assert [header.base_timestamp + place[1] for place in places] == [record.timestamp_ms for record in records]
    assert b"".join(payload[start:end] for *_, start, end in places) == payload


@given(batches([Codec.NONE]), st.data())
def test_a_damaged_payload_is_refused_or_read_but_nothing_else_happens(data: bytes, draw: st.DataObject) -> None:
    """What `iterate_records` reads is read with the same keys; it refuses more, for it looks at the headers."""
    damaged = bytearray(data)
    position = draw.draw(st.integers(HEADER_SIZE, len(data) - 1))
    damaged[position] ^= draw.draw(st.integers(1, 255))
    cut = draw.draw(st.sampled_from([len(damaged), max(HEADER_SIZE, position - 3)]))
    payload = bytes(damaged[HEADER_SIZE:cut])
    header = read_header(data)._replace(batch_length=HEADER_SIZE - 12 + len(payload))
    try:
        found = [(place[0], place[2]) for place in locate_records(payload, header)]
    except KafkaError as error:
        assert error.code is ErrorCode.INVALID_RECORD
        found = []
    rebuilt = rebuild_batch(header, payload, codec=Codec.NONE, max_timestamp=0, is_log_append_time=False)
    try:
        expected = [(record.offset, record.key) for record in iterate_records(rebuilt)]
    except KafkaError:
        return
    assert found == expected


@given(st.binary(max_size=40), st.integers(-2, 5), st.integers(-1, 5))
def test_bytes_that_are_no_records_are_refused(payload: bytes, count: int, last_delta: int) -> None:
    header = read_header(build_batch([Record(0, T0, None, None)]))
    header = header._replace(record_count=count, last_offset_delta=last_delta)
    try:
        assert len(list(locate_records(payload, header))) == count
    except KafkaError as error:
        assert error.code is ErrorCode.INVALID_RECORD


def encoded(
    *, length: int | None = None, timestamp: bytes = b"\x00", offset: bytes = b"\x00", rest: bytes = b"\x01\x01\x00"
) -> bytes:
    """A record: null key and value, no headers."""
    body = b"\x00" + timestamp + offset + rest
    return varint(len(body) if length is None else length) + body


@pytest.mark.parametrize(
    ("payload", "count", "why"),
    [
        pytest.param(encoded(), 2, "record 1 of 2 is malformed", id="one is missing"),
        pytest.param(encoded() + encoded(offset=b"\x02"), 1, "7 bytes follow the 1 records", id="one too many"),
        pytest.param(encoded(), -1, "-1 records", id="negative count"),
        pytest.param(encoded(length=-1), 1, "a negative length", id="negative length"),
        pytest.param(encoded(length=7), 1, "beyond the batch", id="too long"),
        pytest.param(encoded(length=5), 1, "behind its length", id="too short"),
        pytest.param(encoded(offset=b"\x01"), 1, "offset delta -1 after -1", id="negative offset"),
        pytest.param(encoded(offset=b"\x14"), 1, "offset delta 10 after -1, where 9 is", id="behind the last"),
        pytest.param(encoded() + encoded(), 2, "offset delta 0 after 0", id="the same offset"),
        pytest.param(encoded(rest=b"\x03\x01\x00"), 1, "a key with a negative length", id="key"),
        pytest.param(encoded(rest=b"\x08\x01\x00"), 1, "malformed", id="key beyond"),
        pytest.param(encoded(rest=b"\x01\x03\x00"), 1, "a value with a negative length", id="value"),
        pytest.param(encoded(rest=b"\x01\x02\x00"), 1, "behind its length", id="no place for headers"),
        pytest.param(encoded(timestamp=varlong(INT64_MAX)), 1, "more than 64 bits", id="timestamp"),
        pytest.param(encoded(timestamp=b"\xff" * 11), 1, "malformed", id="endless number"),
    ],
)
def test_what_contradicts_itself_is_refused(payload: bytes, count: int, why: str) -> None:
    header = read_header(build_batch([Record(0, 1, None, None), Record(9, 1, None, None)]))
    with pytest.raises(KafkaError, match=why) as caught:
        list(locate_records(payload, header._replace(record_count=count)))
    assert caught.value.code is ErrorCode.INVALID_RECORD


# ------------------------------------------------------------------------------------------------------------- writing


@given(batches(), st.data(), st.one_of(st.none(), st.integers(0, INT64_MAX)))
def test_the_records_that_stay_are_what_they_were(data: bytes, draw: st.DataObject, horizon_ms: int | None) -> None:
    header, payload, places = opened(data)
    chosen = draw.draw(st.lists(st.sampled_from(places), min_size=1, unique=True).map(sorted))
    if horizon_ms is not None:
        assume(all(place[1] + header.base_timestamp - horizon_ms >= -(2**63) for place in chosen))
    new = repacked(header, payload, chosen, horizon_ms)
    offsets = {place[0] for place in chosen}
    kept = [record for record in iterate_records(data) if record.offset in offsets]
    assert list(iterate_records(new)) == kept
    after = read_header(new)
    assert crc_matches(new)
    assert after.size_bytes == len(new)
    assert (delete_horizon_ms(header), delete_horizon_ms(after)) == (None, horizon_ms)
    assert after == header._replace(
        batch_length=after.batch_length,
        crc=after.crc,
        attributes=header.attributes | (0 if horizon_ms is None else 0x40),
        base_timestamp=header.base_timestamp if horizon_ms is None else horizon_ms,
        max_timestamp=max(record.timestamp_ms for record in kept),
        record_count=len(kept),
    )


@given(batches(), st.integers(0, INT64_MAX - 1), st.data())
def test_a_horizon_once_set_stays(data: bytes, horizon_ms: int, draw: st.DataObject) -> None:
    once = repacked(*opened(data), horizon_ms)
    header, payload, places = opened(once)
    again = repacked(header, payload, [draw.draw(st.sampled_from(places))])
    assert delete_horizon_ms(read_header(again)) == delete_horizon_ms(header) == horizon_ms


@given(batches())
def test_what_all_stays_of_is_the_same_but_for_the_codecs_work(data: bytes) -> None:
    header, payload, places = opened(data)
    new = repacked(header, payload, places)
    assert unpack_records(new, read_header(new)) == payload
    if header.codec is Codec.NONE:
        assert new == data


def test_nothing_in_a_record_is_lost_not_even_what_is_not_understood() -> None:
    """Attributes that are unused so far, and a header whose name is no UTF-8: Java's and our readers change both."""
    name = b"\xff\xfe"
    record = b"\x5a" + b"\x00\x00" + b"\x02k" + b"\x02v" + b"\x02" + varint(len(name)) + name + b"\x01"
    payload = varint(len(record)) + record
    data = pack_batch(payload, record_count=1, last_offset_delta=0, base_timestamp=T0, max_timestamp=T0)
    header, _, places = opened(data)
    assert repacked(header, payload, places) == data
    shifted = repacked(header, payload, places, T0 + 1)
    # length, attributes, the delta -1 as a zigzag number, and the rest as it was
    assert shifted[HEADER_SIZE:] == varint(len(record)) + b"\x5a\x01" + record[2:]


@pytest.mark.parametrize("timestamp_ms", [-1, -(2**63) + 1, -(2**63)])
def test_a_record_too_old_for_a_horizon_keeps_the_batch_without_one(timestamp_ms: int) -> None:
    data = build_batch([Record(0, timestamp_ms, b"a", None), Record(1, -1, b"b", b"")])
    new = repacked(*opened(data), T0)
    fits = timestamp_ms == -1
    assert delete_horizon_ms(read_header(new)) == (T0 if fits else None)
    assert list(iterate_records(new)) == list(iterate_records(data))
    latest = repacked(*opened(build_batch([Record(0, -1, b"a", None)])), INT64_MAX)
    assert delete_horizon_ms(read_header(latest)) == INT64_MAX, "for usual timestamps, and none, any horizon will do"


def test_without_any_timestamp_the_largest_is_none() -> None:
    """As in MemoryRecordsBuilder, which begins at -1; timestamps below are no timestamps."""
    data = build_batch([Record(0, -5, b"a", None), Record(1, T0, b"b", b"")])
    header, payload, places = opened(data)
    assert read_header(repacked(header, payload, places[:1])).max_timestamp == -1


@given(batches())
def test_an_emptied_batch_is_a_header_that_can_be_emptied_again(data: bytes) -> None:
    header = read_header(data)
    empty = emptied(header)
    after = read_header(empty)
    assert (len(empty), list(iterate_records(empty)), crc_matches(empty)) == (HEADER_SIZE, [], True)
    assert after == header._replace(
        batch_length=49, crc=after.crc, attributes=header.attributes & 0x18, base_timestamp=-1, record_count=0
    )
    assert emptied(after) == empty
    assert emptied(header._replace(attributes=header.attributes | 0x40)) == empty, "without a horizon"


def test_an_emptied_batch_has_the_bytes_that_kafka_writes() -> None:
    """DefaultRecordBatch.writeEmptyHeader, field by field: no codec, no horizon, base_timestamp -1."""
    data = build_batch(
        [Record(10, T0, b"a", b"1"), Record(11, T0 + 5, b"b", None)],
        base_offset=10,
        codec=Codec.ZSTD,
        leader_epoch=3,
        producer_id=12,
        producer_epoch=4,
        base_sequence=7,
        is_transactional=True,
    )
    empty = emptied(read_header(repacked(*opened(data), T0 + 99)))
    fields = Struct(">qiibIhiqqqhii").unpack(empty)
    assert fields == (10, 49, 3, 2, fields[4], 0x10, 1, -1, T0 + 5, 12, 4, 7, 0)
