"""The rules of compaction one by one, by hand: which records stay, what the batches look like then, when tombstones and
markers go, and what is refused. Random histories are in `test_compaction_histories.py`."""

import pytest

from odradek.broker.log.compaction import Cleaning, LastRecord, last_records
from odradek.broker.log.offset_map import OffsetMap
from odradek.broker.log.producers import AbortedTxn, Producers
from odradek.broker.log.uncleanable import UncleanableLog
from odradek.protocol.batches.batch import BatchHeader, crc_matches, read_header, rebuild_batch
from odradek.protocol.batches.compression import Codec
from odradek.protocol.batches.records import iterate_records
from odradek.protocol.batches.rewriting import emptied
from tests.broker.log.compacted_logs import T0, data_batch, horizon_of, marker_batch

RETENTION_MS = 100


def cleaning(
    offset_map: OffsetMap,
    producers: dict[int, LastRecord] | None = None,
    *,
    now_ms: int = T0,
    first_uncleanable_offset: int = 1000,
    delete_retention_ms: int = RETENTION_MS,
    log_start_offset: int = 0,
) -> Cleaning:
    return Cleaning(
        offset_map,
        producers or {},
        log_start_offset=log_start_offset,
        first_uncleanable_offset=first_uncleanable_offset,
        delete_retention_ms=delete_retention_ms,
        now_ms=now_ms,
    )


def map_of(latest_offset: int, **newest: int) -> OffsetMap:
    offset_map = OffsetMap(0, 1 << 12)
    for key, offset in newest.items():
        assert offset_map.put(key.encode(), offset)
    offset_map.latest_offset = latest_offset
    return offset_map


def feed(round_: Cleaning, data: bytes) -> bytes | None:
    kept = round_.feed(read_header(data), memoryview(data))
    return None if kept is None else bytes(kept)


def header_of(data: bytes | None) -> BatchHeader:
    assert data is not None
    return read_header(data)


def offsets(data: bytes | None) -> list[int]:
    return [] if data is None else [record.offset for record in iterate_records(data)]


def test_a_batch_of_which_all_stays_is_the_one_that_was_fed() -> None:
    data = memoryview(data_batch(5, (b"a", b"1"), (b"b", b"2"), codec=Codec.GZIP))
    assert cleaning(map_of(6, a=5, b=6)).feed(read_header(data), data) is data


def test_older_records_go_and_the_others_keep_all_they_had() -> None:
    data = data_batch(
        10,
        (b"a", b"old"),
        (b"b", b"2"),
        (b"a", b"new"),
        (b"c", b"older than the log knows"),
        producer=(4, 2, 2**31 - 2),
        is_transactional=True,
        codec=Codec.ZSTD,
        headers=(("trace", b"\x00\xff"),),
    )
    round_ = cleaning(map_of(20, a=12, b=11, c=19))
    kept = feed(round_, data)
    assert kept is not None
    before, after = read_header(data), read_header(kept)
    assert list(iterate_records(kept)) == list(iterate_records(data))[1:3]
    assert (after.base_offset, after.last_offset, after.last_sequence) == (10, 13, 1)
    assert (after.max_timestamp, after.record_count) == (T0 + 2, 2)
    assert (after.attributes, after.codec) == (before.attributes, Codec.ZSTD)
    assert (round_.records_read, round_.records_kept) == (4, 2)
    assert (round_.bytes_read, round_.bytes_kept) == (len(data), len(kept))


def test_what_is_behind_the_map_stays_whatever_the_map_says_of_its_key() -> None:
    data = data_batch(10, (b"a", b"1"), (b"a", b"2"), (None, b"3"), (b"a", None))
    behind = cleaning(map_of(9, a=99))
    assert offsets(feed(behind, data)) == [10, 11, 12, 13]
    assert (behind.records_read, behind.records_kept, behind.bytes_kept) == (4, 4, len(data))
    assert offsets(feed(cleaning(map_of(10, a=99)), data)) == [11, 12, 13]


