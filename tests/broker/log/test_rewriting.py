"""Compaction's files: what is read, whatever the size of the pieces, and what is written, with the indexes of a segment
that was appended to.
"""

import errno
import os
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.broker.disk.memory_disk import Content, MemoryDisk
from odradek.broker.log.aborted import encode_row
from odradek.broker.log.compaction import Cleaning, LastRecord
from odradek.broker.log.config import LogConfig
from odradek.broker.log.leftovers import cleaned_path
from odradek.broker.log.offset_map import OffsetMap, OffsetMapBuilder
from odradek.broker.log.producers import AbortedTxn
from odradek.broker.log.rewriting import WRITE_BYTES, batches_of, build_map, discard, write_group
from odradek.broker.log.segment import Segment, segment_path
from odradek.broker.log.segments import Source, Written
from odradek.broker.log.uncleanable import UncleanableLog
from odradek.protocol.batches.batch import read_header
from odradek.protocol.primitives import Buffer
from tests.broker.log.compacted_logs import KeyValue, data_batch, marker_batch
from tests.broker.log.logs import DIRECTORY, T0, FaultyDisk, full

IO_BYTES = 1 << 16
MUCH = 1 << 20
INTERVAL = 200
NONCE = "0123456789abcdef"


def no_way() -> None:
    """Nobody else wants to run."""


def written(disk: MemoryDisk, base_offset: int, batches: Sequence[bytes], rows: Iterable[AbortedTxn] = ()) -> Source:
    """A segment's file, and how compaction is told of it."""
    disk.make_dir(DIRECTORY)
    path = segment_path(DIRECTORY, base_offset, ".log")
    size_bytes = disk.write_new(path, batches)
    next_offset = read_header(batches[-1]).last_offset + 1 if batches else base_offset
    return Source(base_offset, next_offset, path, size_bytes, list(rows))


def cleaning(first_dirty_offset: int = 0, *, keys: dict[bytes, int] | None = None, end_offset: int = 0) -> Cleaning:
    """Of these keys, the newest offsets; everything else stays."""
    offset_map = OffsetMap(first_dirty_offset, MUCH)
    for key, offset in (keys or {}).items():
        assert offset_map.put(key, offset)
    offset_map.latest_offset = end_offset - 1
    return Cleaning(
        offset_map,
        {7: LastRecord(999, 0)},
        log_start_offset=0,
        first_uncleanable_offset=1 << 40,
        delete_retention_ms=1000,
        now_ms=T0,
    )


def group(disk: MemoryDisk, sources: Sequence[Source], round_: Cleaning, interval: int = INTERVAL) -> Written:
    return write_group(disk, DIRECTORY, sources, round_, interval, IO_BYTES, no_way, NONCE)


def cleaned(disk: MemoryDisk, base_offset: int, suffix: str) -> bytes:
    return disk.read_whole(cleaned_path(DIRECTORY, base_offset, suffix, NONCE))


def records(count: int, start: int = 0, value_bytes: int = 10) -> list[bytes]:
    """A batch for each, some with several records, of timestamps that do not only increase."""
    batches: list[bytes] = []
    offset = start
    for number in range(count):
        content: list[KeyValue] = [(b"%d" % (offset + extra), bytes(value_bytes)) for extra in range(number % 3 + 1)]
        batches.append(data_batch(offset, *content, timestamp_ms=T0 + 7 * number - 20 * (number % 4)))
        offset += len(content)
    return batches


# ------------------------------------------------------------------------------------------------------------- reading
@given(
    sizes=st.lists(st.integers(0, 700), min_size=1, max_size=12),
    io_bytes=st.one_of(st.integers(0, 300), st.just(IO_BYTES)),
)
@settings(max_examples=100)
def test_every_batch_is_read_whatever_the_size_of_the_pieces(sizes: list[int], io_bytes: int) -> None:
    batches = [data_batch(offset, (b"k", bytes(size))) for offset, size in enumerate(sizes)]
    source = written(disk := MemoryDisk(), 0, batches)
    found = [(header, bytes(data)) for header, data in batches_of(disk, source, io_bytes)]
    assert [data for _, data in found] == batches
    assert [header for header, _ in found] == [read_header(data) for data in batches]


