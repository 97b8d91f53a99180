"""What every disk promises (broker/disk.py): on real files, on real files with a single descriptor, in memory."""

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.disk import Disk, FileDisk, LockHeld
from broker.memory_disk import MemoryDisk

MakeDisk = Callable[[], Disk]
DISKS: dict[str, MakeDisk] = {
    "files": FileDisk,
    "files, one descriptor": lambda: FileDisk(descriptors_max=1),
    "memory": MemoryDisk,
    "memory, bounded": lambda: MemoryDisk(size_bytes_max=1 << 20),
}


@pytest.fixture(params=list(DISKS))
def disk(request: pytest.FixtureRequest) -> Disk:
    return DISKS[request.param]()


@pytest.fixture
def top(disk: Disk, tmp_path: Path) -> str:
    """A directory on the disk."""
    path = f"{tmp_path}/top"
    disk.make_dir(path)
    return path


def test_append_puts_parts_of_any_buffer_type_at_the_end_and_answers_the_position(disk: Disk, top: str) -> None:
    file = disk.open(f"{top}/f")
    assert file.size_bytes == 0
    assert file.append([b"abc", bytearray(b"de"), memoryview(b"xfgh")[1:]]) == 0
    assert file.append([b"", b"ij"]) == 8
    assert file.append([]) == 10
    assert file.size_bytes == 10
    assert disk.read_whole(f"{top}/f") == b"abcdefghij"
    assert file.path == f"{top}/f"


def test_append_takes_more_parts_than_one_writev_does(disk: Disk, top: str) -> None:
    file = disk.open(f"{top}/f")
    parts = [number.to_bytes(3, "big") for number in range(5000)]
    file.append([b"first"])
    assert file.append(parts) == 5
    assert file.pread(1 << 20, 5) == b"".join(parts)


def test_pread_answers_what_is_there_and_never_more(disk: Disk, top: str) -> None:
    file = disk.open(f"{top}/f")
    file.append([b"0123456789"])
    assert file.pread(3, 2) == b"234"
    assert file.pread(100, 8) == b"89"
    assert file.pread(100, 10) == b""
    assert file.pread(100, 11) == b""
    assert file.pread(0, 3) == b""


def test_a_file_opened_again_goes_on_where_it_ended(disk: Disk, top: str) -> None:
    file = disk.open(f"{top}/f")
    file.append([b"before"])
    file.close()
    again = disk.open(f"{top}/f")
    assert again.size_bytes == 6
    assert again.append([b" after"]) == 6
    assert again.pread(100, 0) == b"before after"


def test_truncate_cuts_and_appends_go_on_there(disk: Disk, top: str) -> None:
    file = disk.open(f"{top}/f")
    file.append([b"0123456789"])
    file.truncate(4)
    assert file.size_bytes == 4
    assert file.pread(100, 0) == b"0123"
    assert file.append([b"x"]) == 4
    assert disk.read_whole(f"{top}/f") == b"0123x"
    file.truncate(0)
    assert disk.read_whole(f"{top}/f") == b""
    with pytest.raises(AssertionError):
        file.truncate(1)


def test_a_closed_file_takes_nothing(disk: Disk, top: str) -> None:
    file = disk.open(f"{top}/f")
    file.append([b"x"])
    file.sync()
    file.close()
    file.close()
    for use in (lambda: file.append([b"y"]), lambda: file.pread(1, 0), lambda: file.truncate(0), file.sync):
        with pytest.raises(OSError) as caught:
            use()
        assert caught.value.errno == errno.EBADF
    assert disk.read_whole(f"{top}/f") == b"x"


def test_two_files_are_apart(disk: Disk, top: str) -> None:
    one, two = disk.open(f"{top}/1"), disk.open(f"{top}/2")
    for number in range(3):
        one.append([b"one%d" % number])
        two.append([b"second%d" % number])
    assert one.pread(100, 0) == b"one0one1one2"
    assert two.pread(100, 0) == b"second0second1second2"


def test_open_needs_a_parent_and_is_not_for_directories(disk: Disk, top: str) -> None:
    with pytest.raises(FileNotFoundError):
        disk.open(f"{top}/missing/f")
    with pytest.raises(IsADirectoryError):
        disk.open(top)
    disk.open(f"{top}/f").close()
    with pytest.raises(NotADirectoryError):
        disk.open(f"{top}/f/below")


def test_names_come_sorted_and_one_level_deep(disk: Disk, top: str) -> None:
    assert disk.list_dir(top) == []
    for name in ("b", "a", "c"):
        disk.open(f"{top}/{name}").close()
    disk.make_dir(f"{top}/d/e")
    disk.make_dir(f"{top}/d/e")
    assert disk.list_dir(top) == ["a", "b", "c", "d"]
    assert disk.list_dir(f"{top}/d") == ["e"]
    with pytest.raises(FileNotFoundError):
        disk.list_dir(f"{top}/missing")
    with pytest.raises(NotADirectoryError):
        disk.list_dir(f"{top}/a")
    with pytest.raises(FileExistsError):
        disk.make_dir(f"{top}/a")


