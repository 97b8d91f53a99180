"""The map of keys against a dict, full and growing; then how it is filled from batches and where that ends."""

from struct import Struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.log import offset_map as module
from odradek.broker.log.offset_map import NO_OFFSET, SLOT_BYTES, OffsetMap, OffsetMapBuilder
from odradek.broker.log.producers import AbortedTxn
from odradek.broker.log.uncleanable import UncleanableLog
from odradek.protocol.batches.batch import read_header
from odradek.protocol.batches.compression import Codec
from tests.broker.log.compacted_logs import data_batch, marker_batch

KEYS = [b"", b"a", b"a" * 15, b"a" * 16, b"a" * 1000, *(b"%d" % number for number in range(5000))]


def map_for(keys: int, *, first_dirty_offset: int = 0) -> OffsetMap:
    return OffsetMap(first_dirty_offset, keys * SLOT_BYTES, load_factor=1.0)


# -------------------------------------------------------------------------------------------------------------- the map


def test_a_key_has_the_offset_that_was_put_last_and_others_have_none() -> None:
    offset_map = map_for(10)
    assert offset_map.get(b"a") == NO_OFFSET
    for offset in (0, 7, 2**62):
        assert offset_map.put(b"a", offset)
        assert offset_map.get(b"a") == offset
    assert (offset_map.get(b"b"), offset_map.count) == (NO_OFFSET, 1)


@given(st.lists(st.tuples(st.binary(max_size=3), st.integers(0, 2**62))), st.integers(1, 300))
def test_it_does_what_a_dict_of_bounded_size_does(entries: list[tuple[bytes, int]], capacity: int) -> None:
    offset_map = map_for(capacity)
    expected: dict[bytes, int] = {}
    for key, offset in entries:
        fits = key in expected or len(expected) < capacity
        assert offset_map.put(key, offset) == fits
        if fits:
            expected[key] = offset
    assert {key: offset_map.get(key) for key, _ in entries} == {key: expected.get(key, -1) for key, _ in entries}
    assert offset_map.count == len(expected)


@pytest.mark.parametrize(("slots", "load_factor"), [(4000, 0.5), (4000, 0.9), (1025, 1.0), (1500, 7.0)])
def test_thousands_of_keys_are_found_while_the_table_grows_and_when_it_is_full(slots: int, load_factor: float) -> None:
    offset_map = OffsetMap(0, slots * SLOT_BYTES, load_factor)
    capacity = int(slots * min(load_factor, 1.0))
    taken = [offset_map.put(key, offset) for offset, key in enumerate(KEYS)]
    assert taken == [True] * capacity + [False] * (len(KEYS) - capacity)
    assert [offset_map.get(key) for key in KEYS] == [*range(capacity), *[NO_OFFSET] * (len(KEYS) - capacity)]
    assert offset_map.put(KEYS[0], 99), "a key that is there has its place"
    assert (offset_map.count, offset_map.slots_max) == (capacity, slots)