def test_records_without_key_go_and_are_counted() -> None:
    round_ = cleaning(map_of(99))
    assert offsets(feed(round_, data_batch(10, (None, b"1"), (b"", b"an empty key is one"), (None, None)))) == [11]
    assert round_.keyless_records == 2


def test_with_append_time_the_batch_keeps_its_timestamp() -> None:
    data = data_batch(0, (b"a", b"1"), (b"b", b"2"), (b"c", None), append_time_ms=T0 + 500)
    kept = feed(cleaning(map_of(99, a=50), now_ms=T0 + 9_999), data)
    assert kept is not None
    assert read_header(kept).is_log_append_time
    assert read_header(kept).max_timestamp == T0 + 500
    assert [record.timestamp_ms for record in iterate_records(kept)] == [T0 + 500] * 2


def test_a_tombstone_keeps_its_timestamp_and_is_removed_at_its_delete_horizon() -> None:
    """The horizon is set once, whatever the delay is later; Kafka: a record stays while now < horizon."""
    data = data_batch(0, (b"a", None), (b"b", b"2"), timestamp_ms=T0 - 10**9)
    first = feed(cleaning(map_of(99), now_ms=T0), data)
    assert first is not None
    assert horizon_of(read_header(first)) == T0 + RETENTION_MS
    assert list(iterate_records(first)) == list(iterate_records(data))
    assert read_header(first).max_timestamp == T0 - 10**9 + 1
    assert feed(cleaning(map_of(99), now_ms=T0 + RETENTION_MS - 1, delete_retention_ms=5), first) == first
    last = feed(cleaning(map_of(99), now_ms=T0 + RETENTION_MS), first)
    assert last is not None
    assert list(iterate_records(last)) == list(iterate_records(data))[1:]
    assert horizon_of(read_header(last)) == T0 + RETENTION_MS, "the batch keeps it"


def test_a_tombstone_that_is_not_the_newest_of_its_key_goes_at_once() -> None:
    data = data_batch(0, (b"a", None), (b"b", None))
    kept = feed(cleaning(map_of(99, a=7)), data)
    assert offsets(kept) == [1]
    assert horizon_of(header_of(kept)) is not None


def test_a_batch_gets_no_horizon_while_a_tombstone_of_it_is_not_covered() -> None:
    """The next round, which covers it, removes the older values of its key: before that its time must not run."""
    data = data_batch(0, (b"a", None), (b"b", None))
    kept = feed(cleaning(map_of(0, a=0)), data)
    assert kept == data
    assert horizon_of(header_of(feed(cleaning(map_of(1, a=0, b=1)), data))) == T0 + RETENTION_MS


def test_the_longest_delete_retention_is_no_overflow() -> None:
    kept = feed(cleaning(map_of(9), delete_retention_ms=2**63 - 1), data_batch(0, (b"a", None)))
    assert horizon_of(header_of(kept)) == 2**63 - 1
    assert [record.timestamp_ms for record in iterate_records(kept or b"")] == [T0]


# --------------------------------------------------------------------------------------------------------- transactions


def test_a_commit_marker_goes_two_rounds_after_the_last_of_its_data() -> None:
    data = data_batch(0, (b"a", b"1"), producer=(4, 0, 0), is_transactional=True)
    marker = marker_batch(1, 4, 0, is_commit=True)
    with_data = cleaning(map_of(9, a=9))
    assert (feed(with_data, data), feed(with_data, marker)) == (None, marker), "there was data when the round began"
    assert (with_data.records_read, with_data.records_kept, with_data.bytes_kept) == (2, 1, len(marker))
    marked = feed(cleaning(map_of(9), now_ms=T0 + 1), marker)
    assert marked is not None
    assert horizon_of(read_header(marked)) == T0 + 1 + RETENTION_MS
    assert list(iterate_records(marked)) == list(iterate_records(marker))
    assert feed(cleaning(map_of(9), now_ms=T0 + RETENTION_MS), marked) == marked
    assert feed(cleaning(map_of(9), now_ms=T0 + 1 + RETENTION_MS), marked) is None


