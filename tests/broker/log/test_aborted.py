"""The transaction index: bytes made by hand, rows that wait for room, cutting anywhere, collecting, and damage."""

import errno
import itertools
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.disk.memory_disk import Content, MemoryDisk
from odradek.broker.log.aborted import CorruptTransactionIndex, TransactionIndex, encode_row
from odradek.broker.log.producers import AbortedTxn
from odradek.protocol.primitives import Buffer
from tests.broker.log.logs import Crash, FaultyDisk

PATH = "data/orders-0/00000000000000000100.txnindex"
BASE = 100
GOLDEN = bytes.fromhex(
    "0000 0000000000000fa1 0000000000000064 000000000000006e 0000000000000069"
    # version 0, producer 4001, offsets 100 to 110, stable up to 105
    "0000 0000000000000fa2 0000000000000069 0000000000000070 0000000000000071"
    # producer 4002, offsets 105 to 112, stable up to 113
)
TXNS = [AbortedTxn(4001, 100, 110, 105), AbortedTxn(4002, 105, 112, 113)]
ROW_BYTES = 34


class Full(MemoryDisk):
    """Has no room while it `is_full`: a third of each write goes in."""

    is_full = False

    def write(self, content: Content, data: Buffer) -> None:
        if self.is_full:
            super().write(content, memoryview(data)[: len(data) // 3])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().write(content, data)


def new_disk() -> Full:
    disk = Full()
    disk.make_dir("data/orders-0")
    return disk


def index_of(txns: list[AbortedTxn], disk: Full | None = None, *, waiting_from: int | None = None) -> TransactionIndex:
    """An index with these rows, those from `waiting_from` on in memory only."""
    disk = new_disk() if disk is None else disk
    index = TransactionIndex(disk, PATH, BASE, exists=False)
    for number, txn in enumerate(txns):
        disk.is_full = waiting_from is not None and number >= waiting_from
        index.append(txn)
    disk.is_full = False
    return index


def reopened(disk: Full) -> TransactionIndex:
    return TransactionIndex(disk, PATH, BASE, exists=disk.exists(PATH))


def test_the_bytes_made_by_hand_are_written_and_read() -> None:
    disk = new_disk()
    index = index_of(TXNS, disk)
    assert b"".join(map(encode_row, TXNS)) == GOLDEN
    assert disk.read_whole(PATH) == GOLDEN
    assert list(index.rows()) == list(reopened(disk).rows()) == TXNS
    assert len(index) == len(reopened(disk)) == 2


def test_without_an_aborted_transaction_there_is_no_file() -> None:
    disk = new_disk()
    index = TransactionIndex(disk, PATH, BASE, exists=False)
    assert (len(index), list(index.rows()), index.file) == (0, [], None)
    assert index.collect(0, 1000) == ([], False)
    index.truncate(0)
    index.replace([])
    index.write_out()
    index.close()
    assert not disk.exists(PATH)


def test_more_rows_than_are_read_at_once() -> None:
    txns = [
        AbortedTxn(number, BASE + 2 * number, BASE + 2 * number + 1, BASE + 2 * number + 2) for number in range(1300)
    ]
    disk = new_disk()
    index_of(txns, disk)
    assert list(reopened(disk).rows()) == txns
    assert reopened(disk).collect(BASE + 2000, BASE + 2100) == (txns[1000:1050], True)


# -- rows that wait ---------------------------------------------------------------------------------------------------


def test_rows_that_cannot_be_written_wait_and_count_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    disk = new_disk()
    index = index_of(TXNS, disk, waiting_from=1)
    assert "1 entries wait in memory" in caplog.text
    assert disk.read_whole(PATH) == GOLDEN[:ROW_BYTES], "a third of a row has been cut off again"
    assert (len(index), list(index.rows())) == (2, TXNS)
    assert index.collect(111, 200) == (TXNS[1:], False)
    disk.is_full = True
    index.write_out()
    assert list(index.rows()) == TXNS
    disk.is_full = False
    index.write_out()
    assert disk.read_whole(PATH) == GOLDEN
    index.write_out()
    assert disk.read_whole(PATH) == GOLDEN, "once"


def test_the_file_itself_may_have_to_wait() -> None:
    class NoNames(Full):
        def open(self, path: str, size_bytes: int | None = None) -> "object":  # type: ignore[override]
            if self.is_full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
            return super().open(path, size_bytes)

    disk = NoNames()
    disk.make_dir("data/orders-0")
    index = index_of(TXNS, disk, waiting_from=0)
    assert index.file is None
    assert (len(index), list(index.rows())) == (2, TXNS)
    index.write_out()
    assert disk.read_whole(PATH) == GOLDEN


# -- cutting and replacing --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("waiting_from", range(5))
def test_truncation_at_every_offset(waiting_from: int) -> None:
    """With none, some or all of the rows on disk: what is before stays, and what comes then follows it."""
    txns = [
        AbortedTxn(7, 100, 110, 105),
        AbortedTxn(8, 105, 112, 113),
        AbortedTxn(7, 113, 114, 115),
        AbortedTxn(9, 116, 120, 121),
    ]
    for end_offset in range(BASE - 1, 125):
        disk = new_disk()
        index = index_of(txns, disk, waiting_from=waiting_from)
        index.truncate(end_offset)
        kept = [txn for txn in txns if txn.last_offset < end_offset]
        assert (list(index.rows()), len(index)) == (kept, len(kept)), end_offset
        added = AbortedTxn(10, 122, 130, 131)
        index.append(added)
        assert list(index.rows()) == [*kept, added]
        assert list(reopened(disk).rows()) == [*kept, added]


@pytest.mark.parametrize("waiting_from", [0, 1, 2])
def test_all_rows_are_replaced(waiting_from: int) -> None:
    disk = new_disk()
    index = index_of(TXNS, disk, waiting_from=waiting_from)
    other = [AbortedTxn(1, 200, 201, 202)]
    index.replace(other)
    assert list(index.rows()) == list(reopened(disk).rows()) == other
    index.replace([])
    assert list(index.rows()) == list(reopened(disk).rows()) == []


def test_replacing_rows_wait_for_room_and_the_file_keeps_the_old_rows_until_then() -> None:
    """What a start finds meanwhile is what was to be replaced, and not a part of what replaces it."""
    disk = new_disk()
    index = index_of(TXNS[:1], disk)
    other = [AbortedTxn(1, 200, 201, 202), AbortedTxn(1, 210, 211, 212)]
    disk.is_full = True
    index.replace(other)
    assert (list(index.rows()), len(index), index.has_pending) == (other, 2, True)
    assert list(reopened(disk).rows()) == TXNS[:1]
    index.truncate(205)
    assert list(index.rows()) == other[:1]
    index.append(other[1])
    disk.is_full = False
    index.write_out()
    assert list(index.rows()) == list(reopened(disk).rows()) == other
    assert not index.has_pending


@pytest.mark.parametrize("replacing", [TXNS, TXNS[:1], []], ids=len)
def test_a_process_that_dies_at_any_step_leaves_the_rows_of_before_or_all_others(replacing: list[AbortedTxn]) -> None:
    before = [AbortedTxn(1, 200, 201, 202)]
    for step in itertools.count():
        disk = FaultyDisk()
        disk.make_dir("data/orders-0")
        index = TransactionIndex(disk, PATH, BASE, exists=False)
        for txn in before:
            index.append(txn)
        disk.fail_at(step, Crash, for_good=True)
        try:
            index.replace(replacing)
        except Crash:
            disk.heal()
            assert list(TransactionIndex(disk, PATH, BASE, exists=True).rows()) == before
        else:
            assert list(TransactionIndex(disk, PATH, BASE, exists=True).rows()) == replacing
            assert step > len(replacing) * ROW_BYTES
            break


# -- collecting -------------------------------------------------------------------------------------------------------


@st.composite
def txns_of_a_log(draw: st.DrawFn) -> list[AbortedTxn]:
    """What a log brings forth: producers begin, write, commit and abort, one offset after another."""
    opened: dict[int, int] = {}
    rows: list[AbortedTxn] = []
    for offset in range(BASE, BASE + draw(st.integers(0, 40))):
        producer_id = draw(st.integers(0, 3))
        if producer_id not in opened:
            opened[producer_id] = offset
        elif draw(st.booleans()):
            first_offset = opened.pop(producer_id)
            if draw(st.integers(0, 3)):
                stable = min(opened.values(), default=offset + 1)
                rows.append(AbortedTxn(producer_id, first_offset, offset, stable))
    return rows


@given(rows=txns_of_a_log(), start=st.integers(BASE - 5, BASE + 45), size=st.integers(1, 50), data=st.data())
def test_collecting_finds_what_an_obvious_scan_finds(
    rows: list[AbortedTxn], start: int, size: int, data: st.DataObject
) -> None:
    index = index_of(rows, waiting_from=data.draw(st.integers(0, len(rows))))
    found, is_complete = index.collect(start, start + size)
    overlapping = [
        row for row in rows if {*range(row.first_offset, row.last_offset + 1)} & {*range(start, start + size)}
    ]
    assert found == overlapping
    if is_complete:
        # No later row, in whatever segment, can begin before the end of what is read.
        assert any(row.last_stable_offset >= start + size for row in rows)


@given(rows=txns_of_a_log(), more=st.integers(1, 30), end=st.integers(BASE, BASE + 80))
def test_complete_means_that_no_later_abort_can_matter(rows: list[AbortedTxn], more: int, end: int) -> None:
    """Rows of a log, of which a first part stands in this segment: the rest does not overlap if it says complete."""
    split = len(rows) * more // 30
    _, is_complete = index_of(rows[:split]).collect(BASE, end)
    if is_complete:
        assert not [row for row in rows[split:] if row.first_offset < end]


# -- damage -----------------------------------------------------------------------------------------------------------


def corrupted(content: bytes) -> TransactionIndex:
    disk = new_disk()
    disk.write_whole(PATH, content)
    return reopened(disk)


@pytest.mark.parametrize(
    "content",
    [
        GOLDEN[:-1],
        GOLDEN[: ROW_BYTES + 1],
        GOLDEN[:5],
        GOLDEN + bytes(1),
        GOLDEN + bytes(ROW_BYTES),
        bytes(ROW_BYTES),
        b"\xff" * ROW_BYTES,
        GOLDEN[ROW_BYTES:] + GOLDEN[:ROW_BYTES],
        GOLDEN + GOLDEN,
        b"\x00\x01" + GOLDEN[2:],
        encode_row(AbortedTxn(1, 111, 110, 111)),
        encode_row(AbortedTxn(1, -1, 110, 111)),
        encode_row(AbortedTxn(1, 50, 99, 100)),
    ],
    ids=[
        "a byte too few",
        "a row and a byte",
        "part of a row",
        "a byte too many",
        "a row of zeros",
        "only zeros",
        "ones",
        "in the wrong order",
        "twice",
        "of a later version",
        "ends before it begins",
        "begins nowhere",
        "of an earlier segment",
    ],
)
def test_rows_that_cannot_be_are_noticed(content: bytes) -> None:
    index = corrupted(content)
    with pytest.raises(CorruptTransactionIndex, match="txnindex"):
        list(index.rows())
    with pytest.raises(CorruptTransactionIndex):
        index.collect(0, 1 << 40)
    with pytest.raises(CorruptTransactionIndex):
        index.truncate(0)
    index.replace(TXNS)
    assert list(index.rows()) == TXNS


def test_which_flipped_bits_are_noticed() -> None:
    """Kafka's format has no checksum: a flip is noticed where the row cannot be true any more, and believed elsewhere.

    So every one in the version is found, those that make an offset negative, and those that put the rows out of order.
    """
    noticed: dict[str, int] = {}
    fields = {"version": 2, "producer id": 10, "first": 18, "last": 26, "stable": 34}
    for position in range(ROW_BYTES):
        field = next(name for name, end in fields.items() if position < end)
        for bit in range(8):
            content = bytearray(GOLDEN)
            content[ROW_BYTES + position] ^= 1 << bit
            try:
                list(corrupted(bytes(content)).rows())
            except CorruptTransactionIndex:
                noticed[field] = noticed.get(field, 0) + 1
    assert noticed["version"] == 16
    assert noticed["first"] > 50
    assert noticed["last"] >= 2
    assert "producer id" not in noticed
