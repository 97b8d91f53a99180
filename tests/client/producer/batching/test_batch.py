"""A producer's batch makes the bytes of `build_batch` and of Java, never takes more than it said, and splits in halves.

By properties over any records, cut into runs anywhere; by batches of the Java client; and by examples of each state.
"""

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.client.producer.batching.batch import (
    BATCH_OVERHEAD_BYTES,
    COLUMN_RECORDS,
    PUT_OFF_BYTES,
    RECORD_OVERHEAD_BYTES,
    RUN_BYTES,
    RUN_RECORDS,
    SHORT_RECORD_BYTES,
    SHORT_RECORD_OVERHEAD_BYTES,
    TIMESTAMP_BYTES,
    ProducerBatch,
    estimated_size,
)
from odradek.protocol.batches.batch import HEADER_SIZE, check_batch, patched_prefix, read_header
from odradek.protocol.batches.compression import LEVELS, Codec, decompress
from odradek.protocol.batches.record_encoding import build_batch, encode_records
from odradek.protocol.batches.records import Record, check_records, iterate_records
from tests.client.batches import NOW, append, closed, filled, new_batch, records_of, sealed
from tests.protocol.golden import files

COMPRESSING = [codec for codec in Codec if codec is not Codec.NONE]
optional_bytes = st.none() | st.binary(max_size=40) | st.sampled_from([63, 64, 300, 8191, 8192]).map(bytes)
headers = st.lists(st.tuples(st.text(max_size=10), st.none() | st.binary(max_size=10)), max_size=3).map(tuple)
timestamps = st.integers(-100, 1 << 62) | st.integers(NOW - 100, NOW + 10_000)


@st.composite
def record_lists(draw: st.DrawFn, min_size: int = 1) -> list[Record]:
    drawn = draw(
        st.lists(st.tuples(timestamps, optional_bytes, optional_bytes, headers), min_size=min_size, max_size=12)
    )
    return [Record(offset, *rest) for offset, rest in enumerate(drawn)]


run_ends = st.lists(st.integers(1, 12), max_size=4)


# --------------------------------------------------------------------------------------------------------- its bytes
@given(record_lists(), run_ends, st.sampled_from(Codec), st.data())
def test_what_is_sent_is_the_batch_of_its_records(
    records: list[Record], encode_after: list[int], codec: Codec, data: st.DataObject
) -> None:
    """With every codec and level, numbered before it is sealed or after; and a broker takes it."""
    level = data.draw(st.none() | st.integers(1, 4)) if codec in LEVELS else None
    numbers = data.draw(st.tuples(st.integers(0, 1 << 62), st.integers(0, 1 << 14), st.integers(0, (1 << 31) - 1)))
    batch = closed(records, encode_after)
    if is_late := data.draw(st.booleans()):
        assert sealed(batch, codec, level) == build_batch(records, codec=codec, level=level)
    batch.renumber(*numbers)
    sent = batch.encoded if is_late else sealed(batch, codec, level)
    assert sent is not None
    assert sent == build_batch(
        records,
        codec=codec,
        level=level,
        producer_id=numbers[0],
        producer_epoch=numbers[1],
        base_sequence=numbers[2],
    )
    assert batch.sent_bytes == len(sent)
    assert not batch.compressed(Codec.NONE, None), "it holds its records once"
    check_records(sent, check_batch(memoryview(sent)))


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("encode_after", [(), (1,), (5, 20), range(40)], ids=["one run", "two", "three", "forty"])
def test_java_sends_the_same_bytes(codec: Codec, encode_after: range | tuple[int, ...]) -> None:
    """The whole batch where nothing is compressed; else what the codecs were given, and all that says it."""
    golden = files.read(files.BATCHES / f"java-{codec.name.lower()}.hex").data
    header = read_header(golden)
    batch = closed(files.RECORDS, encode_after)
    batch.renumber(header.producer_id, header.producer_epoch, header.base_sequence)
    ours = sealed(batch, codec)
    if codec is Codec.NONE:
        assert ours == patched_prefix(header, 0, -1) + golden[16:]
    payload = decompress(codec, golden[HEADER_SIZE:], 1 << 20)
    assert decompress(codec, ours[HEADER_SIZE:], 1 << 20) == payload
    assert batch.size == HEADER_SIZE + len(payload)
    sent_by_java = header._replace(base_offset=0, partition_leader_epoch=-1)
    mine = read_header(ours)
    assert mine._replace(batch_length=header.batch_length, crc=header.crc) == sent_by_java