def test_a_marker_with_a_horizon_stays_as_long_as_there_is_data() -> None:
    """A log that Kafka compacted may have both, for Kafka sets one where a marker has no value."""
    data = data_batch(0, (b"a", b"1"), producer=(4, 0, 0), is_transactional=True)
    marked = feed(cleaning(map_of(9)), marker_batch(1, 4, 0, is_commit=True))
    assert marked is not None
    late = cleaning(map_of(9), now_ms=T0 + 10**9)
    assert (feed(late, data), feed(late, marked)) == (data, marked)


def test_aborted_data_goes_at_once_and_its_row_with_the_last_of_it() -> None:
    data = data_batch(5, (b"a", b"1"), producer=(4, 0, 0), is_transactional=True)
    marker = marker_batch(6, 4, 0, is_commit=False)
    txn = AbortedTxn(4, 5, 6, 5)
    first = cleaning(map_of(9, a=5))
    first.add_aborted([txn])
    assert (feed(first, data), feed(first, marker)) == (None, marker)
    assert first.take_aborted() == [txn]
    assert first.take_aborted() == [], "the next segment has others"
    second = cleaning(map_of(9))
    second.add_aborted([txn])
    assert horizon_of(header_of(feed(second, marker))) == T0 + RETENTION_MS
    assert second.take_aborted() == []


def test_an_emptied_batch_holds_its_marker_and_its_row() -> None:
    data = data_batch(5, (b"a", b"1"), producer=(4, 1, 70), is_transactional=True, codec=Codec.LZ4)
    marker = marker_batch(6, 4, 1, is_commit=False)
    txn = AbortedTxn(4, 5, 6, 5)
    for now_ms in (T0, T0 + 10**6, T0 + 10**9):
        round_ = cleaning(map_of(9, a=9), {4: LastRecord(5, 1)}, now_ms=now_ms)
        round_.add_aborted([txn])
        left = feed(round_, data)
        assert left is not None
        header = read_header(left)
        assert (header.record_count, header.last_sequence, header.producer_epoch) == (0, 70, 1)
        assert (feed(round_, marker), round_.take_aborted()) == (marker, [txn])
        data = left


# ------------------------------------------------------------------------------------------------------- empty batches


def test_the_last_batch_of_a_producer_leaves_its_header() -> None:
    data = data_batch(5, (b"a", b"1"), (b"a", b"2"), producer=(4, 1, 70), codec=Codec.GZIP)
    kept = feed(cleaning(map_of(9, a=9), {4: LastRecord(6, 1)}), data)
    before, after = read_header(data), header_of(kept)
    assert after == before._replace(batch_length=49, crc=after.crc, attributes=0, base_timestamp=-1, record_count=0), (
        "as DefaultRecordBatch.writeEmptyHeader"
    )
    assert crc_matches(kept or b"")
    assert feed(cleaning(map_of(9, a=9), {4: LastRecord(6, 1)}), kept or b"") == kept
    assert feed(cleaning(map_of(9, a=9), {4: LastRecord(7, 1)}), kept or b"") is None, "it has written another one"
    assert feed(cleaning(map_of(9, a=9), {}), data) is None, "it has expired"


def test_an_empty_batch_that_nobody_needs_goes_wherever_it_is() -> None:
    empty = emptied(read_header(data_batch(5, (b"a", b"1"), producer=(4, 1, 70))))
    for latest_offset in (3, 9):
        assert feed(cleaning(map_of(latest_offset)), empty) is None
        assert feed(cleaning(map_of(latest_offset), {4: LastRecord(5, 1)}), empty) == empty


def test_the_last_batch_of_the_round_leaves_its_header() -> None:
    data = data_batch(5, (b"a", b"1"), (b"a", b"2"))
    assert header_of(feed(cleaning(map_of(9, a=9), first_uncleanable_offset=7), data)).last_offset == 6
    assert feed(cleaning(map_of(9, a=9), first_uncleanable_offset=8), data) is None


