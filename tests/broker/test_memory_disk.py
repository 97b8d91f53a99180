"""The bounded disk in memory runs full as a real one does: a failed append leaves nothing, and room comes back."""

import errno

import pytest

from broker.memory_disk import MemoryDisk


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