def test_it_reads_in_pieces_and_no_further_than_the_segment_was_long() -> None:
    class Watched(MemoryDisk):
        def __init__(self) -> None:
            super().__init__()
            self.reads: list[tuple[int, int]] = []

        def read_range(self, path: str, position: int, size_bytes: int) -> bytes:
            self.reads.append((position, size_bytes))
            return super().read_range(path, position, size_bytes)

    disk, batches = Watched(), records(40)
    source = written(disk, 0, batches)
    disk.open(source.path).append([b"what was appended since"])
    assert [bytes(data) for _, data in batches_of(disk, source, 1000)] == batches
    assert max(size for _, size in disk.reads) == 1000
    assert max(position + size for position, size in disk.reads) == source.size_bytes
    assert len(disk.reads) < 2 * source.size_bytes // 1000


@pytest.mark.parametrize("missing_bytes", [1, 50, 75])
def test_a_segment_that_became_shorter_is_not_cleaned(missing_bytes: int) -> None:
    disk, batches = MemoryDisk(), records(5)
    source = written(disk, 0, batches)
    file = disk.open(source.path)
    file.truncate(file.size_bytes - missing_bytes)
    with pytest.raises(UncleanableLog, match=r"offset 7 .* ends within it"):
        list(batches_of(disk, source, IO_BYTES))
    with pytest.raises(UncleanableLog, match="offset 7"):
        group(disk, [source], cleaning())
    assert disk.list_dir(DIRECTORY) == [f"{0:020d}.log"]


def test_a_length_that_cannot_be_is_not_cleaned() -> None:
    disk, batches = MemoryDisk(), records(3)
    broken = batches[1][:8] + (5).to_bytes(4, "big") + batches[1][12:]
    source = written(disk, 0, [batches[0], broken, batches[2]])
    with pytest.raises(UncleanableLog):
        group(disk, [source], cleaning())


def test_a_segment_that_is_gone_is_said_to_be_gone() -> None:
    disk = MemoryDisk()
    source = written(disk, 0, records(3))
    disk.remove(source.path)
    builder = OffsetMapBuilder(OffsetMap(0, MUCH))
    with pytest.raises(FileNotFoundError):
        build_map(disk, [source], builder, IO_BYTES, no_way)
    with pytest.raises(FileNotFoundError):
        group(disk, [source], cleaning())
    assert disk.list_dir(DIRECTORY) == []


# ----------------------------------------------------------------------------------------------------------- the map
def test_the_map_has_the_newest_offset_of_each_key_and_ends_with_the_last_segment() -> None:
    disk = MemoryDisk()
    first = written(disk, 0, [data_batch(0, (b"a", b""), (b"b", b"")), data_batch(2, (b"a", None))])
    second = written(disk, 10, [data_batch(10, (b"c", b""))])
    offset_map = OffsetMap(0, MUCH)
    ways: list[None] = []
    build_map(
        disk,
        [first, second._replace(next_offset=20)],
        OffsetMapBuilder(offset_map),
        IO_BYTES,
        lambda: ways.append(None),
    )
    assert [offset_map.get(key) for key in (b"a", b"b", b"c", b"d")] == [2, 1, 10, -1]
    assert offset_map.latest_offset == 19
    assert len(ways) == 3, "after each batch"


