"""Records inside a batch: bytes against a plain encoder, full validation rule by rule, and poison of every kind.

Batches with mistakes come from `plain`, whose encoder shares no code with ours.
"""

import tracemalloc
from collections.abc import Sequence

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.batches.batch import HEADER_SIZE, check_batch, crc_matches, read_header
from odradek.protocol.batches.compression import Codec, compress
from odradek.protocol.batches.record_encoding import build_batch, encode_records
from odradek.protocol.batches.records import (
    HEADERS_MAX,
    CheckedRecords,
    Record,
    check_records,
    iterate_records,
    unpack_records,
)
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.protocol import plain

NOW = 1_700_000_000_000
COMPRESSING = [codec for codec in Codec if codec is not Codec.NONE]

optional_bytes = (
    st.none() | st.binary(max_size=40) | st.integers(60, 70).map(bytes) | st.integers(8185, 8200).map(bytes)
)
headers = st.lists(st.tuples(st.text(max_size=10), st.none() | st.binary(max_size=10)), max_size=3).map(tuple)
timestamps = st.integers(0, 1 << 62) | st.integers(NOW - 100, NOW + 10_000)


@st.composite
def record_lists(draw: st.DrawFn) -> list[Record]:
    """Records of one batch, offsets 0, 1, 2, ..."""
    drawn = draw(st.lists(st.tuples(timestamps, optional_bytes, optional_bytes, headers), min_size=1, max_size=6))
    return [Record(offset, *rest) for offset, rest in enumerate(drawn)]


def plainly(records: Sequence[Record], base_timestamp: int) -> list[bytes]:
    """The same records from the plain encoder."""
    return [
        plain.record(
            record.offset,
            record.value,
            record.key,
            record.timestamp_ms - base_timestamp,
            [(name.encode(), value) for name, value in record.headers],
        )
        for record in records
    ]


def check(batch: bytes) -> CheckedRecords:
    """Both checks that `record.validation=full` makes of a client's batch."""
    return check_records(memoryview(batch), check_batch(memoryview(batch)))


def refusal(batch: bytes) -> ErrorCode:
    """The code with which a batch is refused, by its header where that tells already."""
    with pytest.raises(KafkaError) as caught:
        check(batch)
    return caught.value.code


# ----------------------------------------------------------------------------------------------------- there and back


def test_a_record_byte_by_byte() -> None:
    written_by_hand = bytes.fromhex(
        "38"  # length: 28
        "00"  # attributes
        "c801"  # timestamp delta: 100
        "02"  # offset delta: 1
        "06"  # key: 3 bytes
        "6b6579"  # "key"
        "0a"  # value: 5 bytes
        "76616c7565"  # "value"
        "04"  # headers: 2
        "06"  # first header, key: 3 bytes
        "c3a931"  # "é1"
        "04"  # its value: 2 bytes
        "0001"
        "08"  # second header, key: 4 bytes
        "6e756c6c"  # "null"
        "01"  # no value
    )
    assert written_by_hand[0] == 2 * (len(written_by_hand) - 1)
    record = Record(51, NOW + 100, b"key", b"value", (("é1", b"\x00\x01"), ("null", None)))
    assert encode_records([record], 50, NOW) == written_by_hand
    batch = plain.batch((written_by_hand,), base_offset=50, last_offset_delta=1)
    assert list(iterate_records(batch)) == [record]


@given(record_lists(), st.sampled_from(Codec))
def test_what_is_built_equals_the_plain_encoder_and_is_read_back(records: list[Record], codec: Codec) -> None:
    batch = build_batch(records, codec=codec)
    base = records[0].timestamp_ms
    assert batch == plain.batch(
        payload=compress(codec, b"".join(plainly(records, base))),
        attributes=codec,
        base_timestamp=base,
        max_timestamp=max(record.timestamp_ms for record in records),
        record_count=len(records),
    )
    check(batch)
    assert list(iterate_records(batch)) == records
    assert list(iterate_records(memoryview(bytearray(batch)))) == records


