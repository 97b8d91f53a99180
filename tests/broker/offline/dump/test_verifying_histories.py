"""No false alarm, and no crash: random histories with transactions, rolls, compaction and retention are sound, after a
crash too, and whatever is damaged in them, verifying ends with an inconsistency or without, and printing ends.
"""

import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.offline.dump import segment_check
from odradek.broker.offline.dump.findings import Inconsistency
from odradek.broker.offline.dump.lines import json_of, text_of
from odradek.broker.offline.dump.partition_check import Report
from odradek.broker.offline.dump.places import files_of
from odradek.broker.offline.dump.reading import lines_of
from odradek.broker.offline.dump.verifying import verify
from tests.broker.log.compacted_logs import MemoryLog
from tests.broker.offline.dump.histories import History
from tests.broker.offline.dump.laid_down import (
    CLEAN_SHUTDOWN,
    DATA_DIR,
    HIGH_WATERMARKS,
    ORDERS,
    RECOVERY_POINTS,
    write_checkpoint,
    write_data_directory,
    write_partition,
)


@pytest.fixture(scope="module", autouse=True)
def hurry() -> Iterator[None]:
    """No broker is running: a tail that is torn stays so, however often one looks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment_check, "LOOKS", 3)
        yield


seeds = st.integers(0, 2**32 - 1)


def history(rng: random.Random) -> MemoryLog:
    found = History(rng)
    for _ in range(rng.randrange(1, 4)):
        found.grow(rng.randrange(25))
        kind = rng.random()
        if kind < 0.5:
            found.compact()
        elif kind < 0.7:
            found.drop_oldest()
    found.grow(rng.randrange(10))
    return found.log


def laid_down(log: MemoryLog) -> MemoryDisk:
    disk = MemoryDisk()
    write_partition(disk, ORDERS, log)
    write_data_directory(disk, {("orders", 0): log.next_offset})
    return disk


def crash(disk: MemoryDisk, log: MemoryLog, rng: random.Random) -> None:
    """What may be missing then: snapshots, newest entries of the last indexes, the newest epoch, checkpoints."""
    disk.remove(CLEAN_SHUTDOWN)
    last = f"{ORDERS}/{log.segments[-1].base_offset:020d}"
    for suffix, row_bytes in ((".index", 8), (".timeindex", 12)):
        rows = disk.read_whole(last + suffix)
        disk.write_whole(last + suffix, rows[: row_bytes * rng.randrange(len(rows) // row_bytes + 1)] + bytes(240))
    if rng.random() < 0.5:
        disk.write_whole(f"{last}.log", disk.read_whole(f"{last}.log") + bytes(rng.randrange(3000)))
    for name in disk.list_dir(ORDERS):
        if name.endswith(".snapshot") and rng.random() < 0.5:
            disk.remove(f"{ORDERS}/{name}")
    for path in (RECOVERY_POINTS, HIGH_WATERMARKS):
        write_checkpoint(disk, path, [("orders", 0, rng.randrange(log.next_offset + 1)), ("gone", 1, 5)])
    if rng.random() < 0.3:
        write_checkpoint(disk, f"{ORDERS}/leader-epoch-checkpoint", [])


@settings(max_examples=100)
@given(seeds)
def test_a_history_is_sound(seed: int) -> None:
    rng = random.Random(seed)
    log = history(rng)
    disk = laid_down(log)
    (report,) = (each for each in verify(disk, DATA_DIR) if isinstance(each, Report))
    assert report.end_offset == log.next_offset
    assert report.batches == len(log.batches)
    assert report.aborted_transactions == len(log.rows)
    crash(disk, log, rng)
    (report,) = (each for each in verify(disk, DATA_DIR) if isinstance(each, Report))
    assert report.batches == len(log.batches)


@settings(max_examples=100)
@given(seeds)
def test_nothing_makes_it_crash(seed: int) -> None:
    rng = random.Random(seed)
    disk = laid_down(history(rng))
    paths = [path for path, _ in files_of(disk, DATA_DIR)]
    for _ in range(rng.randrange(1, 4)):
        path = rng.choice(paths)
        if disk.exists(path):
            damage(disk, path, paths, rng)
    try:
        list(verify(disk, DATA_DIR))
    except Inconsistency as found:
        assert str(found).startswith(DATA_DIR)
    for path, name in files_of(disk, DATA_DIR):
        for line in lines_of(disk, path, name, with_records=True):
            assert text_of(line) and json_of(line, path)
        try:
            list(verify(disk, path))
        except Inconsistency as found:
            assert str(found).startswith(ORDERS if path.startswith(ORDERS) else path)


def damage(disk: MemoryDisk, path: str, paths: list[str], rng: random.Random) -> None:
    data = bytearray(disk.read_whole(path))
    match rng.randrange(6):
        case 0:
            disk.remove(path)
            return
        case 1:
            del data[rng.randrange(len(data) + 1) :]
        case 2:
            data += rng.randbytes(rng.randrange(1, 100))
        case 3:
            at = rng.randrange(len(data) + 1)
            data[at : at + 8] = rng.randbytes(8)
        case 4:
            at = rng.randrange(len(data) + 1)
            data[at : at + 4] = b"\xff\xff\xff\xff"
        case _:
            other = rng.choice(paths)
            data = bytearray(disk.read_whole(other)) if disk.exists(other) else data
    disk.write_whole(path, data)