def test_aborted_records_have_no_place_in_the_map() -> None:
    disk = MemoryDisk()
    batches = [
        data_batch(0, (b"a", b"old")),
        data_batch(1, (b"a", b"aborted"), producer=(7, 0, 0), is_transactional=True),
        marker_batch(2, 7, 0, is_commit=False),
    ]
    source = written(disk, 0, batches, [AbortedTxn(7, 1, 2, 3)])
    offset_map = OffsetMap(0, MUCH)
    build_map(disk, [source], OffsetMapBuilder(offset_map), IO_BYTES, no_way)
    assert offset_map.get(b"a") == 0


def test_a_map_that_is_full_ends_before_the_record_that_had_no_place() -> None:
    disk = MemoryDisk()
    source = written(disk, 0, [data_batch(offset, (b"%d" % offset, b"")) for offset in range(10)])
    offset_map = OffsetMap(0, 4 * 24, load_factor=1.0)
    build_map(disk, [source], OffsetMapBuilder(offset_map), IO_BYTES, no_way)
    assert offset_map.latest_offset == 3


# ------------------------------------------------------------------------------------------------------------- writing
@given(
    counts=st.lists(st.integers(0, 12), min_size=1, max_size=4),
    interval=st.sampled_from([0, 100, 300, 4096]),
    value_bytes=st.integers(0, 60),
)
@settings(max_examples=60)
def test_indexes_are_those_of_a_segment_to_which_the_same_was_appended(
    counts: list[int], interval: int, value_bytes: int
) -> None:
    disk, sources, batches = MemoryDisk(), list[Source](), list[bytes]()
    next_offset = 5
    for count in counts:
        own = records(count, next_offset, value_bytes)
        sources.append(written(disk, next_offset, own))
        next_offset = sources[-1].next_offset + 3
        batches += own
    made = group(disk, sources, cleaning(), interval)
    config = LogConfig(index_interval_bytes=interval)
    disk.make_dir("other")
    segment = Segment.create(disk, "other", 5, config, T0)
    for data in batches:
        header = read_header(data)
        segment.append([data], header.last_offset, header.max_timestamp, config)
    segment.complete_indexes()
    assert made.size_bytes == segment.size_bytes
    assert made.replaces == [source.base_offset for source in sources]
    assert made.suffixes == [".log", ".index", ".timeindex"]
    for suffix in made.suffixes:
        assert cleaned(disk, 5, suffix) == disk.read_whole(segment_path("other", 5, suffix)), suffix


def test_only_what_stays_is_written_and_indexed() -> None:
    disk, batches = MemoryDisk(), records(30)
    end_offset = read_header(batches[-1]).last_offset + 1
    last = {b"%d" % offset: 1000 for offset in range(20, 40)}
    made = group(disk, [written(disk, 0, batches)], cleaning(keys=last, end_offset=end_offset))
    data = cleaned(disk, 0, ".log")
    assert made.size_bytes == len(data)
    found: list[int] = []
    position = 0
    while position < len(data):
        header = read_header(data, position)
        found += [header.base_offset] if header.record_count else []
        position += header.size_bytes
    gone = {read_header(batch).base_offset for batch in batches} - set(found)
    assert gone
    assert all(20 <= offset < 40 for offset in gone)
    rows = cleaned(disk, 0, ".index")
    for start in range(0, len(rows), 8):
        at = int.from_bytes(rows[start + 4 : start + 8], "big")
        assert read_header(data, at).last_offset == int.from_bytes(rows[start : start + 4], "big")


def test_rows_of_aborted_transactions_are_written_where_there_are_any() -> None:
    disk = MemoryDisk()
    batches = [
        data_batch(0, (b"a", b"1"), producer=(7, 0, 0), is_transactional=True),
        marker_batch(1, 7, 0, is_commit=False),
    ]
    row = AbortedTxn(7, 0, 1, 2)
    made = group(disk, [written(disk, 0, batches, [row])], cleaning(end_offset=2))
    assert made.suffixes == [".log", ".index", ".timeindex", ".txnindex"]
    assert cleaned(disk, 0, ".txnindex") == encode_row(row)


