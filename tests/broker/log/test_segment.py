"""A segment alone: its three files come and go together, and a reader's remembered positions stay few."""

import pytest

from odradek.broker.disk.memory_disk import Content, MemoryDisk
from odradek.broker.log.batch_locator import BatchLocator
from odradek.broker.log.config import LogConfig
from odradek.broker.log.segment import DELETED_SUFFIX, SUFFIXES, Segment, remove_files, retire_files, segment_path
from odradek.broker.log.segment_indexes import SegmentIndexes
from odradek.broker.log.segment_reader import SegmentReader
from tests.broker.log.logs import T0, FaultyDisk, batch, full, stored

ONE = stored(batch(T0), 0)


def segment_on(disk: MemoryDisk, base_offset: int = 5) -> Segment:
    disk.make_dir("d")
    return Segment.create(disk, "d", base_offset, LogConfig(), 0)


def test_names_are_the_base_offset_in_twenty_digits() -> None:
    assert segment_path("d", 2**63 - 1, ".log") == "d/09223372036854775807.log"
    disk = MemoryDisk()
    segment_on(disk, 42)
    names = [f"00000000000000000042{suffix}" for suffix in (".index", ".log", ".timeindex")]
    assert disk.list_dir("d") == names


def test_leftovers_under_its_name_are_emptied() -> None:
    disk = MemoryDisk()
    disk.make_dir("d")
    for suffix in SUFFIXES:
        disk.write_whole(segment_path("d", 5, suffix), b"left behind by a roll that failed")
    segment = segment_on(disk)
    assert segment.size_bytes == segment.indexes.offset_index.count == segment.indexes.time_index.count == 0
    segment.append([stored(ONE, 5)], 5, T0, LogConfig(index_interval_bytes=0))
    assert disk.read_whole("d/00000000000000000005.log") == stored(ONE, 5)


def test_a_segment_that_cannot_be_made_leaves_nothing() -> None:
    """Wherever it fails; once the disk works again for the clean-up."""
    for step in range(3):
        disk = FaultyDisk()
        disk.make_dir("d")
        disk.fail_at(step, full, for_good=False)
        with pytest.raises(OSError):
            Segment.create(disk, "d", 5, LogConfig(), 0)
        assert disk.list_dir("d") == []


def test_retiring_takes_every_file_of_it_and_no_other() -> None:
    disk = MemoryDisk()
    segment = segment_on(disk)
    other = segment_on(disk, 6)
    for suffix in SUFFIXES:
        if not disk.exists(segment_path("d", 5, suffix)):
            disk.write_whole(segment_path("d", 5, suffix), b"x")
    retired = segment.retire()
    assert sorted(retired) == sorted(segment_path("d", 5, suffix) + DELETED_SUFFIX for suffix in SUFFIXES)
    remove_files(disk, retired)
    assert disk.list_dir("d") == [f"00000000000000000006{suffix}" for suffix in (".index", ".log", ".timeindex")]
    assert other.size_bytes == 0


def test_a_deletion_that_cannot_begin_changes_nothing() -> None:
    disk = FaultyDisk()
    segment = segment_on(disk)
    segment.append([stored(ONE, 5)], 5, T0, LogConfig(index_interval_bytes=0))
    disk.fail_at(0, full, for_good=True)
    with pytest.raises(OSError):
        segment.retire()
    assert segment.read(5, 1000, 6, True).records == stored(ONE, 5)


def test_a_deletion_that_cannot_be_completed_is_done_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    disk = FaultyDisk()
    segment = segment_on(disk)
    disk.fail_at(1, full, for_good=True)
    assert segment.retire() == [segment_path("d", 5, ".log") + DELETED_SUFFIX]
    assert "the next start removes what is left" in caplog.text
    assert not disk.exists("d/00000000000000000005.log")
    disk.heal()
    remove_files(disk, [segment_path("d", 5, ".log") + DELETED_SUFFIX, *retire_files(disk, "d", 5)])
    assert disk.list_dir("d") == []


def test_positions_of_readers_are_remembered_in_bounded_number() -> None:
    segment = segment_on(MemoryDisk(), 0)
    for offset in range(100):
        segment.append([stored(ONE, offset)], offset, T0, LogConfig(index_interval_bytes=10_000))
    for offset in range(99):
        assert segment.read(offset, len(ONE), 100, True).records == stored(ONE, offset)
    points = segment.indexes.resume_points
    assert len(points) == 16
    assert points == {offset: offset * len(ONE) for offset in range(84, 100)}


def test_a_file_that_was_cut_behind_our_back_is_an_error_and_no_wrong_answer() -> None:
    disk = MemoryDisk()
    segment = segment_on(disk, 0)
    for offset in range(3):
        segment.append([stored(ONE, offset)], offset, T0, LogConfig(index_interval_bytes=0))

    class Shrunk:
        path, size_bytes = segment.file.path, segment.file.size_bytes
        append, truncate, preallocate = segment.file.append, segment.file.truncate, segment.file.preallocate
        sync, syncer, close, slice = segment.file.sync, segment.file.syncer, segment.file.close, segment.file.slice
        content = ONE + ONE[:30]

        def pread(self, size_bytes: int, position: int, at_least: int | None = None) -> bytes:
            return self.content[position : position + size_bytes]

    paths = segment_path("d", 0, ".index"), segment_path("d", 0, ".timeindex")
    indexes = SegmentIndexes(disk, Shrunk(), *paths, 0, LogConfig().index_interval_bytes)
    locator = BatchLocator(indexes, LogConfig().index_interval_bytes)
    reader = SegmentReader(indexes, locator)
    for size_bytes_max in (0, len(ONE) + 30, 10_000):
        with pytest.raises(OSError, match="has lost its end"):
            reader.read(1, size_bytes_max, 3, True, 3)
    Shrunk.content = bytes(1000)
    with pytest.raises(OSError, match="damaged at position 0: no batch starts here"):
        locator.locate(2)


LARGE = batch(T0, value=bytes(400_000))


def test_a_segment_that_grows_gets_room_for_as_much_again_and_gives_the_rest_back() -> None:
    disk = MemoryDisk()
    segment = segment_on(disk, 0)
    path = segment_path("d", 0, ".log")
    sizes: list[int] = []
    for offset in range(9):
        segment.append([stored(LARGE, offset)], offset, T0, LogConfig())
        sizes.append(len(disk.read_whole(path)) // len(LARGE))
        assert segment.size_bytes == (offset + 1) * len(LARGE)
    assert sizes == [1, 2, 3, 6, 6, 6, 7, 14, 14], "nothing below a mebibyte, then twice what there is"
    segment.deactivate()
    assert len(disk.read_whole(path)) == segment.size_bytes


def test_no_more_is_reserved_than_a_segment_may_have() -> None:
    disk = MemoryDisk()
    segment = segment_on(disk, 0)
    config = LogConfig(segment_bytes=5 * len(LARGE))
    for offset in range(4):
        segment.append([stored(LARGE, offset)], offset, T0, config)
    assert len(disk.read_whole(segment_path("d", 0, ".log"))) == config.segment_bytes


def test_without_room_to_reserve_everything_goes_on() -> None:
    class Reserveless(MemoryDisk):
        def reserve(self, content: Content, size_bytes: int) -> None:
            raise full()

    disk = Reserveless()
    segment = segment_on(disk, 0)
    for offset in range(9):
        segment.append([stored(LARGE, offset)], offset, T0, LogConfig())
    assert len(disk.read_whole(segment_path("d", 0, ".log"))) == segment.size_bytes == 9 * len(LARGE)
