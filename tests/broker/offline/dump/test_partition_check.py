"""A partition's directory: what must be there, what is left over, gaps between batches, and what a broker that runs
meanwhile may do to it.
"""

from collections.abc import Callable

import pytest

from odradek.broker.disk.disk import Disk
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.offline.dump.partition_check import Report, check_partition
from tests.broker.offline.dump.damages import (
    FIRST,
    LAST,
    OTHERS,
    SECOND,
    Case,
    Damage,
    add,
    check_cases,
    inconsistency,
    notes,
    put,
    remove,
    replace,
)
from tests.broker.offline.dump.laid_down import ORDERS, sample_disk

EMPTY = f"{OTHERS}/{0:020d}"
NO_SEGMENT = remove(*(f"{EMPTY}{suffix}" for suffix in (".log", ".index", ".timeindex", ".snapshot")))

CASES: dict[str, Case] = {
    "no topic id": (
        remove(f"{ORDERS}/partition.metadata"),
        f"{ORDERS}/partition.metadata: it is missing: nothing says of which topic this is a partition",
    ),
    "a damaged topic id": (
        replace(f"{ORDERS}/partition.metadata", b"version: 0\ntopic_id: ?"),
        f"{ORDERS}/partition.metadata does not hold a version and a topic id",
    ),
    "no segment after a clean stop": (NO_SEGMENT, f"{OTHERS}: it holds no segment"),
    "a snapshot behind the end": (
        replace(f"{OTHERS}/{9:020d}.snapshot", b"\0\1\x48\x67\x4b\xc7\0\0\0\0"),
        f"{OTHERS}/{9:020d}.snapshot: it lies behind the end of the log, which is 0",
    ),
    "a snapshot within a batch": (
        replace(f"{ORDERS}/{1:020d}.snapshot", b"\0\1\x48\x67\x4b\xc7\0\0\0\0"),
        f"{ORDERS}/{1:020d}.snapshot: offset 1 lies within a batch that ends with 2",
    ),
    "a missing segment that was flushed": (
        remove(f"{LAST}.log", f"{LAST}.index", f"{LAST}.timeindex"),
        "it lies behind the end of the log, which is 15",
    ),
}


@pytest.mark.parametrize(("damage", "told"), CASES.values(), ids=CASES.keys())
def test_what_cannot_be_is_found(damage: Damage, told: str) -> None:
    check_cases(damage, told)


def test_a_partition_that_was_just_made_has_no_segment_yet() -> None:
    disk = sample_disk(is_clean=False)
    NO_SEGMENT(disk)
    assert notes(disk) == [f"{OTHERS}: it holds no segment yet"]


def test_what_is_no_part_of_the_log_is_named() -> None:
    disk = sample_disk()
    completed = "a compacted segment, which the next start puts in its place"
    for name in (
        f"{0:020d}.log.deleted",
        f"{0:020d}.index.0123456789abcdef.cleaned",
        f"{0:020d}.log.swap",
        "leader-epoch-checkpoint.tmp",
        f"{7:020d}.timeindex",
        f"{3:020d}.log.unreachable",
        ".odradek-unsynced",
        "notes.txt",
    ):
        disk.write_whole(f"{ORDERS}/{name}", b"?")
    assert notes(disk) == [
        f"{ORDERS}/.odradek-unsynced: a sync of this log failed: the next start copies what is in doubt",
        f"{ORDERS}/{0:020d}.log.swap: {completed}",
        f"{ORDERS}/{3:020d}.log.unreachable: no part of a log",
        f"{ORDERS}/notes.txt: no part of a log",
        f"{ORDERS}: left over; a running broker or the next start removes it: {0:020d}.index.0123456789abcdef.cleaned, "
        f"{0:020d}.log.deleted, {7:020d}.timeindex, leader-epoch-checkpoint.tmp",
    ]
    for number in range(3):
        disk.write_whole(f"{ORDERS}/{number:020d}.index.deleted", b"?")
    assert notes(disk)[-1].endswith(f"{2:020d}.index.deleted and 2 more")


def test_an_older_snapshot_that_was_kept_is_checked_by_itself() -> None:
    disk = sample_disk()
    remove(f"{FIRST}.log", f"{FIRST}.index", f"{FIRST}.timeindex")(disk)
    replace(f"{ORDERS}/{3:020d}.snapshot", b"\0\1\x48\x67\x4b\xc7\0\0\0\0")(disk)
    report = check_partition(disk, ORDERS, is_clean=True)
    assert (report.first_offset, report.snapshots, report.batches) == (8, 4, 8)
    add(f"{ORDERS}/{3:020d}.snapshot", b"x")(disk)
    assert f"{ORDERS}/{3:020d}.snapshot: it does not have the checksum" in inconsistency(disk)