@pytest.mark.parametrize("count", [1, 64, 65, 8192, 8193, 8200])
def test_many_records_whose_numbers_outgrow_one_and_two_bytes(count: int) -> None:
    """Offsets, timestamps and sizes pass 63 | 64 and 8191 | 8192, where zigzag varints grow; every other has a key."""
    records = [Record(n, NOW + n, bytes(n % 70) if n % 2 else None, bytes(n % 70)) for n in range(count)]
    batch = build_batch(records)
    assert batch[HEADER_SIZE:] == b"".join(plainly(records, NOW))
    check(batch)
    assert list(iterate_records(batch)) == records


@given(record_lists(), st.integers(0, 1 << 40), st.data())
def test_runs_encoded_one_by_one_join_to_the_whole(records: list[Record], base: int, data: st.DataObject) -> None:
    """Cut anywhere, at any base offset, with gaps between offsets or without, long records beside short ones."""
    offset = base
    moved: list[Record] = []
    for record in records:
        offset += data.draw(st.sampled_from([0, 0, 0, 1, 60, 8190, 100_000]))
        moved.append(record._replace(offset=offset))
        offset += 1
    ends = sorted({*data.draw(st.lists(st.integers(1, len(moved)), max_size=5)), len(moved)})
    base_timestamp = data.draw(timestamps)
    runs = [
        encode_records(moved[start:end], base, base_timestamp) for start, end in zip([0, *ends[:-1]], ends, strict=True)
    ]
    shifted = [record._replace(offset=record.offset - base) for record in moved]
    assert b"".join(runs) == b"".join(plainly(shifted, base_timestamp))
    assert b"".join(runs) == encode_records(moved, base, base_timestamp)


