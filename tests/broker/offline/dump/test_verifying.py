"""A file by itself is checked as far as it goes; a partition's directory knows of a clean stop from the one above."""

import pytest

from odradek.broker.offline.dump.partition_check import Report
from odradek.broker.offline.dump.verifying import FileReport, verify
from tests.broker.offline.dump.damages import (
    EPOCHS,
    FIRST,
    LAST,
    SECOND,
    Damage,
    add,
    inconsistency,
    notes,
    put,
    remove,
    replace,
)
from tests.broker.offline.dump.laid_down import CLEAN_SHUTDOWN, ORDERS, RECOVERY_POINTS, sample_disk

META = "data/meta.properties"
SOUND = {
    f"{FIRST}.log": FileReport(f"{FIRST}.log", batches=5),
    f"{FIRST}.index": FileReport(f"{FIRST}.index", entries=3),
    f"{FIRST}.timeindex": FileReport(f"{FIRST}.timeindex", entries=4),
    f"{SECOND}.txnindex": FileReport(f"{SECOND}.txnindex", entries=2),
    f"{SECOND}.snapshot": FileReport(f"{SECOND}.snapshot", entries=3),
    EPOCHS: FileReport(EPOCHS, entries=3),
    RECOVERY_POINTS: FileReport(RECOVERY_POINTS, entries=2),
    f"{ORDERS}/partition.metadata": FileReport(f"{ORDERS}/partition.metadata"),
    META: FileReport(META),
}

DAMAGED: dict[str, tuple[Damage, str, str]] = {
    "a log": (put(f"{FIRST}.log", 100, ">B", 1), f"{FIRST}.log", "the batch carries the checksum"),
    "an index": (put(f"{FIRST}.index", 4, ">i", 155), f"{FIRST}.index", "where no batch starts"),
    "a time index": (put(f"{FIRST}.timeindex", 8, ">i", 4), f"{FIRST}.timeindex", "the largest timestamp of its batch"),
    "a transaction index": (put(f"{SECOND}.txnindex", 9, ">b", 8), f"{SECOND}.txnindex", "is that of producer 9"),
    "an index behind the log": (add(f"{FIRST}.index", b"\0\0\0\7\0\0\3\0"), f"{FIRST}.index", "the log ends at 591"),
    "times behind the log": (put(f"{LAST}.timeindex", 8, ">i", 9), f"{LAST}.timeindex", "the log ends at 18"),
    "a transaction behind the log": (
        add(f"{SECOND}.txnindex", b"\0\0" + b"".join(n.to_bytes(8, "big") for n in (9, 13, 40, 41))),
        f"{SECOND}.txnindex",
        "no abort marker stands at offset 40",
    ),
    "an index without its log": (
        remove(f"{FIRST}.log"),
        f"{FIRST}.index",
        f"there is no {FIRST}.log that it could bel",
    ),
    "a snapshot": (add(f"{FIRST[:-2]}18.snapshot", b"x"), f"{FIRST[:-2]}18.snapshot", "does not have the checksum"),
    "epochs": (replace(EPOCHS, b"0\n2\n3 0\n3 8\n"), EPOCHS, "both numbers must increase"),
    "offsets": (replace(RECOVERY_POINTS, b"0\n1\norders 0 -1\n"), RECOVERY_POINTS, "is no number from 0"),
    "an id": (replace(f"{ORDERS}/partition.metadata", b"?"), f"{ORDERS}/partition.metadata", "does not hold a version"),
    "properties": (replace(META, b"version=1\n"), META, "it has no cluster.id"),
}


@pytest.mark.parametrize("path", SOUND)
def test_a_sound_file_is_counted(path: str) -> None:
    assert list(verify(sample_disk(), path)) == [SOUND[path]]


@pytest.mark.parametrize(("damage", "path", "told"), DAMAGED.values(), ids=DAMAGED.keys())
def test_a_file_alone_is_checked(damage: Damage, path: str, told: str) -> None:
    disk = sample_disk()
    damage(disk)
    assert told in inconsistency(disk, path)


def test_a_log_alone_needs_nothing_beside_it() -> None:
    disk = sample_disk()
    for name in disk.list_dir(ORDERS):
        if not name.endswith(".log"):
            disk.remove(f"{ORDERS}/{name}")
    for path in (FIRST, SECOND, LAST):
        (report,) = verify(disk, f"{path}.log")
        assert isinstance(report, FileReport) and report.batches in (5, 6, 2)
    disk.rename(f"{FIRST}.log", f"{FIRST}.log.deleted")
    assert list(verify(disk, f"{FIRST}.log.deleted")) == [FileReport(f"{FIRST}.log.deleted", batches=5)]


def test_notes_on_a_file_are_told() -> None:
    disk = sample_disk()
    add(f"{LAST}.log", bytes(100))(disk)
    told = f"{LAST}.log: position 222: 100 bytes of zeros: preallocated, or never written"
    for suffix in (".log", ".index", ".timeindex"):
        assert notes(disk, f"{LAST}{suffix}") == [told]
    replace(f"{FIRST}.index", b"\0\0\0\5\0\0\0\x9a")(disk)
    (note,) = notes(disk, f"{FIRST}.index")
    assert "names the last offset of a later batch" in note


def test_what_is_not_looked_into_is_a_note() -> None:
    disk = sample_disk()
    disk.write_whole("data/metadata.log", b"")
    assert notes(disk, "data/metadata.log") == ["data/metadata.log: the cluster's metadata, which is not looked into"]
    (note,) = verify(disk, CLEAN_SHUTDOWN)
    assert not isinstance(note, Report | FileReport) and note.text == "the broker stopped cleanly"


def test_a_partition_knows_of_a_clean_stop_from_the_directory_above() -> None:
    disk = sample_disk()
    (report,) = verify(disk, ORDERS)
    assert isinstance(report, Report) and report.end_offset == 18
    replace(f"{LAST}.timeindex", b"")(disk)
    assert "entry 0 is missing" in inconsistency(disk, ORDERS)
    disk.remove(CLEAN_SHUTDOWN)
    assert notes(disk, ORDERS) == []
