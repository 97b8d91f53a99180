"""Two threads replace one file: whatever the order in which they get to it, the newest content stays."""

from itertools import permutations

import pytest

from odradek.broker.disk.atomic_file import AtomicFile
from odradek.broker.disk.memory_disk import MemoryDisk
from tests.broker.log.logs import FaultyDisk, full


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_an_older_content_never_replaces_a_newer_one(order: tuple[int, ...]) -> None:
    disk = MemoryDisk()
    file = AtomicFile(disk, "f")
    writes = [file.prepare(b"%d" % number) for number in range(3)]
    newest = -1
    for number in order:
        assert writes[number]() == (number > newest)
        newest = max(newest, number)
        assert disk.read_whole("f") == b"%d" % newest


def test_a_write_that_failed_may_be_tried_again() -> None:
    disk = FaultyDisk()
    file = AtomicFile(disk, "f")
    write = file.prepare(b"new")
    disk.fail_at(0, full, for_good=True)
    with pytest.raises(OSError):
        write()
    disk.heal()
    assert write()
    assert disk.read_whole("f") == b"new"


def test_writing_at_once_overtakes_what_was_prepared_before() -> None:
    disk = MemoryDisk()
    file = AtomicFile(disk, "f")
    write = file.prepare(b"old")
    file.write(b"new")
    assert not write()
    assert disk.read_whole("f") == b"new"
