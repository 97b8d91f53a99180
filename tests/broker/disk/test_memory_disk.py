"""The disk in memory runs full as a real one does, and lets tests watch and break what they like through its hooks."""

import errno
import threading
from collections.abc import Callable

import pytest

from odradek.broker.disk.disk_page_cache import NotCached
from odradek.broker.disk.memory_disk import Content, MemoryDisk


def test_a_full_disk_takes_no_byte_of_an_append_that_does_not_fit() -> None:
    disk = MemoryDisk(size_bytes_max=10)
    file = disk.open("f")
    file.append([b"0123456"])
    assert disk.free_bytes("/") == 3
    with pytest.raises(OSError) as caught:
        file.append([b"ab", b"cd"])
    assert caught.value.errno == errno.ENOSPC
    assert disk.free_bytes("/") == 3
    assert disk.read_whole("f") == b"0123456"
    file.append([b"abc"])
    assert disk.free_bytes("/") == 0
    with pytest.raises(OSError):
        disk.write_whole("g", b"x")
    assert disk.list_dir("/") == ["f"]


def test_removing_and_cutting_make_room() -> None:
    disk = MemoryDisk(size_bytes_max=10)
    file = disk.open("f")
    file.append([b"0123456789"])
    file.truncate(6)
    disk.write_whole("g", b"abcd")
    with pytest.raises(OSError):
        file.append([b"x"])
    disk.remove("g")
    assert file.append([b"wxyz"]) == 6
    assert disk.total_bytes("/") == 10


def test_preallocated_room_is_taken_and_given_back() -> None:
    disk = MemoryDisk(size_bytes_max=10)
    file = disk.open("f")
    file.append([b"01"])
    file.preallocate(7)
    assert disk.free_bytes("/") == 3
    disk.write_whole("g", b"abc")
    assert file.append([b"23456"]) == 2, "it needs no more room"
    with pytest.raises(OSError):
        file.append([b"7"])
    assert disk.read_whole("f") == b"0123456"
    disk.remove("g")
    file.preallocate(9)
    assert disk.free_bytes("/") == 1
    with pytest.raises(OSError) as caught:
        file.preallocate(11)
    assert caught.value.errno == errno.ENOSPC
    assert disk.free_bytes("/") == 3, "what was preallocated before is given up, too"
    file.preallocate(10)
    file.truncate(7)
    assert disk.free_bytes("/") == 3


def test_a_failed_append_gives_the_room_up_with_what_it_wrote() -> None:
    disk = MemoryDisk(size_bytes_max=10)
    file = disk.open("f")
    file.preallocate(8)
    with pytest.raises(OSError):
        file.append([b"01234", b"56789ab"])
    assert disk.read_whole("f") == b""
    assert disk.free_bytes("/") == 10


class HookedDisk(MemoryDisk):
    """Overrides what tests may override."""

    def __init__(self) -> None:
        super().__init__()
        self.synced: list[bytes] = []
        self.cached = 0
        self.asked: list[tuple[str, int, int]] = []
        self.error: OSError | None = None

    def sync(self, content: Content) -> None:
        self.synced.append(bytes(content))
        self.fail()

    def reserve(self, content: Content, size_bytes: int) -> None:
        super().reserve(content, size_bytes)
        self.fail()

    def cached_bytes(self, path: str, position: int, size_bytes: int) -> int:
        self.asked.append((path, position, size_bytes))
        return self.cached

    def fail(self) -> None:
        if self.error is not None:
            raise self.error


def test_every_sync_of_a_file_can_be_watched_and_broken() -> None:
    disk = HookedDisk()
    file = disk.open("f")
    file.append([b"a"])
    syncer = file.syncer()
    file.append([b"b"])
    assert disk.synced == []
    syncer()
    file.sync()
    disk.write_whole("g", b"c")
    disk.write_new("h", [b"d", b"e"])
    assert disk.synced == [b"ab", b"ab", b"c", b"de"]
    disk.error = OSError(errno.EIO, "broken")
    uses: tuple[Callable[[], object], ...] = (
        file.sync,
        file.syncer(),
        lambda: disk.write_whole("g", b"new"),
        lambda: disk.write_new("i", [b"f"]),
    )
    for use in uses:
        with pytest.raises(OSError, match="broken"):
            use()
    assert disk.read_whole("g") == b"c"
    assert disk.list_dir("/") == ["f", "g", "h"]