def test_gaps_are_counted() -> None:
    assert check_partition(sample_disk(), ORDERS, is_clean=True).gaps == 0
    disk = sample_disk(is_clean=False)
    for name in (".log", ".index", ".timeindex", ".txnindex", ".snapshot"):
        disk.remove(f"{SECOND}{name}")
    report = check_partition(disk, ORDERS, is_clean=False)
    assert (report.gaps, report.segments, report.end_offset) == (1, 2, 18)


# -- beside a running broker ------------------------------------------------------------------------------------------


class BusyDisk(MemoryDisk):
    """On which something happens the first times that a file is read whole."""

    def __init__(self, happens: Callable[["BusyDisk"], None], times: int) -> None:
        super().__init__()
        self.happens = happens
        self.times = 0
        self.left = times

    def read_whole(self, path: str) -> bytes:
        data = super().read_whole(path)
        if path == f"{FIRST}.timeindex" and self.left:
            self.left -= 1
            self.times += 1
            self.happens(self)
        return data


def busy(happens: Callable[[BusyDisk], None], times: int = 1) -> BusyDisk:
    intact = sample_disk(is_clean=False)
    disk = BusyDisk(happens, times)
    for directory in ("data", ORDERS, OTHERS):
        disk.make_dir(directory)
        for name in intact.sizes(directory):
            disk.write_whole(f"{directory}/{name}", intact.read_whole(f"{directory}/{name}"))
    return disk


def drop_first_segment(disk: Disk) -> None:
    for suffix in (".log", ".index", ".timeindex"):
        if disk.exists(f"{FIRST}{suffix}"):
            disk.remove(f"{FIRST}{suffix}")


def test_a_segment_that_goes_away_is_not_missed() -> None:
    disk = busy(drop_first_segment)
    report = check_partition(disk, ORDERS, is_clean=False)
    assert disk.times == 1
    assert (report.first_offset, report.segments) == (8, 2)


def test_a_segment_that_is_swapped_is_looked_at_again() -> None:
    """Between its indexes, which were read, and its log: both are others then."""

    def swap(disk: Disk) -> None:
        disk.write_whole(f"{FIRST}.log", disk.read_whole(f"{FIRST}.log")[:482])
        disk.write_whole(f"{FIRST}.index", b"")
        disk.write_whole(f"{FIRST}.timeindex", disk.read_whole(f"{FIRST}.timeindex")[:36])
        disk.remove(f"{SECOND}.snapshot")
        disk.write_whole(f"{SECOND}.txnindex", disk.read_whole(f"{SECOND}.txnindex")[34:])

    disk = busy(swap)
    report = check_partition(disk, ORDERS, is_clean=False)
    assert disk.times == 1
    assert (report.batches, report.gaps) == (12, 1)


def test_what_changes_all_the_time_is_told_in_the_end() -> None:
    def grow(disk: Disk) -> None:
        disk.write_whole(f"{LAST}.log", disk.read_whole(f"{LAST}.log") + b"x")

    disk = busy(grow, times=99)
    put(f"{FIRST}.log", 100, ">B", 1)(disk)
    with pytest.raises(Exception, match="the batch carries the checksum"):
        check_partition(disk, ORDERS, is_clean=False)
    assert disk.times == 5


def test_what_is_wrong_and_does_not_change_is_looked_at_once() -> None:
    disk = busy(lambda _: None, times=99)
    put(f"{FIRST}.log", 100, ">B", 1)(disk)
    with pytest.raises(Exception, match="the batch carries the checksum"):
        check_partition(disk, ORDERS, is_clean=False)
    assert disk.times == 1


def test_a_partition_that_goes_away_is_an_error_by_itself_and_none_in_its_directory() -> None:
    disk = busy(lambda disk: disk.remove_tree(ORDERS))
    with pytest.raises(FileNotFoundError):
        check_partition(disk, ORDERS, is_clean=False)
    disk = busy(lambda disk: disk.remove_tree(ORDERS))
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        disk.remove(f"data/{name}")
    assert notes(disk) == []


def test_the_report_is_of_all() -> None:
    report = check_partition(sample_disk(), ORDERS, is_clean=True)
    assert report == Report(ORDERS, bytes(range(16)), 0, 18, 3, 13, 18, 0, 7, 7, 2, 3, 3, [])
