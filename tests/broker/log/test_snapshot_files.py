"""`SnapshotFiles`: which snapshot is loaded, which stay, and that a disk that fails costs a longer walk and no more."""

import errno
import os

import pytest

from odradek.broker.disk.memory_disk import Content, MemoryDisk
from odradek.broker.log.producers import ProducedBatch, Producers, ProducerState
from odradek.broker.log.snapshot_files import SnapshotFiles
from odradek.broker.log.snapshots import encode_snapshot
from odradek.protocol.primitives import Buffer

DIRECTORY = "data/orders-0"


class NoRoom(MemoryDisk):
    """Takes `room_bytes` more, if that is not None."""

    room_bytes: int | None = None

    def write(self, content: Content, data: Buffer) -> None:
        if self.room_bytes is not None and len(data) > self.room_bytes:
            super().write(content, memoryview(data)[: self.room_bytes])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().write(content, data)


@pytest.fixture
def disk() -> NoRoom:
    disk = NoRoom()
    disk.make_dir(DIRECTORY)
    return disk


def producers_at(offset: int) -> Producers:
    """One producer whose only batch ends before `offset`: so a snapshot tells which it is."""
    state = ProducerState(0)
    state.batches.append(ProducedBatch(0, 0, offset - 1, offset - 1, 5))
    state.last_timestamp_ms = 5
    return Producers([(offset, state)])


def files_with(disk: NoRoom, *offsets: int) -> SnapshotFiles:
    files = SnapshotFiles(disk, DIRECTORY, [])
    for offset in offsets:
        files.take(producers_at(offset), offset)
    return files


def names(disk: NoRoom) -> list[int]:
    found = disk.list_dir(DIRECTORY)
    assert all(name.endswith(".snapshot") and len(name) == 29 for name in found)
    return [int(name[:20]) for name in found]


def loaded(files: SnapshotFiles, offset: int) -> int | None:
    """The offset of what was loaded, which must hold what was taken there."""
    found = files.load(offset)
    if found is None:
        return None
    assert encode_snapshot(found[0]) == encode_snapshot(producers_at(found[1]))
    return found[1]


def test_a_snapshot_is_a_file_named_by_its_offset(disk: NoRoom) -> None:
    files = files_with(disk, 30, 4, 2**63 - 1)
    assert files.offsets == [4, 30, 2**63 - 1]
    assert files.newest == 2**63 - 1
    assert names(disk) == [4, 30, 2**63 - 1]
    assert disk.read_whole(f"{DIRECTORY}/00000000000000000030.snapshot") == encode_snapshot(producers_at(30))


def test_without_any_there_is_no_newest(disk: NoRoom) -> None:
    files = files_with(disk)
    assert (files.offsets, files.newest, files.load(100)) == ([], -1, None)


def test_the_newest_at_or_before_an_offset_is_loaded(disk: NoRoom) -> None:
    files_with(disk, 10, 20, 30)
    files = SnapshotFiles(disk, DIRECTORY, [30, 10, 20])
    assert [loaded(files, offset) for offset in (9, 10, 19, 20, 29, 30, 1000)] == [None, 10, 10, 20, 20, 30, 30]


def test_taken_again_it_is_replaced(disk: NoRoom) -> None:
    files = files_with(disk, 10)
    files.take(Producers(), 10)
    assert files.offsets == [10]
    found = files.load(10)
    assert found is not None
    assert len(found[0]) == 0


@pytest.mark.parametrize("size_bytes", [0, 1, 9, 55, -1])
def test_a_damaged_one_is_removed_and_the_one_before_is_loaded(
    disk: NoRoom, size_bytes: int, caplog: pytest.LogCaptureFixture
) -> None:
    files = files_with(disk, 10, 20, 30)
    path = files.path(30)
    disk.write_whole(path, disk.read_whole(path)[:size_bytes])
    assert loaded(files, 30) == 20
    assert f"{path} is removed, for it is damaged" in caplog.text
    assert files.offsets == [10, 20]
    assert names(disk) == [10, 20]
    disk.write_whole(files.path(20), b"\0" * 100)
    disk.write_whole(files.path(10), b"noise")
    assert files.load(30) is None
    assert names(disk) == []


def test_those_behind_the_end_of_the_log_go(disk: NoRoom) -> None:
    files = files_with(disk, 0, 10, 20, 30)
    files.forget_after(20)
    assert files.offsets == names(disk) == [0, 10, 20]
    files.forget_after(19)
    assert files.offsets == names(disk) == [0, 10]
    files.forget_all()
    assert files.offsets == names(disk) == []


def test_those_that_no_segment_begins_at_go_but_for_the_newest(disk: NoRoom) -> None:
    files = files_with(disk, 0, 10, 15, 20, 33)
    files.forget_strays([10, 20])
    assert files.offsets == names(disk) == [10, 20, 33]
    files.forget_strays([20, 33])
    assert files.offsets == names(disk) == [20, 33]
    files.forget_strays([])
    assert files.offsets == names(disk) == [33], "it may know of producers whose batches have been deleted"


@pytest.mark.parametrize("room_bytes", [0, 1, 30])
def test_where_there_is_no_room_there_is_no_snapshot(
    disk: NoRoom, room_bytes: int, caplog: pytest.LogCaptureFixture
) -> None:
    files = files_with(disk, 10)
    disk.room_bytes = room_bytes
    files.take(producers_at(20), 20)
    assert "00000000000000000020.snapshot could not be written" in caplog.text
    assert files.offsets == [10]
    assert loaded(files, 100) == 10
    again = SnapshotFiles(disk, DIRECTORY, names(disk))
    assert loaded(again, 100) == 10, "half of one is no snapshot"
    disk.room_bytes = None
    again.take(producers_at(20), 20)
    assert loaded(again, 100) == 20


def test_one_that_could_not_be_replaced_is_not_believed(disk: NoRoom) -> None:
    files = files_with(disk, 10, 20)
    disk.room_bytes = 5
    files.take(Producers(), 20)
    assert loaded(files, 100) == 10


def test_the_files_for_syncing_are_those_at_or_behind_an_offset(disk: NoRoom) -> None:
    files = files_with(disk, 10, 20, 30)
    opened = files.files_from(20)
    assert [file.path for file in opened] == [files.path(20), files.path(30)]
    assert all(file.size_bytes == 10 + 46 for file in opened)
    for file in opened:
        file.close()
    assert files.files_from(31) == []
