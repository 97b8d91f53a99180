"""A chunk of fetched batches, read against plain lists of records; aborted transactions; bytes damaged in every way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.client.errors.client_errors import ClientError
from odradek.client.fetching.fetched import Chunk, CorruptRecords
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.batches.batch import HEADER_SIZE
from odradek.protocol.batches.compression import Codec
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import AbortedTransaction

PARTITION = TopicPartition("t", 0)
ABORT, COMMIT = 0, 1


def records(first: int, count: int, step: int = 1) -> list[Record]:
    return [Record(first + index * step, 1_000 + index, None, b"%d" % (first + index * step)) for index in range(count)]


def plain(first: int, count: int, codec: Codec = Codec.NONE, producer_id: int = -1) -> bytes:
    return build_batch(records(first, count), base_offset=first, codec=codec, producer_id=producer_id)


def transactional(first: int, count: int, producer_id: int) -> bytes:
    return build_batch(records(first, count), base_offset=first, producer_id=producer_id, is_transactional=True)


def marker(offset: int, producer_id: int, kind: int) -> bytes:
    key = b"\x00\x00" + kind.to_bytes(2, "big")
    record = Record(offset, 0, key, b"\x00\x00\x00\x00\x00\x00")
    return build_batch([record], base_offset=offset, producer_id=producer_id, is_transactional=True, is_control=True)


def read(chunk: Chunk, end_offset: int | None = None) -> list[Record]:
    found: list[Record] = []
    while (batch := chunk.take(end_offset)) is not None:
        assert (batch.topic, batch.partition) == PARTITION
        assert batch.records, "an empty batch is not handed out"
        found += batch.records
    return found


def offsets(chunk: Chunk) -> list[int]:
    return [record.offset for record in read(chunk)]


def test_batches_are_read_in_order_with_all_that_their_records_hold() -> None:
    whole = [Record(5, 9, b"k", b"v", (("h", b"1"), ("h", None))), Record(6, 10, None, None)]
    chunk = Chunk(PARTITION, 5, build_batch(whole, base_offset=5) + plain(7, 2, Codec.ZSTD))
    assert (chunk.position, chunk.after) == (5, 9)
    assert read(chunk) == [*whole, Record(7, 1_000, None, b"7"), Record(8, 1_001, None, b"8")]
    assert (chunk.position, chunk.error) == (9, None)


def test_records_before_the_offset_are_left_out_and_so_are_whole_batches() -> None:
    assert offsets(Chunk(PARTITION, 4, plain(0, 3) + plain(3, 3) + plain(6, 1))) == [4, 5, 6]


def test_records_from_the_end_offset_on_are_left_out() -> None:
    chunk = Chunk(PARTITION, 0, plain(0, 3) + plain(3, 3))
    assert [record.offset for record in read(chunk, 4)] == [0, 1, 2, 3]


def test_a_compacted_batch_moves_the_position_to_its_last_offset() -> None:
    """Compaction removes records and leaves the batch's last offset, even when nothing is left."""
    kept = build_batch([Record(12, 0, None, b"x"), Record(15, 0, None, b"y")], base_offset=10)
    emptied = bytearray(plain(16, 4))
    emptied[HEADER_SIZE - 4 : HEADER_SIZE] = bytes(4)  # record_count
    emptied = emptied[:HEADER_SIZE]
    emptied[8:12] = (HEADER_SIZE - 12).to_bytes(4, "big")
    chunk = Chunk(PARTITION, 10, kept + bytes(emptied), check_crcs=False)
    assert chunk.after == 20
    assert offsets(chunk) == [12, 15]
    assert chunk.position == 20


def test_control_batches_are_never_handed_out() -> None:
    data = transactional(0, 2, 7) + marker(2, 7, COMMIT) + plain(3, 1)
    for chunk in (Chunk(PARTITION, 0, data), Chunk(PARTITION, 0, data, aborted=[])):
        assert offsets(chunk) == [0, 1, 3]
        assert chunk.position == 4
    only_marker = Chunk(PARTITION, 2, marker(2, 7, COMMIT))
    assert (read(only_marker), only_marker.after) == ([], 3)


def test_read_committed_leaves_out_what_was_aborted_and_no_more() -> None:
    """Producers 1 and 2 interleave; 1 aborts, commits later; 3 is not transactional though it is named."""
    data = b"".join(
        (
            transactional(0, 1, 1),
            transactional(1, 1, 2),
            plain(2, 1, producer_id=3),
            transactional(3, 1, 1),
            marker(4, 1, ABORT),
            transactional(5, 1, 1),
            marker(6, 1, COMMIT),
            marker(7, 2, COMMIT),
            transactional(8, 1, 2),
            marker(9, 2, ABORT),
        )
    )
    aborted = [AbortedTransaction(producer_id=2, first_offset=8), AbortedTransaction(producer_id=1, first_offset=0)]
    aborted.append(AbortedTransaction(producer_id=3, first_offset=0))
    assert offsets(Chunk(PARTITION, 0, data, aborted=aborted)) == [1, 2, 5]
    assert offsets(Chunk(PARTITION, 0, data)) == [0, 1, 2, 3, 5, 8]