def test_exists_and_is_dir(disk: Disk, top: str) -> None:
    disk.open(f"{top}/f").close()
    assert [disk.exists(path) for path in (top, f"{top}/f", f"{top}/g", f"{top}/f/g")] == [True, True, False, False]
    assert [disk.is_dir(path) for path in (top, f"{top}/f", f"{top}/g")] == [True, False, False]


def test_rename_replaces_a_file(disk: Disk, top: str) -> None:
    disk.write_whole(f"{top}/a", b"new")
    disk.write_whole(f"{top}/b", b"old")
    disk.rename(f"{top}/a", f"{top}/b")
    assert disk.list_dir(top) == ["b"]
    assert disk.read_whole(f"{top}/b") == b"new"
    disk.rename(f"{top}/b", f"{top}/b")
    assert disk.read_whole(f"{top}/b") == b"new"
    with pytest.raises(FileNotFoundError):
        disk.rename(f"{top}/a", f"{top}/c")
    with pytest.raises(FileNotFoundError):
        disk.rename(f"{top}/b", f"{top}/missing/b")
    disk.make_dir(f"{top}/d")
    with pytest.raises(IsADirectoryError):
        disk.rename(f"{top}/b", f"{top}/d")


def test_rename_moves_a_directory_with_all_below_it(disk: Disk, top: str) -> None:
    disk.make_dir(f"{top}/d/e")
    disk.write_whole(f"{top}/d/e/f", b"x")
    disk.rename(f"{top}/d", f"{top}/moved")
    assert disk.list_dir(top) == ["moved"]
    assert disk.read_whole(f"{top}/moved/e/f") == b"x"
    disk.make_dir(f"{top}/empty")
    disk.rename(f"{top}/moved", f"{top}/empty")
    assert disk.read_whole(f"{top}/empty/e/f") == b"x"
    disk.make_dir(f"{top}/full/g")
    with pytest.raises(OSError) as caught:
        disk.rename(f"{top}/empty", f"{top}/full")
    assert caught.value.errno in (errno.ENOTEMPTY, errno.EEXIST)
    disk.write_whole(f"{top}/file", b"")
    with pytest.raises(NotADirectoryError):
        disk.rename(f"{top}/empty", f"{top}/file")


def test_remove_and_remove_tree(disk: Disk, top: str) -> None:
    disk.write_whole(f"{top}/f", b"x")
    disk.remove(f"{top}/f")
    with pytest.raises(FileNotFoundError):
        disk.remove(f"{top}/f")
    disk.make_dir(f"{top}/d/e")
    disk.write_whole(f"{top}/d/e/f", b"x")
    with pytest.raises(OSError):
        disk.remove(f"{top}/d")
    disk.remove_tree(f"{top}/d")
    assert disk.list_dir(top) == []
    with pytest.raises(FileNotFoundError):
        disk.remove_tree(f"{top}/d")


def test_write_whole_replaces_the_content_and_leaves_nothing_beside_it(disk: Disk, top: str) -> None:
    disk.write_whole(f"{top}/f", b"a long first content")
    disk.write_whole(f"{top}/f", memoryview(b"short"))
    assert disk.read_whole(f"{top}/f") == b"short"
    assert disk.list_dir(top) == ["f"]
    with pytest.raises(FileNotFoundError):
        disk.write_whole(f"{top}/missing/f", b"")
    with pytest.raises(FileNotFoundError):
        disk.read_whole(f"{top}/missing")
    with pytest.raises(IsADirectoryError):
        disk.read_whole(top)
    with pytest.raises(IsADirectoryError):
        disk.write_whole(top, b"")
    disk.sync_dir(top)
    with pytest.raises(FileNotFoundError):
        disk.sync_dir(f"{top}/missing")


def test_a_lock_is_held_once_until_released(disk: Disk, top: str) -> None:
    lock = disk.lock(f"{top}/.lock")
    with pytest.raises(LockHeld, match=r"another running broker holds the lock file.*\.lock"):
        disk.lock(f"{top}/.lock")
    lock.release()
    lock.release()
    disk.lock(f"{top}/.lock").release()
    assert disk.list_dir(top) == [".lock"]


def test_sizes_of_the_disk_are_plausible(disk: Disk, top: str) -> None:
    disk.write_whole(f"{top}/f", bytes(1000))
    assert 0 < disk.free_bytes(top) <= disk.total_bytes(top)
    assert disk.total_bytes(top) < 1 << 63