def test_timestamps_go_up_and_down_and_may_be_missing() -> None:
    """Base is the first record's, the maximum is that of all runs."""
    records = [Record(n, at, None, b"v") for n, at in enumerate([NOW, NOW - 5, -1, NOW + 9, NOW])]
    header = read_header(sealed(closed(records, (1, 2, 4))))
    assert (header.base_timestamp, header.max_timestamp) == (NOW, NOW + 9)
    without = read_header(sealed(closed([Record(0, -1, None, b"v"), Record(1, -1, None, b"v")], (1,))))
    assert (without.base_timestamp, without.max_timestamp) == (-1, -1)


@pytest.mark.parametrize("codec", Codec)
def test_a_thread_may_compress_as_nothing_changes(codec: Codec) -> None:
    batch = closed(records_of(*[b"value " * 10] * 50), (20,))
    before = (batch.size, batch.sent_bytes, batch.count, batch.encoded)
    assert batch.compressed(codec, None) == batch.compressed(codec, None)
    assert (batch.size, batch.sent_bytes, batch.count, batch.encoded) == before


def test_it_is_not_compressed_or_sealed_while_it_takes_records() -> None:
    batch = filled(records_of(b"v"))
    with pytest.raises(AssertionError):
        batch.compressed(Codec.NONE, None)
    with pytest.raises(AssertionError):
        batch.seal((), Codec.NONE)


@pytest.mark.parametrize("codec", Codec)
def test_other_numbers_are_other_bytes_and_those_on_the_wire_stay(codec: Codec) -> None:
    records = records_of(b"a" * 50, b"b" * 50)
    batch = closed(records)
    batch.renumber(11, 2, 100)
    first = sealed(batch, codec)
    copy = bytes(bytearray(first))
    batch.renumber(11, 3, 0)
    assert first == copy
    second = batch.encoded
    assert second is not None
    assert second == build_batch(records, codec=codec, producer_id=11, producer_epoch=3, base_sequence=0)
    assert second[HEADER_SIZE:] == first[HEADER_SIZE:]
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (11, 3, 0)


# ----------------------------------------------------------------------------------------------------------- its size
@given(
    key_size=st.none() | st.sampled_from([0, 63, 64, 8191, 8192]),
    value_size=st.none() | st.sampled_from([0, 63, 64, 8191, 8192, (1 << 20) - 9000]),
    offset_delta=st.sampled_from([0, 63, 64, 8191, 8192, (1 << 20) - 1]),
    timestamp_delta=st.integers(-(1 << 41), (1 << 41) - 1) | st.sampled_from([-(1 << 41), (1 << 41) - 1]),
    headers=headers | st.just((("h", b""),) * 70) | st.just((("é" * 100, bytes(8200)),)),
)
def test_a_record_never_takes_more_than_estimated(
    key_size: int | None,
    value_size: int | None,
    offset_delta: int,
    timestamp_delta: int,
    headers: tuple[tuple[str, bytes | None], ...],
) -> None:
    """Up to a mebibyte altogether, timestamps up to 69 years apart; sizes at which varints grow."""
    key = None if key_size is None else bytes(key_size)
    value = None if value_size is None else bytes(value_size)
    estimate = estimated_size(key, value, headers)
    encoded = encode_records([(offset_delta, NOW + timestamp_delta, key, value, headers)], 0, NOW)
    assert len(encoded) <= estimate
    assert estimate - len(encoded) <= RECORD_OVERHEAD_BYTES - 7 + 9 * len(headers)


def test_the_bound_is_reached() -> None:
    """With the largest numbers for which it is meant, so none of its bytes is too many."""
    key = bytes(8192)
    value = bytes((1 << 20) - len(key))
    record = ((1 << 20) - 1, NOW + (1 << 41) - 1, key, value, ())
    assert len(encode_records([record], 0, NOW)) == estimated_size(key, value, ())


@pytest.mark.parametrize("key_size", [None, 0, 63, 64, 4000])
@pytest.mark.parametrize("age_ms", [0, 64, 8191, (1 << 20) - 1])
def test_short_records_of_a_young_batch_have_a_lower_bound(key_size: int | None, age_ms: int) -> None:
    """Which is reached, too."""
    key = None if key_size is None else bytes(key_size)
    overheads: list[int] = []
    for value_size in (0, 63, 64, SHORT_RECORD_BYTES - (key_size or 0)):
        record = ((1 << 13) - 1, NOW + age_ms, key, bytes(value_size), ())
        overheads.append(len(encode_records([record], 0, NOW)) - (key_size or 0) - value_size)
    assert max(overheads) <= SHORT_RECORD_OVERHEAD_BYTES
    if key_size == 4000 and age_ms > 8191:
        assert max(overheads) == SHORT_RECORD_OVERHEAD_BYTES


