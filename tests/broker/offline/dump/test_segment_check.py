"""Batches that are not what they say, or not where they should be, are found with file, position and offset; what a
broker is just writing at the end of the last segment is a note, and so are zeros there.
"""

from collections.abc import Callable

import pytest

from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.offline.dump.partition_check import Report
from odradek.broker.offline.dump.verifying import verify
from odradek.protocol.batches.batch import HEADER_SIZE, pack_batch, read_header, rebuild_batch
from odradek.protocol.batches.compression import Codec
from odradek.protocol.batches.record_encoding import encode_records
from odradek.protocol.batches.records import Record
from tests.broker.log.compacted_logs import T0
from tests.broker.offline.dump.damages import (
    FIRST,
    LAST,
    SECOND,
    Case,
    Damage,
    add,
    batch,
    both,
    check_cases,
    cut,
    field,
    inconsistency,
    notes,
    put,
)
from tests.broker.offline.dump.laid_down import ORDERS, sample_disk, with_epoch

FIRST_LOG, SECOND_LOG, LAST_LOG = (f"{path}.log" for path in (FIRST, SECOND, LAST))


def first_batch(change: Callable[[bytes], bytes]) -> Callable[[MemoryDisk], None]:
    """Changes the first batch: three records, the first at position 61."""
    return batch(FIRST_LOG, 0, 154, change)


def with_max_timestamp(data: bytes) -> bytes:
    changed = rebuild_batch(
        read_header(data), data[HEADER_SIZE:], codec=Codec.NONE, max_timestamp=T0 + 1, is_log_append_time=False
    )
    return with_epoch(changed, 3)


def with_short_key(data: bytes) -> bytes:
    """A control batch of the same size, whose key lacks the type."""
    header = read_header(data)
    record = Record(header.base_offset, header.max_timestamp, b"\0\0", b"\0\0\0\0\0\7\0\0")
    return pack_batch(
        encode_records([record], header.base_offset, header.base_timestamp),
        record_count=1,
        last_offset_delta=0,
        base_timestamp=header.base_timestamp,
        max_timestamp=header.max_timestamp,
        base_offset=header.base_offset,
        leader_epoch=header.partition_leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        is_transactional=True,
        is_control=True,
    )


CASES: dict[str, Case] = {
    "checksum": (put(FIRST_LOG, 100, ">B", 1), f"{FIRST_LOG}, position 0, offset 0: the batch carries the checksum 0x"),
    "magic": (put(FIRST_LOG, 16, ">B", 1), f"{FIRST_LOG}, position 0: no batch starts here: magic 1 instead of 2"),
    "length too small": (put(FIRST_LOG, 8, ">i", 7), "a batch_length of 7 is too small"),
    "length too large": (put(FIRST_LOG, 8, ">i", 5000), "the batch has 5012 bytes, of which 591 are there"),
    "cut within a header": (cut(LAST_LOG, 140), f"{LAST_LOG}, position 130: the file ends 10 bytes later, within a ba"),
    "cut within a batch": (cut(LAST_LOG, 200), "the batch has 92 bytes, of which 70 are there"),
    "bytes at the end": (add(SECOND_LOG, b"x" * 99), f"{SECOND_LOG}, position 546: no batch starts here: magic 120"),
    "fewer offsets than records": (first_batch(field(23, ">i", 1)), "3 records for the offsets 0 to 1"),
    "a negative delta": (first_batch(field(23, ">i", -1)), "a last_offset_delta of -1"),
    "a negative count": (first_batch(field(57, ">i", -1)), "-1 records for the offsets 0 to 2"),
    "more records": (first_batch(field(57, ">i", 2)), " bytes follow the 2 records"),
    "no records, but bytes": (first_batch(field(57, ">i", 0)), "93 bytes follow the header of a batch without records"),
    "a record's length": (first_batch(field(61, ">b", 59)), "record 0 of 3 is malformed"),
    "a record's offset": (first_batch(field(64, ">b", 2)), "offset 1 of record 1 follows 1, the last is 2"),
    "the codec": (first_batch(field(21, ">h", 7)), "no codec has number 7"),
    "the largest timestamp": (
        first_batch(with_max_timestamp),
        f"offset 0: a max_timestamp of {T0 + 1}, where the largest of the records is {T0 + 2}",
    ),
    "a marker's key": (
        batch(SECOND_LOG, 121, 78, with_short_key),
        f"{SECOND_LOG}, position 121, offset 10: the control batch at offset 10 holds no marker",
    ),
    "an offset of the batch before": (
        put(FIRST_LOG, 154, ">q", 2),
        f"{FIRST_LOG}, position 154, offset 2: a batch with base offset 2 follows one that ends with 2",
    ),
    "an offset before the segment": (
        put(SECOND_LOG, 0, ">q", 7),
        "offset 7 cannot stand in a segment that begins at 8",
    ),
    "an offset of the next segment": (put(FIRST_LOG, 482, ">q", 8), "ends with 8, and the next segment begins at 8"),
    "an offset that no index can say": (put(LAST_LOG, 130, ">q", 15 + 2**31), "offset 2147483663 is too far from the"),
}


