"""Every flipped byte of a small data directory is found: each bit of each index is flipped by itself, and of each byte
of the logs and snapshots one.

What cannot be told from a true file is listed: an index entry that names the last offset of a later batch, or the
record with the timestamp. Older versions of Kafka wrote such entries, they lead nobody astray, and they are told of as
a note. A bit of a log is always seen, those before the checksummed range too: the base offset by its neighbours, the
indexes and the recovery point, the leader epoch by its checkpoint.
"""

import posixpath

import pytest

from odradek.broker.offline.dump.findings import Inconsistency, Note
from odradek.broker.offline.dump.partition_check import Report
from odradek.broker.offline.dump.verifying import verify
from tests.broker.offline.dump.laid_down import DATA_DIR, ORDERS, sample_disk

SUFFIXES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
HARMLESS = {
    ".index": "names the last offset of a later batch, as Kafka's followers once wrote them",
    ".timeindex": "names the record with the timestamp",
}


def notes_on(path: str, checked: list[object]) -> list[str]:
    reports = [each for each in checked if isinstance(each, Report)]
    notes = [note for report in reports for note in report.notes] + [each for each in checked if isinstance(each, Note)]
    return [note.text for note in notes if note.path == path]


def bits_of(suffix: str, size_bytes: int) -> list[int]:
    if suffix in (".log", ".snapshot"):
        return [8 * position + position % 8 for position in range(size_bytes)]
    return list(range(8 * size_bytes))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_flipped_bit_is_found(suffix: str) -> None:
    disk = sample_disk()
    paths = [f"{ORDERS}/{name}" for name in disk.list_dir(ORDERS) if posixpath.splitext(name)[1] == suffix]
    flips = 0
    harmless: list[str] = []
    for path in paths:
        intact = disk.read_whole(path)
        for bit in bits_of(suffix, len(intact)):
            flipped = bytearray(intact)
            flipped[bit // 8] ^= 1 << bit % 8
            disk.write_whole(path, flipped)
            flips += 1
            try:
                checked: list[object] = list(verify(disk, DATA_DIR))
            except Inconsistency:
                continue
            expected = HARMLESS.get(suffix, "")
            notes = notes_on(path, checked)
            assert expected and any(expected in note for note in notes), f"{path}: bit {bit} is not seen: {notes}"
            harmless.append(f"{path}: {bit}")
        disk.write_whole(path, intact)
    assert flips > 400
    assert len(harmless) <= flips // 100, harmless


def test_the_intact_directory_is_sound() -> None:
    found = {each.path: each for each in verify(sample_disk(), DATA_DIR) if isinstance(each, Report)}
    orders = found[ORDERS]
    assert (orders.segments, orders.batches, orders.records, orders.end_offset) == (3, 13, 18, 18)
    assert (orders.offset_entries, orders.time_entries, orders.aborted_transactions, orders.snapshots) == (7, 7, 2, 3)
    assert orders.notes == []
    assert found["data/others-1"].end_offset == 0
