"""What every disk promises (broker/disk/disk.py): on real files, with a single descriptor or without RWF_NOWAIT, in
memory, and in a memory that plays a cold device."""

import errno
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from odradek.broker.disk.disk import Disk, File, LockHeld
from odradek.broker.disk.disk_page_cache import NotCached
from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.protocol.primitives import Buffer
from odradek.testing.hosting.gate import Gate
from odradek.testing.hosting.gated_disk import GatedDisk
from odradek.testing.sim.world.device import LosingDevice


class ColdDisk(MemoryDisk):
    """Nothing is in memory before it was read."""

    def cached_bytes(self, path: str, position: int, size_bytes: int) -> int:
        return 0


MakeDisk = Callable[[], Disk]
WITHOUT_FLAG = "files, without RWF_NOWAIT"
DISKS: dict[str, MakeDisk] = {
    "files": FileDisk,
    "files, one descriptor": lambda: FileDisk(descriptors_max=1),
    WITHOUT_FLAG: FileDisk,
    "memory": MemoryDisk,
    "memory, cold": ColdDisk,
    "memory, bounded": lambda: MemoryDisk(size_bytes_max=1 << 20),
    "memory, behind a gate": lambda: GatedDisk(MemoryDisk(), Gate()),
    "files, behind a gate": lambda: GatedDisk(FileDisk(), Gate()),
    "memory, losing what was not synced": LosingDevice,
}


@pytest.fixture(params=list(DISKS))
def disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Disk:
    if request.param == WITHOUT_FLAG:
        monkeypatch.delattr(os, "RWF_NOWAIT", raising=False)
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


def test_a_slice_holds_what_was_asked_for_whatever_becomes_of_the_file(disk: Disk, top: str) -> None:
    file = disk.open(f"{top}/f")
    file.append([b"0123456789"])
    slices = [file.slice(3, 2), file.slice(10, 0), file.slice(1, 9)]
    file.close()
    disk.remove(f"{top}/f")
    assert [b"" if each is None else each.read() for each in slices] in (
        [b"234", b"0123456789", b"9"],
        [b"", b"", b""],  # the kernel does not tell what is in memory, or there is no file
    )


def test_pread_answers_what_is_there_and_never_more(disk: Disk, top: str) -> None:
    file = disk.open(f"{top}/f")
    file.append([b"0123456789"])
    assert file.pread(3, 2) == b"234"
    assert file.pread(100, 8) == b"89"
    assert file.pread(100, 10) == b""
    assert file.pread(100, 11) == b""
    assert file.pread(0, 3) == b""


def test_a_position_before_the_beginning_is_an_error_that_names_the_file(disk: Disk, top: str) -> None:
    """Such a number comes from a damaged file, and is never taken for a place."""
    file = disk.open(f"{top}/f")
    file.append([b"0123456789"])
    for position in (-1, -10, -(2**31), -(2**63)):
        for read in (file.pread, file.slice):
            with pytest.raises(OSError, match="Invalid argument") as caught:
                read(3, position)
            assert (caught.value.errno, caught.value.filename) == (errno.EINVAL, f"{top}/f")
            with disk.cached_only(), pytest.raises(OSError, match="Invalid argument"):
                read(3, position)
    assert file.pread(3, 2**70) == b""


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
    uses: tuple[Callable[[], object], ...] = (
        lambda: file.append([b"y"]),
        lambda: file.pread(1, 0),
        lambda: file.truncate(0),
        lambda: file.preallocate(100),
        file.syncer,
        file.sync,
    )
    for use in uses:
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


def test_sizes_tells_files_and_their_sizes_by_name(disk: Disk, top: str) -> None:
    assert disk.sizes(top) == {}
    for size_bytes, name in enumerate(("b", "a", "c")):
        disk.write_whole(f"{top}/{name}", bytes(size_bytes))
    disk.make_dir(f"{top}/d")
    disk.write_whole(f"{top}/d/below", b"x")
    assert list(disk.sizes(top).items()) == [("a", 1), ("b", 0), ("c", 2)]
    disk.open(f"{top}/a").append([b"more"])
    assert disk.sizes(top)["a"] == 5
    with pytest.raises(FileNotFoundError):
        disk.sizes(f"{top}/missing")
    with pytest.raises(NotADirectoryError):
        disk.sizes(f"{top}/a")