@pytest.mark.parametrize("run_length", [1, 7, 63, 64, 65, 8191, 8192, 8193])
@pytest.mark.parametrize("base", [0, 1_000_000])
def test_runs_of_a_long_batch_join_where_offsets_outgrow_one_and_two_bytes(run_length: int, base: int) -> None:
    """8,300 plain records, the quick way, and beyond offset delta 8191 the other; tuples instead of records."""
    records = [Record(n, NOW + n // 100, None if n % 3 else b"key", bytes(n % 70)) for n in range(8300)]
    tuples = [(base + each.offset, each.timestamp_ms, each.key, each.value, each.headers) for each in records]
    runs = [encode_records(tuples[start : start + run_length], base, NOW) for start in range(0, 8300, run_length)]
    assert b"".join(runs) == b"".join(plainly(records, NOW))


def test_a_record_before_the_base_offset_is_our_mistake() -> None:
    with pytest.raises(AssertionError, match="rise from the base offset"):
        encode_records([Record(4, NOW, None, b"v")], 5, NOW)


def test_a_producers_fields_and_flags_stand_in_the_header() -> None:
    batch = build_batch(
        [Record(7, NOW, b"k", b"v"), Record(8, NOW - 5, b"k", None)],
        base_offset=7,
        leader_epoch=3,
        producer_id=11,
        producer_epoch=12,
        base_sequence=13,
        is_transactional=True,
        is_control=True,
    )
    header = read_header(batch)
    assert (header.base_offset, header.last_offset, header.partition_leader_epoch) == (7, 8, 3)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (11, 12, 13)
    assert (header.base_timestamp, header.max_timestamp) == (NOW, NOW)
    assert header.is_transactional
    assert header.is_control
    assert crc_matches(batch)


def test_compaction_may_leave_gaps_in_the_offsets() -> None:
    records = [Record(105, NOW, b"k", b"v"), Record(200, NOW, b"l", b"w")]
    batch = build_batch(records, base_offset=100)
    assert (read_header(batch).base_offset, read_header(batch).last_offset) == (100, 200)
    assert list(iterate_records(batch)) == records


def test_a_batch_that_compaction_emptied_has_no_records() -> None:
    assert list(iterate_records(plain.batch((), base_offset=9, last_offset_delta=4))) == []
    assert list(iterate_records(plain.batch((), attributes=Codec.ZSTD, last_offset_delta=4))) == []


def test_log_append_time_stands_for_the_time_of_each_record() -> None:
    batch = plain.batch([plain.record(0), plain.record(1, timestamp_delta=9)], attributes=8, max_timestamp=NOW + 50)
    assert [record.timestamp_ms for record in iterate_records(batch)] == [NOW + 50, NOW + 50]


def test_records_without_timestamps() -> None:
    """A timestamp of -1 means none; Java writes it as the base and the maximum too."""
    batch = build_batch([Record(0, -1, None, b"v")])
    check(batch)
    assert next(iterate_records(batch)).timestamp_ms == -1


def test_a_header_key_that_is_not_utf8_is_read_as_java_reads_it() -> None:
    batch = plain.batch([plain.record(headers=[(b"a\xff", b"")])])
    check(batch)
    assert next(iterate_records(batch)).headers == (("a\N{REPLACEMENT CHARACTER}", b""),)


# -------------------------------------------------------------------------------------------------- full validation

LONG = bytes(300)  # lengths of two bytes


@pytest.mark.parametrize(
    "records",
    [
        pytest.param([plain.record()], id="one"),
        pytest.param([plain.record(n, LONG) for n in range(200)], id="200 long ones"),
        pytest.param([plain.record(value=None, key=b"k")], id="no value"),
        pytest.param([plain.record(value=b"", key=b"")], id="empty key and value"),
        pytest.param([plain.record(key=LONG, headers=[(LONG, LONG)])], id="long key and header"),
        pytest.param([plain.record(headers=[(b"", None)] * 100)], id="100 headers"),
        pytest.param([plain.record(timestamp_delta=-NOW)], id="before all others"),
        pytest.param([plain.record(timestamp_delta=-NOW - 5)], id="before 1970"),
        pytest.param([plain.record(timestamp_delta=1)], id="later than max_timestamp"),
    ],
)
@pytest.mark.parametrize("codec", Codec)
def test_good_records_pass(codec: Codec, records: list[bytes]) -> None:
    payload = compress(codec, b"".join(records))
    check(plain.batch(payload=payload, attributes=codec, record_count=len(records)))


@pytest.mark.parametrize(
    "records",
    [
        pytest.param([plain.record(1)], id="offset delta 1 first"),
        pytest.param([plain.record(-1)], id="negative offset delta"),
        pytest.param([plain.record(0), plain.record(0)], id="the same offset twice"),
        pytest.param([plain.record(0), plain.record(2)], id="an offset left out"),
        pytest.param([plain.record(1), plain.record(0)], id="offsets going back"),
        pytest.param([plain.record(0), plain.record(2**31 - 1)], id="the largest offset delta"),
        pytest.param([plain.record(timestamp_delta=2**63 - 1)], id="timestamp beyond 64 bits"),
        pytest.param([plain.record(length=3)], id="shorter than it says"),
        pytest.param([plain.record(length=6)], id="one byte shorter than it says"),
        pytest.param([plain.record(length=8)], id="longer than it says"),
        pytest.param([plain.record(length=10**9)], id="a length beyond the end"),
        pytest.param([plain.record(length=-1)], id="a negative length"),
        pytest.param([plain.record(length=-8)], id="a negative length of the right size"),
        pytest.param([plain.record(length=2**31 - 1)], id="the largest length"),
        pytest.param([plain.record(0), plain.record(1, length=1000)], id="the last longer than the batch"),
        pytest.param([plain.record(0, length=20), plain.record(1, LONG)], id="reaching into the next"),
        pytest.param([plain.record(header_count=1)], id="a header that is not there"),
        pytest.param([plain.record(header_count=-1)], id="a negative header count"),
        pytest.param([plain.record(header_count=2**31 - 1)], id="a huge header count"),
        pytest.param([plain.record(headers=[(None, b"v")])], id="a header without a key"),
        pytest.param([plain.record(headers=[(b"k", b"v")], header_count=0)], id="a header not counted"),
        pytest.param([plain.record(), b"\x00"], id="a byte that is no record"),
    ],
)
@pytest.mark.parametrize("codec", Codec)
def test_records_that_contradict_themselves_or_the_header_are_refused(codec: Codec, records: list[bytes]) -> None:
    payload = compress(codec, b"".join(records))
    assert (
        refusal(plain.batch(payload=payload, attributes=codec, record_count=len(records))) is ErrorCode.INVALID_RECORD
    )


BODY = b"\x00\x00\x00"  # attributes, timestamp delta, offset delta


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(BODY + plain.zigzag(-2) + b"\x01\x00", id="key length -2"),
        pytest.param(BODY + plain.zigzag(3) + b"\x01\x00", id="key beyond the record"),
        pytest.param(BODY + plain.zigzag(2**31 - 1) + b"\x01\x00", id="the largest key length"),
        pytest.param(BODY + b"\x01" + plain.zigzag(-2) + b"\x00", id="value length -2"),
        pytest.param(BODY + b"\x01" + plain.zigzag(-(2**31)) + b"\x00", id="the most negative value length"),
        pytest.param(BODY + b"\x01" + plain.zigzag(2) + b"\x00", id="value beyond the record"),
        pytest.param(BODY + b"\x01" + plain.zigzag(-3) + b"vv\x00", id="a negative value length of the right size"),
        pytest.param(BODY + b"\x01" + plain.zigzag(2**31 - 1) + b"\x00", id="the largest value length"),
        pytest.param(BODY + b"\x01\x01\x02" + plain.zigzag(-2), id="header key length -2"),
        pytest.param(BODY + b"\x01\x01\x02\x02k" + plain.zigzag(5), id="header value beyond the record"),
        pytest.param(BODY + b"\x01\x01", id="no header count"),
        pytest.param(b"\x00\x00", id="no offset delta"),
        pytest.param(b"\x00" + b"\xff" * 9 + b"\x02" + b"\x00\x01\x01\x00", id="timestamp delta of 65 bits"),
        pytest.param(b"\x00" + b"\x80" * 10 + b"\x00" + b"\x00\x01\x01\x00", id="timestamp delta of 11 bytes"),
        pytest.param(b"\x00\x00" + b"\xff\xff\xff\xff\x1f" + b"\x01\x01\x00", id="offset delta of 33 bits"),
        pytest.param(b"\x00\x00" + b"\x80\x80\x80\x80\x80\x00" + b"\x01\x01\x00", id="offset delta of 6 bytes"),
        pytest.param(BODY + b"\x01\x80", id="a varint that is cut"),
    ],
)
@pytest.mark.parametrize("position", ["last", "followed by another record"])
def test_lengths_that_cannot_be_are_refused(body: bytes, position: str) -> None:
    """Also when bytes of a next record follow, into which a wrong length would reach. Readers refuse them as well."""
    records = [plain.zigzag(len(body)) + body] + [plain.record(1, LONG)] * (position != "last")
    batch = plain.batch(payload=b"".join(records), record_count=len(records))
    assert refusal(batch) is ErrorCode.INVALID_RECORD
    with pytest.raises(KafkaError) as caught:
        list(iterate_records(batch))
    assert caught.value.code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("count", [1, 2, 4, 5])