def test_a_preallocation_that_is_made_to_fail_leaves_nothing() -> None:
    disk = HookedDisk()
    file = disk.open("f")
    file.append([b"a"])
    disk.error = OSError(errno.ENOSPC, "no room")
    with pytest.raises(OSError, match="no room"):
        file.preallocate(100)
    assert disk.sizes("/") == {"f": 1}
    file.preallocate(1)


class UncuttableDisk(MemoryDisk):
    """Where something fails, cutting it back fails, too, the first two times."""

    cuts_fail = 2

    def cut(self, content: Content, size_bytes: int) -> None:
        if self.cuts_fail:
            self.cuts_fail -= 1
            raise OSError(errno.EIO, "cannot cut")
        super().cut(content, size_bytes)


def test_a_cut_that_fails_leaves_preallocated_space_which_truncate_gives_back() -> None:
    disk = UncuttableDisk(size_bytes_max=10)
    file = disk.open("f")
    file.append([b"ab"])
    with pytest.raises(OSError, match="cannot cut"):
        file.preallocate(11)
    assert (disk.sizes("/"), file.size_bytes) == ({"f": 10}, 2)
    disk.cuts_fail = 0
    file.truncate(2)
    assert disk.sizes("/") == {"f": 2}


def test_no_room_is_made_behind_what_a_failed_append_left() -> None:
    disk = UncuttableDisk(size_bytes_max=10)
    file = disk.open("f")
    file.append([b"ab"])
    for use in (lambda: file.append([b"cdefghijkl"]), lambda: file.preallocate(5)):
        with pytest.raises(OSError, match="cannot cut"):
            use()
        assert disk.read_whole("f") == b"abcdefghij"
    file.preallocate(5)
    assert disk.read_whole("f") == b"ab" + bytes(3)


def test_what_is_said_to_be_cold_has_to_be_read_first() -> None:
    disk = HookedDisk()
    file = disk.open("f")
    file.append([b"0123456789"])
    assert file.pread(10, 0) == b"0123456789"
    assert disk.asked == [], "outside of the block nobody asks"
    with disk.cached_only():
        with pytest.raises(NotCached) as caught:
            file.pread(20, 2)
        assert (caught.value.path, caught.value.position, caught.value.size_bytes) == ("f", 2, 8)
        assert disk.asked == [("f", 2, 8)]
        disk.cached = 3
        assert file.pread(3, 2) == b"234"
        assert file.pread(8, 2, at_least=3) == b"234"
        for at_least in (None, 4):
            with pytest.raises(NotCached):
                file.pread(8, 2, at_least)
        disk.read_range("f", 2, 5)
        assert file.pread(5, 2) == b"23456"
        assert file.pread(8, 2, at_least=4) == b"23456"
        with pytest.raises(NotCached):
            file.pread(8, 2)
        disk.cached = 100
        assert file.pread(8, 2) == b"23456789"
        assert file.pread(3, 2) == b"234"


def test_the_block_is_for_the_thread_that_entered_it() -> None:
    disk = HookedDisk()
    file = disk.open("f")
    file.append([b"0123"])
    read: list[bytes | bytearray] = []
    thread = threading.Thread(target=lambda: read.append(file.pread(4, 0)))
    with disk.cached_only():
        thread.start()
        thread.join()
    assert read == [b"0123"]


def test_a_new_file_that_does_not_fit_is_removed() -> None:
    disk = MemoryDisk(size_bytes_max=10)
    with pytest.raises(OSError) as caught:
        disk.write_new("f", [b"012345", b"6789ab"])
    assert caught.value.errno == errno.ENOSPC
    assert (disk.list_dir("/"), disk.free_bytes("/")) == ([], 10)


def test_a_size_that_was_told_before_the_file_changed_is_our_mistake() -> None:
    disk = MemoryDisk()
    disk.write_whole("f", b"0123")
    with pytest.raises(AssertionError, match="before the file changed"):
        disk.open("f", 3)