def test_nothing_is_left_where_nothing_stays() -> None:
    disk = MemoryDisk()
    source = written(disk, 0, [data_batch(0, (b"a", b"1"))])
    made = group(disk, [source], cleaning(keys={b"a": 9}, end_offset=5))
    assert (made.base_offset, made.size_bytes) == (0, 0)
    assert cleaned(disk, 0, ".log") == cleaned(disk, 0, ".index") == cleaned(disk, 0, ".timeindex") == b""


def test_large_segments_are_written_piece_by_piece() -> None:
    class Watched(MemoryDisk):
        largest = 0

        def write(self, content: Content, data: Buffer) -> None:
            self.largest = max(self.largest, len(data))
            super().write(content, data)

    disk = Watched()
    batches = [data_batch(offset, (b"%d" % offset, os.urandom(60_000))) for offset in range(20)]
    source = written(disk, 0, batches)
    disk.largest = 0
    ways: list[None] = []
    made = write_group(disk, DIRECTORY, [source], cleaning(), INTERVAL, IO_BYTES, lambda: ways.append(None), NONCE)
    assert cleaned(disk, 0, ".log") == b"".join(batches)
    assert made.size_bytes == len(b"".join(batches))
    assert WRITE_BYTES <= disk.largest < WRITE_BYTES + 2 * 60_000
    assert len(ways) == 20


# --------------------------------------------------------------------------------------------------------------- ends
def synced_after(disk: MemoryDisk) -> list[bytes]:
    return [disk.read_whole(f"{DIRECTORY}/{name}") for name in disk.list_dir(DIRECTORY) if name.endswith(".cleaned")]


def test_what_is_written_is_on_the_device_before_it_is_told() -> None:
    synced: list[bytes] = []

    class Watched(MemoryDisk):
        def sync(self, content: Content) -> None:
            synced.append(bytes(content))

    disk = Watched()
    source = written(disk, 0, records(9))
    synced.clear()
    group(disk, [source], cleaning())
    assert sorted(synced) == sorted(synced_after(disk))
    assert len(synced) == 3


@pytest.mark.parametrize("for_good", [False, True])
def test_a_disk_that_fails_keeps_no_half_of_it(for_good: bool) -> None:
    steps = 0
    while True:
        disk = FaultyDisk()
        source = written(disk, 0, records(4))
        before = disk.list_dir(DIRECTORY)
        disk.fail_at(steps, full, for_good=for_good)
        try:
            group(disk, [source], cleaning())
        except OSError as error:
            assert error.errno == errno.ENOSPC
            disk.heal()
            if for_good:
                discard(disk, DIRECTORY, 0, NONCE)
            assert disk.list_dir(DIRECTORY) == before
        else:
            break
        steps += 1
    assert steps > 300


def test_who_is_stopped_between_two_batches_leaves_nothing() -> None:
    disk = MemoryDisk()
    source = written(disk, 0, records(9))

    class Stopped(Exception):
        pass

    ways: list[None] = []

    def stop() -> None:
        ways.append(None)
        if len(ways) == 5:
            raise Stopped

    with pytest.raises(Stopped):
        write_group(disk, DIRECTORY, [source], cleaning(), INTERVAL, IO_BYTES, stop, NONCE)
    assert disk.list_dir(DIRECTORY) == [f"{0:020d}.log"]
    with pytest.raises(Stopped):
        ways.clear()
        build_map(disk, [source], OffsetMapBuilder(OffsetMap(0, MUCH)), IO_BYTES, stop)


def test_what_is_not_wanted_is_removed_and_nothing_else() -> None:
    disk = MemoryDisk()
    source = written(disk, 0, records(4))
    group(disk, [source], cleaning())
    assert len(disk.list_dir(DIRECTORY)) == 4
    discard(disk, DIRECTORY, 0, NONCE)
    discard(disk, DIRECTORY, 0, NONCE)
    assert disk.list_dir(DIRECTORY) == [f"{0:020d}.log"]