def test_another_number_of_records_than_announced_is_refused(codec: Codec, count: int) -> None:
    payload = compress(codec, b"".join(plain.record(n, LONG) for n in range(3)))
    batch = plain.batch(payload=payload, attributes=codec, record_count=count)
    assert refusal(batch) is ErrorCode.INVALID_RECORD
    with pytest.raises(KafkaError):
        list(iterate_records(batch))


@pytest.mark.parametrize(("base", "delta"), [(-1, -(2**63)), (-(2**63), -1), (1, 2**63 - 1), (2**63 - 1, 1)])
def test_a_timestamp_of_more_than_64_bits_is_refused(base: int, delta: int) -> None:
    """The next one to it is none: the bounds are exact."""
    batch = plain.batch([plain.record(timestamp_delta=delta)], base_timestamp=base)
    assert refusal(batch) is ErrorCode.INVALID_RECORD
    with pytest.raises(KafkaError):
        list(iterate_records(batch))
    inside = delta + 1 if delta < 0 else delta - 1
    check(plain.batch([plain.record(timestamp_delta=inside)], base_timestamp=base))


def test_headers_are_bounded_in_number() -> None:
    """65,536 empty ones, which are 131 kB, are read; one more is refused, as they take far more memory than bytes."""
    most = plain.batch([plain.record(headers=[(b"", b"")] * HEADERS_MAX)])
    check(most)
    assert len(next(iterate_records(most)).headers) == HEADERS_MAX
    more = plain.batch([plain.record(headers=[(b"", b"")] * (HEADERS_MAX + 1))])
    assert refusal(more) is ErrorCode.INVALID_RECORD
    with pytest.raises(KafkaError):
        list(iterate_records(more))