@pytest.mark.parametrize(("damage", "told"), CASES.values(), ids=CASES.keys())
def test_a_batch_that_cannot_be_is_found(damage: Callable[[MemoryDisk], None], told: str) -> None:
    check_cases(damage, told)


@pytest.mark.parametrize("size_bytes", [1, 60, 61, 5000, 1 << 20, (1 << 20) + 1, 3_000_000])
def test_zeros_behind_the_last_batch_are_a_note(size_bytes: int) -> None:
    disk = sample_disk()
    add(LAST_LOG, bytes(size_bytes))(disk)
    expected = f"{LAST_LOG}: position 222: {size_bytes} bytes of zeros: preallocated, or never written"
    assert notes(disk) == [expected]
    add(LAST_LOG, b"\1")(disk)
    assert "within a batch's header" in inconsistency(disk) or "magic 0" in inconsistency(disk)


@pytest.mark.parametrize(
    ("damage", "is_at_the_end"),
    [
        (cut(LAST_LOG, 200), True),
        (put(LAST_LOG, 200, ">B", 255), True),
        (both(put(LAST_LOG, 200, ">B", 255), add(LAST_LOG, bytes(1000))), True),
        (put(LAST_LOG, 100, ">B", 255), False),
        (cut(FIRST_LOG, 590), False),
        (put(SECOND_LOG, 540, ">B", 255), False),
    ],
)
def test_a_torn_tail_is_told_as_what_a_running_broker_may_be_writing(damage: Damage, is_at_the_end: bool) -> None:
    hint = "; if a broker is running it may be writing this: try again; else its next start cuts this off"
    for is_clean in (False, True):
        disk = sample_disk(is_clean=is_clean)
        damage(disk)
        assert inconsistency(disk).endswith(hint) is (is_at_the_end and not is_clean)


class WritingDisk(MemoryDisk):
    """Whose broker writes whenever somebody has looked at the size of the file, or has read it."""

    def __init__(self, path: str, then: bytes, *, after: str) -> None:
        super().__init__()
        self.written = path, then
        self.after = after
        self.is_running = False

    def _write(self, method: str, path: str) -> None:
        if self.is_running and method == self.after and path in self.written[0]:
            self.is_running = False
            self.write_whole(*self.written)

    def sizes(self, path: str) -> dict[str, int]:
        found = super().sizes(path)
        self._write("sizes", path)
        return found

    def read_range(self, path: str, position: int, size_bytes: int) -> bytes:
        data = super().read_range(path, position, size_bytes)
        self._write("read_range", path)
        return data


def writing_disk(now: Callable[[bytes], bytes], then: Callable[[bytes], bytes], *, after: str) -> WritingDisk:
    """The sample, the last segment of which holds `now` of it, and a moment later `then`."""
    intact = sample_disk(is_clean=False)
    log = intact.read_whole(LAST_LOG)
    disk = WritingDisk(LAST_LOG, then(log), after=after)
    for directory in ("data", ORDERS, "data/others-1"):
        disk.make_dir(directory)
        for name in intact.sizes(directory):
            disk.write_whole(f"{directory}/{name}", intact.read_whole(f"{directory}/{name}"))
    disk.write_whole(LAST_LOG, now(log))
    return disk


def test_a_batch_of_which_more_comes_is_being_written() -> None:
    disk = writing_disk(lambda log: log[:200], lambda log: log, after="read_range")
    disk.remove(f"{LAST}.index")
    disk.write_whole(f"{LAST}.index", b"")
    disk.remove(f"{LAST[:-2]}18.snapshot")
    disk.write_whole("data/recovery-point-offset-checkpoint", b"")
    disk.write_whole("data/replication-offset-checkpoint", b"")
    disk.write_whole(f"{LAST}.timeindex", b"")
    disk.write_whole(f"{ORDERS}/leader-epoch-checkpoint", b"0\n2\n3 0\n5 8\n")
    disk.is_running = True
    (report,) = [each for each in verify(disk, ORDERS) if isinstance(each, Report)]
    assert [note.text for note in report.notes] == ["position 130: a broker is writing here, so nothing behind is read"]
    assert report.end_offset == 17


def test_bytes_that_change_are_being_written() -> None:
    """Into room that was preallocated, so that the size tells nothing."""
    disk = writing_disk(lambda log: log[:200] + bytes(1000), lambda log: log + bytes(978), after="read_range")
    disk.remove(f"{LAST[:-2]}18.snapshot")
    for name in (".index", ".timeindex"):
        disk.write_whole(f"{LAST}{name}", b"")
    disk.write_whole(f"{ORDERS}/leader-epoch-checkpoint", b"0\n2\n3 0\n5 8\n")
    disk.is_running = True
    (report,) = [each for each in verify(disk, ORDERS) if isinstance(each, Report)]
    assert [note.text for note in report.notes] == ["position 130: a broker is writing here, so nothing behind is read"]
    assert report.end_offset == 17