def test_a_file_can_be_opened_by_the_size_that_was_told(disk: Disk, top: str) -> None:
    disk.write_whole(f"{top}/f", b"0123")
    for name, size_bytes in disk.sizes(top).items():
        file = disk.open(f"{top}/{name}", size_bytes)
        assert (file.size_bytes, file.pread(10, 1)) == (4, b"123")
        assert file.append([b"45"]) == 4
    assert disk.read_whole(f"{top}/f") == b"012345"
    with pytest.raises(FileNotFoundError):
        disk.open(f"{top}/missing", 4).pread(1, 0)
    assert disk.list_dir(top) == ["f"]


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


# ----------------------------------------------------------------------------------------------------------- durability
def test_a_syncer_works_once_whatever_became_of_the_file(disk: Disk, top: str) -> None:
    file = disk.open(f"{top}/f")
    file.append([b"x"])
    syncers = [file.syncer() for _ in range(3)]
    syncers[0]()
    disk.rename(f"{top}/f", f"{top}/g")
    syncers[1]()
    disk.remove(f"{top}/g")
    file.close()
    syncers[2]()
    for syncer in syncers:
        syncer.close()
        with pytest.raises(AssertionError):
            syncer()
    assert disk.list_dir(top) == []


def test_a_syncer_may_be_given_up(disk: Disk, top: str) -> None:
    syncer = disk.open(f"{top}/f").syncer()
    syncer.close()
    syncer.close()
    with pytest.raises(AssertionError):
        syncer()


# ---------------------------------------------------------------------------------------------------------- preallocate
needs_fallocate = pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason=f"{sys.platform} cannot preallocate")


@needs_fallocate
def test_preallocated_room_is_behind_the_end(disk: Disk, top: str) -> None:
    file = disk.open(f"{top}/f")
    file.append([b"abc"])
    file.preallocate(1000)
    assert disk.sizes(top) == {"f": 1000}
    assert file.size_bytes == 3
    assert file.pread(100, 0) == b"abc"
    assert file.pread(100, 3) == b""
    assert file.append([b"de", b"f"]) == 3
    assert disk.sizes(top) == {"f": 1000}
    assert file.pread(100, 2) == b"cdef"
    file.preallocate(2)
    file.preallocate(500)
    assert disk.sizes(top) == {"f": 1000}, "less than is there changes nothing"
    assert file.append([bytes(2000)]) == 6
    assert disk.sizes(top) == {"f": 2006}


@needs_fallocate
@pytest.mark.parametrize("size_bytes", [0, 2, 3])
def test_truncate_drops_what_is_preallocated(size_bytes: int, disk: Disk, top: str) -> None:
    file = disk.open(f"{top}/f")
    file.append([b"abc"])
    file.preallocate(1000)
    file.truncate(size_bytes)
    assert disk.read_whole(f"{top}/f") == b"abc"[:size_bytes]
    assert file.append([b"d"]) == size_bytes
    assert disk.read_whole(f"{top}/f") == b"abc"[:size_bytes] + b"d"


@needs_fallocate
def test_a_file_opened_again_ends_where_the_zeros_do(disk: Disk, top: str) -> None:
    """As after a crash: where the content ends is for the log to find out."""
    file = disk.open(f"{top}/f")
    file.append([b"abc"])
    file.preallocate(10)
    file.append([b"d"])
    file.close()
    assert disk.read_whole(f"{top}/f") == b"abcd" + bytes(6)
    assert disk.read_range(f"{top}/f", 3, 100) == b"d" + bytes(6)
    again = disk.open(f"{top}/f")
    assert again.size_bytes == 10
    assert again.pread(100, 0) == b"abcd" + bytes(6)
    again.truncate(4)
    assert again.append([b"e"]) == 4
    assert disk.read_whole(f"{top}/f") == b"abcde"