def test_keys_are_told_apart_by_their_whole_digests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here the keys are their own digests: with equal halves, and all of one slot."""

    class OwnDigest:
        def __init__(self, key: bytes, digest_size: int) -> None:
            assert len(key) == digest_size
            self.key = key

        def digest(self) -> bytes:
            return self.key

    monkeypatch.setattr(module, "blake2b", OwnDigest)
    offset_map = map_for(20)
    halves = [Struct("Q").pack(23 * number) for number in range(4)]  # 23 slots
    keys = [first + second for first in halves for second in halves]
    assert all(offset_map.put(key, offset) for offset, key in enumerate(keys))
    assert [offset_map.get(key) for key in keys] == list(range(16))
    assert offset_map.get(halves[0] + Struct("Q").pack(7)) == NO_OFFSET


def test_it_holds_as_many_keys_as_kafkas_of_the_same_size() -> None:
    """128 MiB at 24 bytes a slot, filled to 0.9; nothing of that is taken before it is needed."""
    offset_map = OffsetMap(0, 128 << 20)
    assert offset_map.slots_max == 5_592_405
    tables = [getattr(offset_map, name) for name in ("_firsts", "_seconds", "_offsets")]
    assert sum(len(table) * table.itemsize for table in tables) < 40_000


def test_a_table_takes_no_more_than_its_buffer_and_a_few_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SLOTS_AT_FIRST", 2)
    offset_map = OffsetMap(0, 1000 * SLOT_BYTES)
    for offset, key in enumerate(KEYS):
        offset_map.put(key, offset)
    tables = [getattr(offset_map, name) for name in ("_firsts", "_seconds", "_offsets")]
    assert [len(table) for table in tables] == [1009] * 3, "the next prime"
    assert (offset_map.count, [offset_map.get(key) for key in KEYS[:900]]) == (900, list(range(900)))


@pytest.mark.parametrize(("buffer_bytes", "load_factor"), [(23, 1.0), (24, 0.9), (1000, 0.0), (1000, -1.0)])
def test_a_map_for_no_key_is_refused(buffer_bytes: int, load_factor: float) -> None:
    with pytest.raises(ValueError, match="single key"):
        OffsetMap(0, buffer_bytes, load_factor)
    assert OffsetMap(0, 24, 1.0).put(b"a", 0)


# ----------------------------------------------------------------------------------------------------------- filling it


def feed(builder: OffsetMapBuilder, *batches: bytes) -> list[bool]:
    return [builder.feed(read_header(data), memoryview(data)) for data in batches]


def newest(offset_map: OffsetMap, *keys: bytes) -> list[int]:
    return [offset_map.get(key) for key in keys]


def test_the_newest_offset_of_each_key_is_noted_tombstones_too() -> None:
    offset_map = map_for(10)
    builder = OffsetMapBuilder(offset_map)
    first = data_batch(0, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"))
    second = data_batch(7, (b"c", None), (b"b", None), codec=Codec.LZ4)
    assert offset_map.latest_offset == -1
    assert feed(builder, first, second) == [True, True]
    assert newest(offset_map, b"a", b"b", b"c") == [2, 8, 7]
    assert offset_map.latest_offset == 8
    assert (builder.records_read, builder.bytes_read) == (5, len(first) + len(second))


def test_what_lies_before_the_dirty_part_is_not_noted() -> None:
    offset_map = map_for(10, first_dirty_offset=6)
    assert offset_map.latest_offset == 5
    builder = OffsetMapBuilder(offset_map)
    feed(builder, data_batch(0, (b"a", b"1")))
    assert offset_map.latest_offset == 5
    feed(builder, data_batch(4, (b"a", b"1"), (b"b", b"1"), (b"c", b"1"), (b"d", b"1")))
    assert newest(offset_map, b"a", b"b", b"c", b"d") == [-1, -1, 6, 7]
    assert offset_map.latest_offset == 7


def test_records_without_key_take_no_place() -> None:
    offset_map = map_for(1)
    assert feed(OffsetMapBuilder(offset_map), data_batch(0, (None, b"1"), (b"", b"2"), (None, None))) == [True]
    assert (offset_map.count, newest(offset_map, b""), offset_map.latest_offset) == (1, [1], 2)


def test_a_full_map_ends_before_the_first_key_that_it_has_no_place_for() -> None:
    for keys, end in ((1, 0), (2, 1), (3, 4), (4, 5)):
        offset_map = map_for(keys)
        builder = OffsetMapBuilder(offset_map)
        batches = (
            data_batch(0, (b"a", b"1"), (b"b", b"1")),
            data_batch(2, *((k, b"1") for k in (b"c", b"a", b"b", b"d"))),
        )
        taken = feed(builder, *batches[: 1 + (keys > 1)])
        assert taken == [True] * (len(taken) - 1) + [keys == 4]
        assert (offset_map.count, offset_map.latest_offset) == (keys, end)


def test_a_gap_before_the_key_that_does_not_fit_counts_as_covered() -> None:
    offset_map = map_for(1)
    assert feed(OffsetMapBuilder(offset_map), data_batch(0, (b"a", b"1")), data_batch(9, (b"b", b"1"))) == [
        True,
        False,
    ]
    assert offset_map.latest_offset == 8


def test_a_segment_ends_where_the_next_one_begins() -> None:
    offset_map = map_for(1)
    builder = OffsetMapBuilder(offset_map)
    feed(builder, data_batch(0, (b"a", b"1")))
    builder.end_segment(100)
    assert offset_map.latest_offset == 99
    builder.end_segment(50)
    assert offset_map.latest_offset == 99


def test_aborted_records_and_markers_are_not_noted() -> None:
    """The same producer's transactions: committed, aborted, committed."""
    offset_map = map_for(10)
    builder = OffsetMapBuilder(offset_map)
    builder.add_aborted([AbortedTxn(4, 2, 3, 2)])
    batches = [
        data_batch(0, (b"a", b"1"), producer=(4, 0, 0), is_transactional=True),
        marker_batch(1, 4, 0, is_commit=True),
        data_batch(2, (b"a", b"2"), producer=(4, 0, 1), is_transactional=True),
        marker_batch(3, 4, 0, is_commit=False),
        data_batch(4, (b"b", b"3"), producer=(4, 0, 2), is_transactional=True),
        marker_batch(5, 4, 0, is_commit=True),
    ]
    assert feed(builder, *batches) == [True] * 6
    assert (newest(offset_map, b"a", b"b"), offset_map.count, offset_map.latest_offset) == ([0, 4], 2, 5)
    assert newest(offset_map, b"\x00\x00\x00\x00", b"\x00\x00\x00\x01") == [-1, -1], "the keys of the markers"


def test_what_cannot_be_read_ends_it() -> None:
    data = data_batch(7, (b"a", b"1"))
    builder = OffsetMapBuilder(map_for(10))
    with pytest.raises(UncleanableLog, match="offset 7 "):
        feed(builder, data[:-1] + b"\x07")
    feed(builder, data)
    with pytest.raises(UncleanableLog, match="8 was expected"):
        feed(builder, data)
