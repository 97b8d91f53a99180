"""Index files byte by byte as Kafka writes them, and searches in them against a plain scan."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.index import PAGE_ENTRIES, OffsetEntry, OffsetIndex, TimeEntry, TimeIndex
from tests.broker.log.logs import FaultyDisk, full

BASE = 1000


def offset_index(disk: MemoryDisk) -> OffsetIndex:
    return OffsetIndex(disk, "f.index", BASE)


def time_index(disk: MemoryDisk) -> TimeIndex:
    return TimeIndex(disk, "f.timeindex", BASE)


def test_offset_entries_are_two_big_endian_int32() -> None:
    disk = MemoryDisk()
    index = offset_index(disk)
    index.append(1004, 0x1122)
    index.append(1000 + 0x7FFFFFFF, 0x7FFFFFFF)
    index.write_out()
    golden = "00000004 00001122  7fffffff 7fffffff"
    assert disk.read_whole("f.index") == bytes.fromhex(golden)
    assert list(offset_index(disk).rows()) == [(4, 0x1122), (0x7FFFFFFF, 0x7FFFFFFF)]


def test_time_entries_are_an_int64_and_an_int32() -> None:
    disk = MemoryDisk()
    index = time_index(disk)
    index.append_if_larger(0x0000_018B_CFE5_6800, 1009)
    index.append_if_larger(0x0000_018B_CFE5_6801, 1010)
    index.write_out()
    golden = "0000018bcfe56800 00000009  0000018bcfe56801 0000000a"
    assert disk.read_whole("f.timeindex") == bytes.fromhex(golden)
    assert time_index(disk).last == TimeEntry(0x0000_018B_CFE5_6801, 1010)


def test_a_timestamp_that_is_not_larger_is_not_added() -> None:
    index = time_index(MemoryDisk())
    for timestamp_ms, offset in ((-1, 1001), (5, 1002), (5, 1002), (4, 1003), (6, 1004)):
        index.append_if_larger(timestamp_ms, offset)
    assert list(index.rows()) == [(5, 2), (6, 4)]


def test_both_columns_must_grow() -> None:
    index = offset_index(MemoryDisk())
    index.append(1010, 50)
    for offset, position in ((1010, 60), (1011, 50), (1009, 60)):
        with pytest.raises(AssertionError):
            index.append(offset, position)


def test_the_next_row_of_the_time_index_needs_room_for_its_last_one_too() -> None:
    disk = MemoryDisk()
    offsets, times = offset_index(disk), time_index(disk)
    seen: list[tuple[int, int]] = []
    for number in range(1, 4):
        seen.append((offsets.size_bytes_with_next, times.size_bytes_with_next))
        offsets.append(BASE + number, number)
        times.append_if_larger(number, BASE + number)
    assert seen == [(8, 24), (16, 36), (24, 48)]


def test_an_empty_index_finds_nothing() -> None:
    offsets, times = offset_index(MemoryDisk()), time_index(MemoryDisk())
    assert offsets.count == times.count == 0
    assert list(offsets.rows()) == list(times.rows()) == []
    assert (offsets.floor_offset(5000), offsets.floor_position(0), offsets.last) == (None, None, None)
    assert (times.floor_pair(5000), times.last) == ([], None)


def test_a_page_of_entries_is_due_and_they_are_found_before_and_after() -> None:
    disk = MemoryDisk()
    index = offset_index(disk)
    for number in range(PAGE_ENTRIES - 1):
        index.append(BASE + number, number + 1)
    assert not index.is_page_due
    index.append(BASE + 9000, 9001)
    assert index.is_page_due
    assert len(disk.read_whole("f.index")) == 0
    index.write_out()
    assert not index.is_page_due
    assert len(disk.read_whole("f.index")) == PAGE_ENTRIES * 8
    index.append(BASE + 9001, 9002)
    assert len(disk.read_whole("f.index")) == PAGE_ENTRIES * 8
    assert index.count == PAGE_ENTRIES + 1
    assert index.floor_offset(BASE + 7) == OffsetEntry(BASE + 7, 8)
    assert index.floor_offset(BASE + 9001) == OffsetEntry(BASE + 9001, 9002)
    assert index.floor_offset(BASE + 9000) == OffsetEntry(BASE + 9000, 9001)


def test_an_entry_that_cannot_be_written_waits() -> None:
    disk = FaultyDisk()
    index = offset_index(disk)
    disk.fail_at(0, full, for_good=True)
    for number in range(3 * PAGE_ENTRIES):
        index.append(BASE + number, number + 1)
    assert index.count == 3 * PAGE_ENTRIES
    assert index.floor_offset(BASE + 700) == OffsetEntry(BASE + 700, 701)
    index.write_out()
    assert len(disk.read_whole("f.index")) == 0
    disk.heal()
    index.write_out()
    again = offset_index(disk)
    assert list(again.rows()) == [(number, number + 1) for number in range(3 * PAGE_ENTRIES)]


def test_a_file_that_ends_in_half_an_entry_is_not_whole_until_replaced() -> None:
    disk = MemoryDisk()
    disk.write_whole("f.index", bytes(8 * 3 + 5))
    index = offset_index(disk)
    assert not index.is_whole
    assert index.count == 0
    index.replace(bytes.fromhex("00000004 00001122"))
    assert index.is_whole
    assert index.last == OffsetEntry(1004, 0x1122)
    assert disk.read_whole("f.index") == bytes.fromhex("00000004 00001122")


steps = st.lists(st.integers(1, 5), max_size=60)
counts = st.integers(0, 3 * PAGE_ENTRIES)


@given(count=counts, written=counts, probe=st.integers(-5, 20_000), stride=st.integers(1, 7))
def test_a_search_finds_what_a_scan_finds(count: int, written: int, probe: int, stride: int) -> None:
    """For every split of the entries between file and memory."""
    disk = MemoryDisk()
    offsets, times = offset_index(disk), time_index(disk)
    entries = [(BASE + 3 + number * stride, 10 + number * (stride + 1)) for number in range(count)]
    for number, (offset, position) in enumerate(entries):
        offsets.append(offset, position)
        times.append_if_larger(position, offset)
        if number == written:
            offsets.write_out()
            times.write_out()
    by_offset = [entry for entry in entries if entry[0] <= BASE + probe]
    by_position = [entry for entry in entries if entry[1] <= probe]
    assert offsets.floor_offset(BASE + probe) == (by_offset[-1] if by_offset else None)
    assert offsets.floor_position(probe) == (by_position[-1] if by_position else None)
    assert times.floor_pair(probe) == [(position, offset) for offset, position in by_position[-2:]]
    assert list(offsets.rows()) == [(offset - BASE, position) for offset, position in entries]


@given(count=counts, written=counts, cut=st.integers(-5, 5000))
def test_truncation_keeps_what_lies_before(count: int, written: int, cut: int) -> None:
    disk = MemoryDisk()
    offsets, times = offset_index(disk), time_index(disk)
    for number in range(count):
        offsets.append(BASE + 3 * number, 2 * number + 1)
        times.append_if_larger(2 * number + 1, BASE + 3 * number)
        if number == written:
            offsets.write_out()
            times.write_out()
    offsets.truncate_to_position(cut)
    times.truncate_to_offset(BASE + cut)
    kept = [(3 * number, 2 * number + 1) for number in range(count) if 2 * number + 1 < cut]
    assert list(offsets.rows()) == kept
    assert offsets.last_row == (kept[-1] if kept else None)
    assert list(times.rows()) == [(2 * number + 1, 3 * number) for number in range(count) if 3 * number < cut]
    offsets.append(BASE + 100_000, 100_000)
    offsets.write_out()
    assert list(offset_index(disk).rows()) == [*kept, (100_000, 100_000)]
