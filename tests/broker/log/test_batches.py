"""Walking a file of batches: all of them by headers alone, in bounded pieces, and where and why it stops at damage."""

import pytest

from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.batches import Damage, walk
from odradek.protocol.batches.batch import HEADER_SIZE
from tests.broker.log.logs import batch, stored

SMALL = stored(batch(1, 2), 0)
LARGE = stored(batch(3, value=bytes(300_000)), 2)  # larger than any piece that headers are read in
HUGE = stored(batch(4, value=bytes(3_000_000)), 3)  # larger than any piece that checksums are computed in
LAST = stored(batch(5, 6, 7), 4)
ALL = SMALL + LARGE + HUGE + LAST


class CountedFile:
    """A file that notes how much is read at once."""

    def __init__(self, content: bytes) -> None:
        disk = MemoryDisk()
        disk.open("f").append([content])
        self._file = disk.open("f")
        self.path = "f"
        self.size_bytes = len(content)
        self.reads: list[int] = []
        self.append = self._file.append
        self.truncate, self.preallocate, self.syncer = self._file.truncate, self._file.preallocate, self._file.syncer
        self.sync, self.slice = self._file.sync, self._file.slice
        self.close = self._file.close

    def pread(self, size_bytes: int, position: int, at_least: int | None = None) -> bytes | bytearray:
        data = self._file.pread(size_bytes, position, at_least)
        self.reads.append(len(data))
        return data


def walked(content: bytes, position: int = 0, *, with_crc: bool = False) -> list[tuple[int, int, int]]:
    file = CountedFile(content)
    return [
        (at, header.base_offset, header.last_offset)
        for at, header in walk(file, position, file.size_bytes, with_crc=with_crc)
    ]


@pytest.mark.parametrize("with_crc", [False, True])
def test_batches_of_any_size_come_in_order(with_crc: bool) -> None:
    large, huge, last = len(SMALL), len(SMALL + LARGE), len(SMALL + LARGE + HUGE)
    expected = [(0, 0, 1), (large, 2, 2), (huge, 3, 3), (last, 4, 6)]
    assert walked(ALL, with_crc=with_crc) == expected
    assert walked(ALL, huge, with_crc=with_crc) == expected[2:]
    assert walked(b"", with_crc=with_crc) == []
    assert walked(ALL, len(ALL), with_crc=with_crc) == []


def test_of_large_batches_only_the_headers_are_read() -> None:
    file = CountedFile(LARGE * 50)
    assert len(list(walk(file, 0, file.size_bytes))) == 50
    assert sum(file.reads) <= 64 * 1024 + 50 * HEADER_SIZE


def test_of_small_batches_many_come_with_one_read() -> None:
    file = CountedFile(SMALL * 2000)
    assert len(list(walk(file, 0, file.size_bytes))) == 2000
    assert len(file.reads) <= 2 * len(SMALL) * 2000 // (64 * 1024) + 1


def damage(content: bytes, *, with_crc: bool = False) -> tuple[int, str]:
    with pytest.raises(Damage) as caught:
        walked(content, with_crc=with_crc)
    return caught.value.position, caught.value.reason


@pytest.mark.parametrize("with_crc", [False, True])
@pytest.mark.parametrize("there", range(1, len(LAST)))
def test_a_batch_cut_at_any_byte_is_damage_where_it_starts(there: int, with_crc: bool) -> None:
    position, reason = damage(SMALL + LAST[:there], with_crc=with_crc)
    assert position == len(SMALL)
    wanted = f"{there} bytes are no whole batch header" if there < HEADER_SIZE else f"of which {there} are there"
    assert wanted in reason


@pytest.mark.parametrize("with_crc", [False, True])
@pytest.mark.parametrize(
    "broken",
    [
        bytes(200),
        LAST[:16] + b"\x01" + LAST[17:],  # magic 1
        LAST[:8] + (48).to_bytes(4, "big") + LAST[12:],  # shorter than its own header
        LAST[:8] + b"\xff\xff\xff\xf4" + LAST[12:],  # a size of 0 would never end
        LAST[:23] + b"\xff" + LAST[24:],  # a negative last offset delta
    ],
)
def test_what_no_header_can_hold_is_damage(broken: bytes, with_crc: bool) -> None:
    assert damage(SMALL + broken, with_crc=with_crc) == (len(SMALL), "no batch starts here")


def test_a_length_larger_than_the_file_reads_nothing_like_it() -> None:
    content = SMALL + LAST[:8] + b"\x7f\xff\xff\xff" + LAST[12:]
    file = CountedFile(content)
    with pytest.raises(Damage, match="has 2147483659 bytes"):
        list(walk(file, 0, file.size_bytes, with_crc=True))
    assert sum(file.reads) <= 2 * len(content)


@pytest.mark.parametrize("at", range(17, len(LAST)))
def test_every_flipped_byte_under_the_checksum_is_damage(at: int) -> None:
    flipped = LAST[:at] + bytes([LAST[at] ^ 0x10]) + LAST[at + 1 :]
    position, _ = damage(SMALL + flipped, with_crc=True)
    assert position == len(SMALL)


def test_without_checksums_the_records_may_be_anything() -> None:
    poisonous = LAST[:HEADER_SIZE] + b"\xff" * (len(LAST) - HEADER_SIZE)
    assert walked(poisonous + SMALL)[1][0] == len(LAST)