@pytest.mark.parametrize(
    ("batch", "code"),
    [
        pytest.param(plain.batch([plain.record(0), plain.record(0)]), ErrorCode.INVALID_RECORD, id="an offset twice"),
        pytest.param(plain.batch([plain.record(1), plain.record(0)]), ErrorCode.INVALID_RECORD, id="offsets go back"),
        pytest.param(plain.batch([plain.record(-1)]), ErrorCode.INVALID_RECORD, id="before the base offset"),
        pytest.param(plain.batch([plain.record(1)]), ErrorCode.INVALID_RECORD, id="after the last offset"),
        pytest.param(plain.batch(()), ErrorCode.NONE, id="no records"),
        pytest.param(plain.batch((), record_count=-1), ErrorCode.INVALID_RECORD, id="a negative count"),
        pytest.param(plain.batch(attributes=5), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, id="unknown codec"),
        pytest.param(plain.batch() + b"\x00", ErrorCode.CORRUPT_MESSAGE, id="a byte too many"),
        pytest.param(plain.batch()[:-1], ErrorCode.CORRUPT_MESSAGE, id="a byte too few"),
        pytest.param(plain.batch()[:60], ErrorCode.CORRUPT_MESSAGE, id="a header that is cut"),
    ],
)
def test_a_reader_takes_no_nonsense(batch: bytes, code: ErrorCode) -> None:
    """What a log or a broker may hand to a reader, whoever let it in."""
    found = ErrorCode.NONE
    try:
        list(iterate_records(batch))
    except KafkaError as error:
        found = error.code
    assert found is code


def test_a_record_that_is_cut_is_not_read_in_part() -> None:
    """Its length, and that of its last value, reach beyond the batch alike."""
    whole = plain.record(headers=[(b"h", b"value")])
    with pytest.raises(KafkaError):
        next(iterate_records(plain.batch([whole[:-2]])))


@pytest.mark.parametrize("codec", Codec)
@given(records=record_lists())
def test_a_check_says_what_it_found(codec: Codec, records: list[Record]) -> None:
    """Also where the header says something else of the largest timestamp, which does not count."""
    encoded = b"".join(plainly(records, NOW))
    batch = plain.batch(
        payload=compress(codec, encoded), attributes=codec, record_count=len(records), base_timestamp=NOW
    )
    times = [record.timestamp_ms for record in records]
    found = check(batch)
    assert found == CheckedRecords(encoded, min(times), max(times), [record.key for record in records].count(None))
    assert unpack_records(batch, read_header(batch)) == encoded


def test_records_without_timestamps_have_minus_one_for_the_largest() -> None:
    """As Kafka: also where all are below it, so that the header of such a batch says -1."""

    def bounds(*timestamps_ms: int) -> tuple[int, int]:
        records = [plain.record(offset, timestamp_delta=1 + time) for offset, time in enumerate(timestamps_ms)]
        found = check(plain.batch(records, base_timestamp=-1, max_timestamp=5))
        return found.min_timestamp_ms, found.max_timestamp_ms

    assert bounds(-1, -1) == (-1, -1)
    assert bounds(-7, -1) == (-7, -1)
    assert bounds(-9) == (-9, -1)
    assert bounds(-1, 0) == (-1, 0)


def test_lz4_blocks_that_java_cannot_read_are_refused_and_can_be_read() -> None:
    """KIP-57: Java reads independent blocks only; the codec library links them unless told otherwise."""
    batch = plain.batch(payload=bytes(cramjam.lz4.compress(plain.record())), attributes=Codec.LZ4, record_count=1)
    assert refusal(batch) is ErrorCode.CORRUPT_MESSAGE
    assert [record.value for record in iterate_records(batch)] == [b"v"]