def test_a_marker_that_alone_carries_the_epoch_stays_whole() -> None:
    marker = marker_batch(5, 4, 9, is_commit=False)
    marked = feed(cleaning(map_of(9), {4: LastRecord(None, 9)}), marker)
    assert marked is not None
    assert feed(cleaning(map_of(9), {4: LastRecord(None, 9)}, now_ms=T0 + 10**9), marked) == marked
    assert feed(cleaning(map_of(9), {4: LastRecord(None, 10)}, now_ms=T0 + 10**9), marked) is None
    assert feed(cleaning(map_of(9), {4: LastRecord(3, 9)}, now_ms=T0 + 10**9), marked) is None


def test_the_last_records_are_those_of_the_producer_state() -> None:
    producers = Producers()
    for data in (
        data_batch(0, (b"a", b"1"), (b"b", b"1"), producer=(4, 1, 70)),
        data_batch(2, (b"a", b"1"), producer=(5, 2, 0)),
        data_batch(3, (b"a", b"1"), (b"a", b"2"), producer=(4, 1, 72)),
    ):
        producers.update(read_header(data), read_header(data).base_offset)
    assert last_records(producers.states()) == {4: LastRecord(4, 1), 5: LastRecord(2, 2)}


# --------------------------------------------------------------------------------------------- what cannot be compacted


def damaged(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 0x10]) + data[position + 1 :]


def nonsense(data: bytes) -> bytes:
    """Another payload under a right checksum: what `record.validation=header` lets in."""
    header = read_header(data)
    return rebuild_batch(
        header, b"\x02" * len(data[61:]), codec=header.codec, max_timestamp=T0, is_log_append_time=False
    )


BATCH = data_batch(7, (b"a", b"1"), (b"b", b"2"))


@pytest.mark.parametrize(
    ("data", "what"),
    [
        pytest.param(damaged(BATCH, 70), "checksum", id="flipped bit"),
        pytest.param(nonsense(BATCH), "record 0 of 2", id="nonsense"),
        pytest.param(nonsense(data_batch(7, (b"a", b"1"), codec=Codec.ZSTD)), "ZSTD", id="compressed nonsense"),
        pytest.param(nonsense(marker_batch(7, 4, 0, is_commit=True)), "marker", id="nonsense for a marker"),
    ],
)
def test_a_batch_that_cannot_be_read_ends_the_round_and_is_named(data: bytes, what: str) -> None:
    with pytest.raises(UncleanableLog, match=f"offset 7 .*{what}") as caught:
        feed(cleaning(map_of(99)), data)
    assert caught.value.offset == 7


@pytest.mark.parametrize("base_offset", [3, 6])
def test_offsets_that_fall_back_end_the_round(base_offset: int) -> None:
    round_ = cleaning(map_of(99))
    feed(round_, data_batch(5, (b"a", b"1"), (b"b", b"2")))
    with pytest.raises(UncleanableLog, match=f"offset {base_offset} .*7 was expected"):
        feed(round_, data_batch(base_offset, (b"c", b"1")))


def test_an_abort_that_the_index_does_not_know_ends_the_round() -> None:
    """Its records would count as committed, and come to life once the marker was gone."""
    data = data_batch(5, (b"a", b"1"), producer=(4, 0, 0), is_transactional=True)
    marker = marker_batch(6, 4, 0, is_commit=False)
    round_ = cleaning(map_of(99))
    assert feed(round_, data) == data
    with pytest.raises(UncleanableLog, match=r"offset 6 .*transaction index"):
        feed(round_, marker)
    before_start = cleaning(map_of(99), log_start_offset=6)
    assert feed(before_start, data) == data, "nobody can read it"
    assert horizon_of(header_of(feed(before_start, marker))) == T0 + RETENTION_MS