# ------------------------------------------------------------------------------------------------------ without waiting
def patient(disk: Disk, file: File, size_bytes: int, position: int, at_least: int | None = None) -> bytes:
    """Reads within the block; what is not there is fetched once, and the second try succeeds."""
    try:
        with disk.cached_only():
            return bytes(file.pread(size_bytes, position, at_least))
    except NotCached as missing:
        expected = min(size_bytes, file.size_bytes - position)
        assert (missing.path, missing.position, missing.size_bytes) == (file.path, position, expected)
        disk.read_range(missing.path, missing.position, missing.size_bytes)
        with disk.cached_only():
            return bytes(file.pread(size_bytes, position, at_least))


def test_what_is_not_in_memory_is_read_at_the_second_try(disk: Disk, top: str) -> None:
    file = disk.open(f"{top}/f")
    content = bytes(range(256)) * 1024
    file.append([content])
    for position, size_bytes in ((0, 10), (5, 100_000), (200_000, 10**6), (0, len(content)), (len(content) - 1, 1)):
        wanted = content[position : position + size_bytes]
        assert patient(disk, file, size_bytes, position) == wanted
        assert wanted.startswith(patient(disk, file, size_bytes, position, at_least=1))
        assert patient(disk, file, size_bytes, position, at_least=10**9) == wanted, "where the file ends, it ends"
    with disk.cached_only():
        assert file.pread(10, len(content)) == b""
        assert file.pread(10, len(content) + 1) == b""
        assert file.pread(0, 0) == b""


def test_outside_of_the_block_reads_wait(disk: Disk, top: str) -> None:
    file = disk.open(f"{top}/f")
    file.append([b"0123"])
    with disk.cached_only(), disk.cached_only():
        pass
    assert file.pread(10, 0) == b"0123"
    assert file.pread(10, 1, at_least=1) == b"123"
    with pytest.raises(ZeroDivisionError), disk.cached_only():
        _ = 1 // 0
    assert file.pread(10, 2) == b"23"


def test_read_range_answers_what_is_there(disk: Disk, top: str) -> None:
    disk.write_whole(f"{top}/f", b"0123456789")
    assert disk.read_range(f"{top}/f", 0, 4) == b"0123"
    assert disk.read_range(f"{top}/f", 7, 100) == b"789"
    assert disk.read_range(f"{top}/f", 10, 100) == b""
    assert disk.read_range(f"{top}/f", 100, 100) == b""
    with pytest.raises(FileNotFoundError):
        disk.read_range(f"{top}/missing", 0, 1)
    with pytest.raises(IsADirectoryError):
        disk.read_range(top, 0, 1)


# ------------------------------------------------------------------------------------------------------------ new files
def test_write_new_makes_a_file_of_parts_or_replaces_its_content(disk: Disk, top: str) -> None:
    parts: list[Buffer] = [b"abc", bytearray(b"de"), memoryview(b"xfgh")[1:], b""]
    assert disk.write_new(f"{top}/f", iter(parts)) == 8
    assert disk.read_whole(f"{top}/f") == b"abcdefgh"
    assert disk.write_new(f"{top}/f", [b"short"]) == 5
    assert disk.read_whole(f"{top}/f") == b"short"
    assert disk.write_new(f"{top}/f", []) == 0
    assert disk.sizes(top) == {"f": 0}
    with pytest.raises(FileNotFoundError):
        disk.write_new(f"{top}/missing/f", [])
    with pytest.raises(IsADirectoryError):
        disk.write_new(top, [])


def test_write_new_takes_parts_one_by_one_out_of_the_same_buffer(disk: Disk, top: str) -> None:
    buffer = bytearray(3)

    def parts() -> Iterator[bytearray]:
        for number in range(100):
            assert disk.sizes(top) == {"f": 3 * number}, "nothing is collected"
            buffer[:] = b"%03d" % number
            yield buffer

    assert disk.write_new(f"{top}/f", parts()) == 300
    assert disk.read_whole(f"{top}/f") == b"".join(b"%03d" % number for number in range(100))


def test_write_new_removes_the_file_when_a_part_cannot_be_had(disk: Disk, top: str) -> None:
    def parts() -> Iterator[bytes]:
        yield b"some"
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        disk.write_new(f"{top}/f", parts())
    assert disk.list_dir(top) == []