def test_a_cut_last_batch_is_left_to_the_next_fetch() -> None:
    whole = plain(0, 3)
    cut = plain(3, 3)[:-1]
    chunk = Chunk(PARTITION, 0, whole + cut)
    assert (offsets(chunk), chunk.after, chunk.error) == ([0, 1, 2], 3, None)


@pytest.mark.parametrize("data", [plain(3, 3)[:-1], plain(3, 3)[:30], plain(0, 3), b"x"])
def test_an_answer_that_leads_nowhere_is_an_error_and_not_asked_for_again(data: bytes) -> None:
    chunk = Chunk(PARTITION, 3, data)
    assert chunk.after == 3
    with pytest.raises(CorruptRecords, match="t-0 from offset 3"):
        chunk.take()


def test_a_wrong_checksum_is_told_with_its_offset_behind_what_is_sound() -> None:
    damaged = bytearray(plain(3, 3))
    damaged[-1] ^= 1
    chunk = Chunk(PARTITION, 0, plain(0, 3) + bytes(damaged) + plain(6, 1))
    assert chunk.take() is not None
    with pytest.raises(CorruptRecords, match="fails its checksum") as caught:
        chunk.take()
    error = caught.value
    assert (error.code, error.retriable, error.offset, chunk.position) == (ErrorCode.CORRUPT_MESSAGE, False, 3, 3)


def test_without_check_crcs_it_is_not_looked_at() -> None:
    damaged = bytearray(plain(0, 3))
    damaged[17] ^= 1  # in the checksum itself
    assert offsets(Chunk(PARTITION, 0, bytes(damaged), check_crcs=False)) == [0, 1, 2]


def test_an_older_message_format_is_an_error_behind_what_came_before() -> None:
    old = bytearray(plain(3, 1))
    old[16] = 1
    chunk = Chunk(PARTITION, 0, plain(0, 3) + bytes(old))
    assert (chunk.after, chunk.error is not None) == (3, True)
    assert chunk.take() is not None
    with pytest.raises(CorruptRecords, match="magic 1"):
        chunk.take()


def test_records_that_do_not_decompress_are_an_error_that_names_the_codec() -> None:
    batch = bytearray(plain(0, 50, Codec.GZIP))
    batch[HEADER_SIZE + 3] ^= 0xFF
    with pytest.raises(CorruptRecords, match="GZIP"):
        Chunk(PARTITION, 0, bytes(batch), check_crcs=False).take()


def test_an_offset_at_the_end_of_all_numbers_is_not_believed() -> None:
    """The next one could not be asked for."""
    batch = bytearray(plain(0, 1))
    batch[:8] = ((1 << 63) - 1).to_bytes(8, "big")
    with pytest.raises(CorruptRecords):
        Chunk(PARTITION, 0, bytes(batch)).take()


def test_an_error_alone_is_raised_when_its_turn_comes() -> None:
    error = ClientError("over")
    chunk = Chunk(PARTITION, 9, error=error)
    assert (chunk.size_bytes, chunk.after) == (0, 9)
    with pytest.raises(ClientError, match="over"):
        chunk.take()


BATCHES = st.lists(
    st.tuples(st.integers(1, 6), st.integers(0, 3), st.sampled_from([Codec.NONE, Codec.GZIP, Codec.LZ4])), max_size=6
)


@given(BATCHES, st.integers(0, 20), st.one_of(st.none(), st.integers(0, 40)), st.data())
def test_any_log_read_from_any_offset_gives_its_records_from_there(
    shape: list[tuple[int, int, Codec]], start: int, end: int | None, data: st.DataObject
) -> None:
    """Batches with gaps before them, fetched from any offset and cut anywhere, then again from `after`, to the end."""
    log: list[tuple[int, bytes]] = []
    model: list[int] = []
    next_offset = 0
    for count, gap, codec in shape:
        first = next_offset + gap
        log.append((first + count - 1, plain(first, count, codec)))
        model += range(first, first + count)
        next_offset = first + count
    found: list[int] = []
    position = start
    while rest := b"".join(batch for last, batch in log if last >= position):
        first_size = next(len(batch) for last, batch in log if last >= position)
        chunk = Chunk(PARTITION, position, rest[: data.draw(st.integers(first_size, len(rest)))])
        found += [record.offset for record in read(chunk, end)]
        assert chunk.after == chunk.position > position
        position = chunk.after
    assert found == [offset for offset in model if offset >= start and (end is None or offset < end)]


@given(st.binary(max_size=200), st.integers(0, 10), st.integers(0, 60))
def test_any_bytes_end_in_records_or_a_client_error(noise: bytes, start: int, cut: int) -> None:
    for data in (noise, plain(start, 3)[:cut] + noise, plain(start, 3) + noise):
        try:
            chunk = Chunk(PARTITION, start, data, check_crcs=False, aborted=[])
            read(chunk)
        except ClientError as error:
            assert "t-0" in str(error)
        else:
            assert chunk.position == chunk.after