# -------------------------------------------------------------------------------------------------------------- poison


def outcomes(batch: bytes) -> None:
    """Reading and checking end in records or in a KafkaError, and whatever passes the check can be read."""
    try:
        header = check_batch(memoryview(batch))
        check_records(memoryview(batch), header, size_bytes_max=100_000)
    except KafkaError:
        passed = False
    else:
        passed = True
    try:
        count = sum(1 for _ in iterate_records(batch, size_bytes_max=100_000))
    except KafkaError:
        assert not passed
    else:
        assert not passed or count == read_header(batch).record_count


@pytest.mark.parametrize("codec", Codec)
@given(records=record_lists(), data=st.data())
def test_poison_with_a_right_checksum(codec: Codec, records: list[Record], data: st.DataObject) -> None:
    """Bytes anywhere are changed, left out or put in, then length and checksum are made right: nothing escapes."""
    batch = bytearray(build_batch(records, codec=codec))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(17, len(batch) - 1))
        match data.draw(st.sampled_from(["change", "remove", "insert"])):
            case "change":
                batch[at] ^= data.draw(st.integers(1, 255))
            case "remove" if len(batch) > HEADER_SIZE + 4:
                del batch[at]
            case _:
                batch[at:at] = data.draw(st.binary(min_size=1, max_size=6))
    outcomes(plain.resealed(bytes(batch)))


@given(st.binary(max_size=120), st.integers(0, 8), st.integers(0, 40))
def test_random_bytes_as_records(payload: bytes, attributes: int, record_count: int) -> None:
    outcomes(plain.batch(payload=payload, attributes=attributes, record_count=record_count))


@pytest.mark.parametrize("codec", Codec)
def test_every_prefix_of_a_batch(codec: Codec) -> None:
    """As it was cut, and with length and checksum made right for what is left."""
    batch = build_batch([Record(n, NOW, b"key", b"value" * 5, (("h", b"v"),)) for n in range(3)], codec=codec)
    for size in range(len(batch)):
        with pytest.raises(KafkaError):
            list(iterate_records(batch[:size]))
        if size >= HEADER_SIZE:
            resealed = plain.resealed(batch[:size])
            with pytest.raises(KafkaError):
                check(resealed)
            outcomes(resealed)


@pytest.mark.parametrize("codec", COMPRESSING)
def test_records_that_do_not_decompress_are_corrupt(codec: Codec) -> None:
    batch = plain.batch(payload=b"this was never compressed", attributes=codec)
    assert refusal(batch) is ErrorCode.CORRUPT_MESSAGE
    with pytest.raises(KafkaError) as caught:
        list(iterate_records(batch))
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("codec", COMPRESSING)
def test_records_that_expand_beyond_the_bound_are_too_large(codec: Codec) -> None:
    batch = plain.batch(payload=compress(codec, bytes(1000)), attributes=codec)
    header = check_batch(memoryview(batch))
    with pytest.raises(KafkaError) as caught:
        check_records(memoryview(batch), header, size_bytes_max=999)
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
    with pytest.raises(KafkaError):
        list(iterate_records(batch, size_bytes_max=999))


def test_huge_counts_and_lengths_allocate_nothing() -> None:
    """2**31 - 1 records, headers and bytes are announced in a small batch: less than 256 KiB is allocated."""
    huge = 2**31 - 1
    batches = [
        plain.batch(payload=compress(Codec.ZSTD, bytes(100)), attributes=Codec.ZSTD, record_count=huge),
        plain.batch([plain.record(header_count=huge)]),
        plain.batch([plain.record(length=huge)]),
        plain.batch([plain.zigzag(20) + BODY + plain.zigzag(huge) + bytes(20)]),
    ]
    tracemalloc.start()
    try:
        for batch in batches:
            assert refusal(batch) is ErrorCode.INVALID_RECORD
            with pytest.raises(KafkaError):
                list(iterate_records(batch))
        assert tracemalloc.get_traced_memory()[1] < 256 * 1024
    finally:
        tracemalloc.stop()