runs = st.lists(
    st.tuples(
        st.sampled_from([1, COLUMN_RECORDS - 1, COLUMN_RECORDS, 70]),
        st.booleans(),
        st.sampled_from([NOW, NOW + 1, NOW - 1, NOW + 100]),
        st.sampled_from([0, 10, 100, 8192]),
        st.sampled_from(["append", "extend", "extend", "extend with a timestamp each"]),
    ),
    min_size=1,
    max_size=5,
)


@given(runs)
def test_records_that_come_together_are_as_those_that_come_one_by_one(
    runs: list[tuple[int, bool, int, int, str]],
) -> None:
    """Few and many, with keys and without, after others and before, short ones and one that is long; memory follows."""
    batch = new_batch()
    records: list[Record] = []
    for count, has_keys, timestamp_ms, size, way in runs:
        values = [bytes(size + n % 3) for n in range(count)]
        keys = [b"%d" % n for n in range(count)] if has_keys else None
        times = [timestamp_ms + (n if "each" in way else 0) for n in range(count)]
        added = [
            Record(len(records) + n, times[n], None if keys is None else keys[n], value)
            for n, value in enumerate(values)
        ]
        records += added
        if way == "append":
            for record in added:
                append(batch, record)
        else:
            estimates = sum(estimated_size(each.key, each.value, ()) for each in added)
            memory_bytes = batch.memory_bytes + estimates
            shrunk = batch.extend(times if "each" in way else timestamp_ms, keys, values, estimates)
            assert batch.memory_bytes == memory_bytes - shrunk
        assert batch.count == len(records)
    memory_bytes = batch.memory_bytes
    assert batch.close() == memory_bytes - batch.memory_bytes
    assert batch.size == batch.sent_bytes
    assert batch.timestamps.tolist() == [record.timestamp_ms for record in records]
    assert sealed(batch) == build_batch(records)


def test_many_of_one_timestamp_wait_no_more_and_few_do() -> None:
    batch = new_batch()
    few, many = [b"v"] * (COLUMN_RECORDS - 1), [b"v"] * COLUMN_RECORDS
    batch.extend(NOW, None, few, 22 * len(few))
    assert len(batch.pending) == len(few)
    batch.extend([NOW] * len(many), None, many, 22 * len(many))
    assert len(batch.pending) == len(few) + len(many), "they may be of any time"
    batch.extend(NOW, None, many, 22 * len(many))
    assert batch.pending == []
    assert batch.size == len(build_batch(records_of(*[b"v"] * batch.count, apart_ms=0)))


@given(record_lists(), run_ends)
def test_size_is_a_bound_first_and_exact_in_the_end(records: list[Record], encode_after: list[int]) -> None:
    """And memory follows it: what encoding gives back, or takes, is what the account changes by."""
    batch = new_batch()
    assert batch.memory_bytes == BATCH_OVERHEAD_BYTES
    assert batch.size == HEADER_SIZE
    for record in records:
        before = (batch.size, batch.memory_bytes)
        append(batch, record)
        size = estimated_size(record.key, record.value, record.headers)
        assert (batch.size, batch.memory_bytes) == (before[0] + size, before[1] + size)
        if batch.count in encode_after:
            memory_bytes = batch.memory_bytes
            assert batch.encode_pending() == memory_bytes - batch.memory_bytes
            assert batch.size == len(build_batch(records[: batch.count]))
            assert batch.encode_pending() == 0
    memory_bytes = batch.memory_bytes
    assert batch.close() == memory_bytes - batch.memory_bytes
    assert batch.close() == 0
    assert batch.size == batch.sent_bytes == len(build_batch(records))
    payload_bytes = batch.size - HEADER_SIZE
    assert batch.memory_bytes == BATCH_OVERHEAD_BYTES + payload_bytes + TIMESTAMP_BYTES * len(records)
    sealed(batch, Codec.ZSTD)
    batch.drop_bytes()
    assert batch.memory_bytes == BATCH_OVERHEAD_BYTES + payload_bytes + TIMESTAMP_BYTES * len(records)


