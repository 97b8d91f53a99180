"""Batches are read with all their bytes whatever their size, from pieces of the file; where none is, that is told."""

import pytest

from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.batches import Damage
from odradek.broker.offline.dump import stored
from odradek.broker.offline.dump.stored import ZeroTail, stored_batches
from tests.broker.log.compacted_logs import data_batch

SIZES = (0, 1, 500, 3000, 70, 4100, 9000, 5)


def disk_with(data: bytes) -> MemoryDisk:
    disk = MemoryDisk()
    disk.write_whole("log", data)
    return disk


@pytest.mark.parametrize("piece_bytes", [61, 100, 4096, 1 << 20])
def test_every_batch_is_read(piece_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "PIECE_BYTES", piece_bytes)
    batches = [data_batch(offset, (b"k", bytes(size))) for offset, size in enumerate(SIZES)]
    data = b"".join(batches)
    found = list(stored_batches(disk_with(data), "log", len(data)))
    assert [bytes(each.data) for each in found] == batches
    assert [each.header.base_offset for each in found] == list(range(len(SIZES)))
    assert [data[each.position :][: len(each.data)] for each in found] == batches
    assert list(stored_batches(disk_with(data), "log", len(data), found[3].position)) == found[3:]


@pytest.mark.parametrize("piece_bytes", [61, 4096])
def test_every_cut_is_told(piece_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "PIECE_BYTES", piece_bytes)
    batches = [data_batch(0, (b"k", b"one")), data_batch(1, (b"k", b"two"))]
    data, first = b"".join(batches), len(batches[0])
    for size_bytes in range(len(data)):
        disk = disk_with(data[:size_bytes])
        if size_bytes in (0, first):
            assert len(list(stored_batches(disk, "log", size_bytes))) == size_bytes // first
            continue
        with pytest.raises(Damage) as found:
            list(stored_batches(disk, "log", size_bytes))
        # The first bytes of an offset are zeros, which are the beginning of nothing.
        assert isinstance(found.value, ZeroTail) == (size_bytes < 12 or first < size_bytes < first + 8)
        assert found.value.position == first * (size_bytes > first)


def test_a_file_that_becomes_shorter_is_told() -> None:
    data = data_batch(0, (b"k", bytes(2000)))
    with pytest.raises(Damage, match="which it did not a moment ago"):
        list(stored_batches(disk_with(data[:1000]), "log", len(data)))
