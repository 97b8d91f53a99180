"""Rows of a transaction index that no marker bears out, or that say something else than the log, are found, and so is a
row that is missing; where the log does not go back so far, or was compacted, a row may say more than the log does.
"""

from struct import pack

import pytest

from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.aborted import encode_row
from odradek.broker.log.producers import AbortedTxn
from tests.broker.log.compacted_logs import MemoryLog, data_batch, marker_batch
from tests.broker.offline.dump.damages import (
    FIRST,
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
from tests.broker.offline.dump.laid_down import (
    CLEAN_SHUTDOWN,
    ORDERS,
    sample_disk,
    write_data_directory,
    write_partition,
)

INDEX = f"{SECOND}.txnindex"
ROWS = (AbortedTxn(9, 7, 10, 6), AbortedTxn(8, 6, 12, 13))


def rows(*txns: AbortedTxn, path: str = INDEX) -> Damage:
    return replace(path, b"".join(map(encode_row, txns)))


NO_MARKER = f"{INDEX}, position 0: row 0 is {ROWS[0]._replace(last_offset=9)}: no abort marker stands at offset 9"
MISSING = "a row is missing: producer 9 aborted the records from offset 7 on at offset 10"
CASES: dict[str, Case] = {
    "a version": (put(INDEX, 34, ">h", 1), f"{INDEX}, position 34: row 1 has version 1; only 0 is known"),
    "a cut row": (add(INDEX, b"\0\1"), f"{INDEX}, position 68: 2 bytes are no row of 34"),
    "zeros": (add(INDEX, bytes(34)), f"{INDEX}, position 68: 34 bytes are no row of 34"),
    "offsets that cannot be": (rows(ROWS[0]._replace(first_offset=11), ROWS[1]), f"{INDEX}, position 0: row 0 cannot "),
    "a negative offset": (rows(ROWS[0]._replace(first_offset=-1), ROWS[1]), "row 0 cannot be true"),
    "a stable offset that cannot be": (rows(ROWS[0], ROWS[1]._replace(last_stable_offset=14)), "row 1 cannot be true"),
    "rows not in order": (rows(ROWS[1], ROWS[0]), "row 1 ends with offset 10, behind one that ends with 12"),
    "no marker": (rows(ROWS[0]._replace(last_offset=9), ROWS[1]), NO_MARKER),
    "a commit marker": (rows(*ROWS, AbortedTxn(9, 13, 14, 15)), "no abort marker stands at offset 14"),
    "a marker of another segment": (rows(AbortedTxn(9, 7, 7, 6), path=f"{FIRST}.txnindex"), "no abort marker stands"),
    "another producer": (rows(ROWS[0]._replace(producer_id=8), ROWS[1]), "the marker there is that of producer 9"),
    "another first offset": (rows(ROWS[0]._replace(first_offset=8), ROWS[1]), "the transaction began at 7"),
    "an earlier first offset": (rows(ROWS[0]._replace(first_offset=5), ROWS[1]), "the transaction began at 7"),
    "another stable offset": (rows(ROWS[0]._replace(last_stable_offset=11), ROWS[1]), "the last stable offset was 6"),
    "a missing row": (rows(ROWS[1]), f"{INDEX}, position 0: {MISSING}"),
    "a missing last row": (rows(ROWS[0]), f"{INDEX}, position 34: a row is missing: producer 8 aborted the records fr"),
    "no file": (remove(INDEX), MISSING),
}  # fmt: skip


@pytest.mark.parametrize(("damage", "told"), CASES.values(), ids=CASES.keys())
def test_a_row_that_is_not_true_is_found(damage: Damage, told: str) -> None:
    check_cases(damage, told)


def test_an_empty_index_is_one() -> None:
    disk = sample_disk()
    replace(f"{FIRST}.txnindex", b"")(disk)
    assert notes(disk) == []


def beheaded_disk(row: AbortedTxn) -> MemoryDisk:
    """The sample without its first segment and its first two snapshots: the transactions began before the log."""
    disk = sample_disk()
    remove(*(f"{FIRST}{suffix}" for suffix in (".log", ".index", ".timeindex")))(disk)
    remove(f"{SECOND}.snapshot", f"{ORDERS}/{15:020d}.snapshot")(disk)
    rows(ROWS[0], row)(disk)
    return disk


@pytest.mark.parametrize("row", [ROWS[1], AbortedTxn(8, 3, 12, 13), AbortedTxn(8, 0, 12, 5)])
def test_what_lies_before_the_log_cannot_be_compared(row: AbortedTxn) -> None:
    assert notes(beheaded_disk(row)) == []


def test_what_lies_in_the_log_is_compared_wherever_it_begins() -> None:
    assert "the transaction began at 8" in inconsistency(beheaded_disk(AbortedTxn(8, 9, 12, 13)))
    assert "the last stable offset was 13" in inconsistency(beheaded_disk(AbortedTxn(8, 6, 12, 12)))
    disk = beheaded_disk(ROWS[1])
    rows(AbortedTxn(9, 9, 10, 8), ROWS[1])(disk)
    assert "no transaction was open" in inconsistency(disk), "none of its records stands behind the beginning"


def compacted_disk(*txns: AbortedTxn, is_compacted: bool = True) -> MemoryDisk:
    """An aborted transaction of which the first batch was taken out, and the second is there."""
    log = MemoryLog()
    for sequence in range(2):
        log.append(data_batch(sequence, (b"k", b"v"), producer=(7, 0, sequence), is_transactional=True))
    log.append(marker_batch(2, 7, 0, is_commit=False))
    if is_compacted:
        del log.segments[0].batches[0]
    disk = MemoryDisk()
    write_partition(disk, ORDERS, log)
    write_data_directory(disk, {("orders", 0): 3})
    rows(*txns, path=f"{FIRST}.txnindex")(disk)
    assert disk.exists(CLEAN_SHUTDOWN)
    return disk


def test_after_compaction_a_row_may_begin_before_what_is_left() -> None:
    assert notes(compacted_disk(AbortedTxn(7, 0, 2, 3))) == []
    assert notes(compacted_disk(AbortedTxn(7, 1, 2, 3))) == []
    assert notes(compacted_disk()) == [], "records without a row were taken out"
    assert "has records from 1 on" in inconsistency(compacted_disk(AbortedTxn(7, 2, 2, 3)))
    assert "the marker there is that of producer 7" in inconsistency(compacted_disk(AbortedTxn(8, 0, 2, 3)))
    assert "the transaction began at 0" in inconsistency(compacted_disk(AbortedTxn(7, 1, 2, 3), is_compacted=False))


def test_the_index_alone_is_compared_with_the_log_beside_it() -> None:
    disk = sample_disk()
    assert notes(disk, INDEX) == []
    rows(ROWS[0])(disk)
    assert "a row is missing: producer 8" in inconsistency(disk, INDEX)
    replace(INDEX, pack(">hqqqq", 0, 9, 7, 11, 6))(disk)
    assert "no abort marker stands at offset 11" in inconsistency(disk, INDEX)