def test_numbers_beyond_the_estimate_are_counted_when_they_are_encoded() -> None:
    """A timestamp of another age takes ten bytes, and a batch that is 14 bytes short of its estimate grows."""
    batch = filled([Record(0, 0, None, b"")])
    batch.encode_pending()
    append(batch, Record(1, 1 << 62, bytes(1 << 14), bytes(1 << 21)))
    before = batch.memory_bytes
    assert batch.encode_pending() < -TIMESTAMP_BYTES
    assert batch.memory_bytes > before


def test_runs_are_of_eight_kilobytes_within_its_capacity() -> None:
    """`encode_at` is the size at which what waits has to be encoded."""
    batch = new_batch(capacity=20_000)
    assert batch.encode_at == RUN_BYTES
    append(batch, Record(0, NOW, None, bytes(5000)))
    batch.encode_pending()
    assert batch.encode_at == batch.size + RUN_BYTES
    append(batch, Record(1, NOW, None, bytes(9000)))
    batch.encode_pending()
    assert batch.encode_at == batch.capacity
    assert new_batch(capacity=1000).encode_at == 1000


def test_a_run_of_few_records_is_put_off_and_one_of_many_is_not() -> None:
    batch = new_batch(capacity=1 << 20)
    for number in range(RUN_RECORDS):
        assert batch.put_off_encoding()
        assert batch.encode_at == batch.size + PUT_OFF_BYTES
        append(batch, Record(number, NOW, None, bytes(1000)))
    before = batch.encode_at
    assert not batch.put_off_encoding()
    assert batch.encode_at == before
    batch.encode_pending()
    assert batch.put_off_encoding()
    small = new_batch(capacity=1000)
    assert small.put_off_encoding()
    assert small.encode_at == 1000


def test_it_is_full_at_its_capacity_or_when_it_is_closed() -> None:
    batch = new_batch(capacity=HEADER_SIZE + 2 * estimated_size(None, b"v", ()))
    append(batch, Record(0, NOW, None, b"v"))
    assert not batch.is_full
    append(batch, Record(1, NOW, None, b"v"))
    assert batch.is_full
    batch.encode_pending()
    assert not batch.is_full, "the records were smaller than estimated"
    batch.close()
    assert batch.is_full


def test_closing_tells_the_result_how_many_records_there_are_and_when() -> None:
    batch = filled(records_of(b"a", b"b", b"c"), (2,))
    assert batch.result.count == 0
    batch.close()
    assert batch.result.count == batch.count == 3
    assert batch.result.timestamps == array("q", [NOW, NOW + 1, NOW + 2])


def test_what_is_dropped_is_gone() -> None:
    batch = closed(records_of(b"a", b"b"))
    sealed(batch)
    batch.drop_bytes()
    assert batch.encoded is None
    assert not batch.compressed(Codec.NONE, None)
    unsealed = closed(records_of(b"a", b"b"))
    unsealed.drop_bytes()
    assert not unsealed.compressed(Codec.NONE, None)


# ---------------------------------------------------------------------------------------------------------- splitting
def contents(batch: ProducerBatch, codec: Codec = Codec.NONE) -> list[tuple[int, bytes | None, bytes | None, object]]:
    """The records of a closed batch without their offsets, read from what would be sent."""
    return [record[1:] for record in iterate_records(batch.encoded or sealed(batch, codec))]


@given(record_lists(min_size=2), run_ends, st.sampled_from(Codec), st.booleans())
def test_halves_hold_the_same_records_in_order_and_each_is_smaller(
    records: list[Record], encode_after: list[int], codec: Codec, is_sealed: bool
) -> None:
    batch = closed(records, encode_after)
    if is_sealed:
        sealed(batch, codec)
    whole_bytes, result = batch.size, batch.result
    parts = batch.split()
    assert [record for part in parts for record in contents(part, codec)] == [record[1:] for record in records]
    assert [part.order for part in parts] == [(7, 0), (7, 1)]
    begin = 0
    for part in parts:
        assert part.is_closed
        assert part.is_part
        assert part.count == part.result.count == len(part.timestamps) >= 1
        assert part.size < whole_bytes
        assert (part.created_ms, part.deadline_ms) == (batch.created_ms, batch.deadline_ms)
        assert (part.attempts, part.attempt_leader, part.retry_at_ms) == (0, None, batch.created_ms)
        assert not part.has_sequence
        assert part.encoded is None or not is_sealed or part.codec is codec
        assert part.result.timestamps == array("q", [each.timestamp_ms for each in records[begin : begin + part.count]])
        for index in range(part.count):
            assert result.locate(begin + index) == (part.result, index)
        begin += part.count
    sizes = [len(encode_records([record], 0, records[0].timestamp_ms)) for record in records]
    first, second = sum(sizes[: parts[0].count]), sum(sizes[parts[0].count :])
    at_cut = sizes[parts[0].count - 1 : parts[0].count + 1]
    assert abs(first - second) <= max(at_cut), "no record moved over the cut would make them more equal"


