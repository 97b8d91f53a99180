"""The top of a data directory: whose it is, topic ids, and everything that is not looked into is named."""

import pytest

from odradek.broker.offline.dump.findings import Note
from odradek.broker.offline.dump.partition_check import Report
from odradek.broker.offline.dump.verifying import verify
from odradek.protocol.primitives import uuid_text
from tests.broker.log.compacted_logs import MemoryLog
from tests.broker.offline.dump.damages import OTHERS, Case, Damage, check_cases, notes, remove, replace
from tests.broker.offline.dump.laid_down import (
    CLEAN_SHUTDOWN,
    DATA_DIR,
    ORDERS,
    ORDERS_ID,
    OTHERS_ID,
    sample_disk,
    write_partition,
)

META = f"{DATA_DIR}/meta.properties"

CASES: dict[str, Case] = {
    "no meta.properties": (remove(META), f"{META}: it is missing: nothing says whose directory this is"),
    "a damaged one": (replace(META, b"version=1\n"), f"{META} is damaged: it has no cluster.id"),
    "an id of another topic": (
        replace(f"{OTHERS}/partition.metadata", f"version: 0\ntopic_id: {uuid_text(ORDERS_ID)}".encode()),
        f"{OTHERS}/partition.metadata: topic id {uuid_text(ORDERS_ID)}, which is that of topic orders, too",
    ),
    "two ids of one topic": (
        lambda disk: write_partition(disk, "data/orders-1", MemoryLog(), topic_id=OTHERS_ID, epochs=[]),
        f"data/orders-1/partition.metadata: topic id {uuid_text(OTHERS_ID)}, where another partition has "
        f"{uuid_text(ORDERS_ID)}",
    ),
}


@pytest.mark.parametrize(("damage", "told"), CASES.values(), ids=CASES.keys())
def test_contradictions_are_found(damage: Damage, told: str) -> None:
    check_cases(damage, told)


def test_partitions_come_by_topic_and_number() -> None:
    disk = sample_disk()
    for index in (10, 2):
        write_partition(disk, f"data/orders-{index}", MemoryLog(), epochs=[])
    found = [each.path for each in verify(disk, DATA_DIR) if isinstance(each, Report)]
    assert found == [ORDERS, "data/orders-2", "data/orders-10", "data/others-1"]


def test_a_clean_stop_is_told() -> None:
    told = Note(CLEAN_SHUTDOWN, "the broker stopped cleanly")
    for is_clean in (True, False):
        assert (told in list(verify(sample_disk(is_clean=is_clean), DATA_DIR))) is is_clean


def test_what_is_not_looked_into_is_named() -> None:
    disk = sample_disk()
    unknown = "0" * 32
    for name in (f"orders-3.{unknown}-delete", f"orders-4.{unknown}-stray", f"orders-5.{unknown}-future", "lost+found"):
        disk.make_dir(f"{DATA_DIR}/{name}")
    files = (".lock", "metadata.log", "metadata.revision", "bootstrap.checkpoint", "meta.properties.tmp", "x.log")
    for name in (*files, "orders-6", f"{7:020d}.log"):
        disk.write_whole(f"{DATA_DIR}/{name}", b"?")
    aside = "a partition that was put aside; it is not looked into"
    assert sorted(note.removeprefix(f"{DATA_DIR}/") for note in notes(disk)) == [
        f"{7:020d}.log: no part of a data directory",
        "lost+found: no partition; it is not looked into",
        "meta.properties.tmp: left over; it is replaced or removed",
        "metadata.log: the cluster's metadata, which is not looked into",
        "metadata.revision: the cluster's metadata, which is not looked into",
        f"orders-3.{unknown}-delete: {aside}",
        f"orders-4.{unknown}-stray: {aside}",
        f"orders-5.{unknown}-future: {aside}",
        "orders-6: no part of a data directory",
        "x.log: no part of a data directory",
    ]