@pytest.mark.parametrize("codec", Codec)
def test_halves_are_smaller_compressed_too_down_to_single_records(codec: Codec) -> None:
    """Each part of each part, for 600 records that look like one another."""
    records = [Record(n, NOW + n, b"key %d" % (n % 7), b'{"order": %d, "state": "new"}' % n) for n in range(600)]
    batch = closed(records, (200, 400))
    sealed(batch, codec)
    batches, seen = [batch], 0
    while batches:
        whole = batches.pop(0)
        if whole.count == 1:
            assert contents(whole, codec) == [records[seen][1:]]
            seen += 1
            continue
        parts = whole.split()
        for part in parts:
            sealed(part, codec)
            assert part.sent_bytes < whole.sent_bytes
            assert part.order[:-1] == whole.order
        batches = parts + batches
    assert seen == len(records)


@pytest.mark.parametrize(
    ("sizes", "cut"),
    [
        ([1, 1], 1),
        ([1000, 1], 1),
        ([1, 1000], 1),
        ([100, 100, 100, 100], 2),
        ([1000, 10, 10, 10], 1),
        ([10, 10, 10, 1000], 3),
        ([0] * 1000 + [1000] * 10, 1001),
    ],
)
def test_the_cut_is_where_the_encoded_halves_are_most_equal(sizes: list[int], cut: int) -> None:
    """A thousand records of 7 to 9 bytes weigh less than estimated: nine large ones would not be half."""
    parts = closed(records_of(*map(bytes, sizes))).split()
    assert parts[0].count == cut


def test_a_single_record_is_not_split_nor_one_that_takes_records() -> None:
    with pytest.raises(AssertionError):
        closed(records_of(b"v")).split()
    with pytest.raises(AssertionError):
        filled(records_of(b"v", b"w")).split()


@pytest.mark.parametrize("codec", Codec)
def test_batches_beyond_what_a_broker_would_decompress_are_split_too(
    codec: Codec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own records are no bomb. The bound is lowered here, since the real one is 100 MiB."""
    monkeypatch.setattr(iterate_records, "__kwdefaults__", {"size_bytes_max": 100})
    batch = closed(records_of(bytes(100), bytes(100)))
    sealed(batch, codec)
    assert [part.count for part in batch.split()] == [1, 1]


# ---------------------------------------------------------------------------------------------------------- its state
def test_a_new_batch_is_open_young_and_unnumbered() -> None:
    batch = new_batch()
    assert (batch.topic, batch.partition, batch.key) == ("orders", 3, ("orders", 3))
    assert (batch.created_ms, batch.retry_at_ms, batch.deadline_ms) == (1000.0, 1000.0, 9000.0)
    assert not batch.is_closed
    assert not batch.is_full
    assert not batch.is_part
    assert not batch.has_sequence
    assert not batch.in_flight
    assert not batch.is_queued
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1, -1, -1)
    batch.renumber(5, 0, 0)
    assert batch.has_sequence


@pytest.mark.parametrize("codec", Codec)
def test_the_ratio_is_that_of_the_records_without_the_header(codec: Codec) -> None:
    """Until it is sealed, what is expected; parts are expected to compress as the whole did."""
    batch = closed(records_of(*[b"value " * 10] * 100))
    assert batch.compression_ratio == 1.0
    batch.expected_ratio = 0.7
    assert batch.compression_ratio == 0.7
    sent = sealed(batch, codec)
    ratio = batch.compression_ratio
    assert ratio == (len(sent) - HEADER_SIZE) / (batch.size - HEADER_SIZE)
    assert (ratio < 0.5) is (codec is not Codec.NONE)
    parts = batch.split()
    assert [part.expected_ratio for part in (*parts, *parts[0].split())] == [ratio] * 4
